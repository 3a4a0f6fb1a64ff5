// SPDX-License-Identifier: Apache-2.0
#include "vgpud/device/gpu_choice.h"

#include <sys/socket.h>

#include <regex>

#include "base/exec_link.h"

namespace vgpud::daemon {

std::string GpuChoice::address() const {
  const size_t colon = gpu.find(':');
  return colon == std::string::npos ? found : gpu.substr(colon + 1);
}

std::vector<std::string> GpuChoice::ExecutorArguments(int channel) const {
  ExecArguments arguments;
  const auto add = [&arguments](ExecOption option, const std::string& value) {
    if (!value.empty()) arguments.Add(option, value);
  };
  add(ExecOption::kBackend, kind());
  add(ExecOption::kCudaDevice, address());
  add(ExecOption::kCudaLibrary, cuda_library);
  add(ExecOption::kCudaChannel, cuda_channel.empty() ? std::string() : std::to_string(channel));
  add(ExecOption::kCudaRung, is_cuda() ? cuda_rung : std::string());
  if (is_cuda() && cuda_oversubscribe) arguments.Add(ExecOption::kCudaOversubscribe);
  return arguments.Take();
}

Result<UniqueFd> GpuChoice::ConnectChannel() const {
  if (cuda_channel.empty()) return UniqueFd{};
  return ConnectUnix(cuda_channel, SOCK_SEQPACKET);
}

std::string WhyNotGpu(const std::string& gpu) {
  static const std::regex known(
      "soft|cuda(:([0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\\.[0-7]|"
      ":MIG-[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})?");
  if (std::regex_match(gpu, known)) return {};
  return gpu +
         " is no GPU: soft, cuda, cuda:ADDRESS with a PCI address like cuda:0000:65:00.0, or cuda:MIG-... with the "
         "name of a MIG instance as nvidia-smi -L lists it";
}

}  // namespace vgpud::daemon
