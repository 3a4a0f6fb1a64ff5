// SPDX-License-Identifier: Apache-2.0
#include "tools/gpucheck/driver.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace gpucheck {
namespace {

[[noreturn]] void End(const char* call, const char* name, int code) {
  std::printf("ERROR call=%s name=%s code=%d\n", call, name, code);
  std::fflush(stdout);
  std::_Exit(3);
}

Api Load() {
  const char* const told = std::getenv("GPU_CHECK_LIBRARY");
  void* const library = dlopen(told != nullptr ? told : "libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    End("dlopen", "no_driver", 0);
  }
  Api api;
  const auto find = [library](const char* symbol, auto& call) {
    void* const found = dlsym(library, symbol);
    if (found == nullptr) End(symbol, "not_in_this_driver", 0);
    std::memcpy(&call, &found, sizeof call);
  };
#define GPU_CHECK_FIND(name, symbol, parameters) find(symbol, api.name);
  GPU_CHECK_CALLS(GPU_CHECK_FIND)
#undef GPU_CHECK_FIND
  return api;
}

}  // namespace

const Api& Cuda() {
  static const Api api = Load();
  return api;
}

void Check(Result result, const char* call) {
  if (result == 0) return;
  char name[64];
  std::snprintf(name, sizeof name, "%.*s", static_cast<int>(std::strcspn(call, "(")), call);
  const char* error = nullptr;
  if (Cuda().GetErrorName(result, &error) != 0 || error == nullptr) error = "unknown";
  End(name, error, result);
}

Gpu OpenGpu() {
  Gpu gpu;
  Handle context = nullptr;
  int major = 0, minor = 0;
  CUDA(Init(0));
  CUDA(DeviceGet(&gpu.device, 0));
  CUDA(DeviceGetName(gpu.name, sizeof gpu.name, gpu.device));
  CUDA(DeviceGetAttribute(&major, kMajor, gpu.device));
  CUDA(DeviceGetAttribute(&minor, kMinor, gpu.device));
  CUDA(DeviceGetAttribute(&gpu.multiprocessors, kMultiprocessors, gpu.device));
  CUDA(DeviceGetAttribute(&gpu.most_shared, kMostSharedOptin, gpu.device));
  CUDA(DeviceTotalMem(&gpu.memory, gpu.device));
  CUDA(PrimaryRetain(&context, gpu.device));
  CUDA(SetCurrent(context));
  gpu.capability = 10 * major + minor;
  return gpu;
}

Handle LoadKernel(const char* ptx, const char* name) {
  Handle module = nullptr, function = nullptr;
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
