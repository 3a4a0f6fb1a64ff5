// SPDX-License-Identifier: Apache-2.0
#include "tools/gpucheck/driver.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace gpucheck {
namespace {

using vgpud::cuda_enum::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
using vgpud::cuda_enum::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR;
using vgpud::cuda_enum::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
using vgpud::cuda_enum::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;

[[noreturn]] void End(const char* call, const char* name, unsigned code) {
  std::printf("ERROR call=%s name=%s code=%u\n", call, name, code);
  std::fflush(stdout);
  std::_Exit(3);
}

driver::Calls Load() {
  const char* const told = std::getenv("GPU_CHECK_LIBRARY");
  void* const library = dlopen(told != nullptr ? told : "libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    End("dlopen", "no_driver", 0);
  }
  driver::Calls calls;
  const auto find = [library](const driver::CallRow& row) { return dlsym(library, row.symbol); };
  if (const auto* const missing = FindCalls(driver::kGpuCheck, calls, find))
    End(missing->symbol, "not_in_this_driver", 0);
  return calls;
}

}  // namespace

const driver::Calls& Cuda() {
  static const driver::Calls calls = Load();
  return calls;
}

void Check(driver::Status result, const char* call) {
  if (result == driver::kOk) return;
  char name[64];
  std::snprintf(name, sizeof name, "%.*s", static_cast<int>(std::strcspn(call, "(")), call);
  const char* error = nullptr;
  if (Cuda().GetErrorName(result, &error) != driver::kOk || error == nullptr) error = "unknown";
  End(name, error, result);
}

Gpu OpenGpu() {
  Gpu gpu;
  driver::Context context = nullptr;
  int major = 0, minor = 0;
  CUDA(Init(0));
  CUDA(DeviceGet(&gpu.device, 0));
  CUDA(DeviceGetName(gpu.name, sizeof gpu.name, gpu.device));
  CUDA(DeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu.device));
  CUDA(DeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, gpu.device));
  CUDA(DeviceGetAttribute(&gpu.multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu.device));
  CUDA(DeviceGetAttribute(&gpu.most_shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, gpu.device));
  CUDA(DeviceTotalMem(&gpu.memory, gpu.device));
  CUDA(DevicePrimaryCtxRetain(&context, gpu.device));
  CUDA(CtxSetCurrent(context));
  gpu.capability = 10 * major + minor;
  return gpu;
}

driver::Function LoadKernel(const char* ptx, const char* name) {
  driver::Module module = nullptr;
  driver::Function function = nullptr;
  CUDA(ModuleLoadData(&module, ptx));
  CUDA(ModuleGetFunction(&function, module, name));
  return function;
}

double Seconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

}  // namespace gpucheck
