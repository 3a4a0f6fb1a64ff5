// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/cuda_backend.h"

#include <fmt/core.h>

#include <cstdlib>

#include "gpu/channels/observe.h"
#include "gpu/cuda/driver/card_files.h"
#include "gpu/cuda/driver/environment.h"
#include "gpu/cuda/driver/thread_names.h"

namespace vgpud::driver {

Result<std::unique_ptr<CudaBackend>> CudaBackend::Open(const Card::Choice& choice, int channel_fd) {
  AnswerThreadNames();
  SetDriverEnvironment(choice.address);
  if (channel_fd >= 0) ::setenv("VGPU_CHANNEL", fmt::format("fd:{}", channel_fd).c_str(), 1);
  std::unique_ptr<CudaBackend> backend(new CudaBackend);
  TRY(backend->printed_.Begin());
  if (channel_fd < 0) LoadCompilers(choice.library);
  // Our own libcuda maps nothing in the jail of an executor.
  Card::Choice told = choice;
  told.maps_host_memory = choice.maps_host_memory && channel_fd < 0;
  backend->card_ = TRY(Card::Open(told));
  return backend;
}

std::unique_ptr<CudaGpu> CudaBackend::MakeGpu() const { return std::make_unique<CudaGpu>(*card_, printed_); }

std::vector<std::string> DeviceFiles(const Card& card) {
  return DeviceFilesOf(card.address(), !card.mig_name().empty());
}

namespace {

// The GPU, all memory of a process that uses it: by the processor's page tables (GH200), or by HMM where nvidia-uvm was
// not asked to leave it off for this process.
bool ReachesHostMemory(const Card& card) {
  if (card.Attribute(cuda_enum::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS) == 0) return false;
  return card.Attribute(cuda_enum::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES) != 0 ||
         !rm::HmmIsDisabled();
}

}  // namespace

std::string DescribeCard(const Card& card) {
  const int version = card.driver_version();
  return fmt::format(
      "name={}\naddress={}\nmig_instance={}\ncapability={}.{}\nmemory={}\ndriver={}.{}\ncontext_bytes={}\n"
      "host_memory={}\n",
      card.Describe().name, card.address(), card.mig_name(),
      card.Attribute(cuda_enum::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
      card.Attribute(cuda_enum::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), card.memory_bytes(), version / 1000,
      version % 1000 / 10, card.MeasureContextBytes(), ReachesHostMemory(card) ? "open" : "apart");
}

}  // namespace vgpud::driver
