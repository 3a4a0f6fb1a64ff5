// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/cuda_backend.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>

namespace vgpud::driver {

Result<std::unique_ptr<CudaBackend>> CudaBackend::Open(const Card::Choice& choice, int channel_fd) {
  if (channel_fd >= 0) ::setenv("VGPU_CHANNEL", fmt::format("fd:{}", channel_fd).c_str(), 1);
  // What a guest's program compiles is its own: no cache on the host's disk, which the jail would refuse.
  ::setenv("CUDA_CACHE_DISABLE", "1", 1);
  std::unique_ptr<CudaBackend> backend(new CudaBackend);
  TRY(backend->printed_.Begin());
  // The driver loads its compiler when it first needs it, by this name; there are no files then.
  if (channel_fd < 0) (void)::dlopen("libnvidia-ptxjitcompiler.so.1", RTLD_NOW | RTLD_LOCAL);
  // Our own libcuda maps nothing in the jail of an executor.
  Card::Choice told = choice;
  told.maps_host_memory = choice.maps_host_memory && channel_fd < 0;
  backend->card_ = TRY(Card::Open(told));
  return backend;
}

std::unique_ptr<CudaGpu> CudaBackend::MakeGpu() const { return std::make_unique<CudaGpu>(*card_, printed_); }

std::vector<std::string> DeviceFiles(const Card& card) {
  std::vector<std::string> files;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", none))
    if (entry.path().filename().string().rfind("nvidia", 0) == 0 && entry.is_character_file(none))
      files.push_back(entry.path().string());
  if (card.mig_name().empty()) return files;
  // Of MIG instances. Which belongs to which only NVML tells; who may open one is told by its mode.
  for (const auto& entry : std::filesystem::directory_iterator("/dev/nvidia-caps", none))
    if (entry.is_character_file(none)) files.push_back(entry.path().string());
  return files;
}

std::string DescribeCard(const Card& card) {
  const int version = card.driver_version();
  return fmt::format(
      "name={}\naddress={}\nmig_instance={}\ncapability={}.{}\nmemory={}\ndriver={}.{}\ncontext_bytes={}\n",
      card.Describe().name, card.address(), card.mig_name(),
      card.Attribute(cuda_enum::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
      card.Attribute(cuda_enum::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), card.memory_bytes(), version / 1000,
      version % 1000 / 10, card.MeasureContextBytes());
}

}  // namespace vgpud::driver
