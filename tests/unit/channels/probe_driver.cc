// SPDX-License-Identifier: Apache-2.0
// A libcuda of what gpu-check calls (gpu/cuda/driver_calls.h), for the test of gpu_probe: channels on the model's
// control device (GPU_CHECK_CONTROL_DEVICE), memory of this process, and of all kernels one does something: "beats"
// counts as long as that device lets it, each time somebody asks.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tests/unit/channels/made_channels.h"

namespace {

constexpr int kNotReady = 600, kMultiprocessors = 16, kMajor = 75, kMostShared = 97;

rm_model::MadeChannels channels;
enum : uintptr_t { kNothing = 1, kBeats = 2 };

struct Running {
  bool now = false;
  uint32_t* states = nullptr;
  uint64_t* page = nullptr;
  uint32_t rounds = 0;
} running;

int Query() {
  if (!running.now || !channels.Runs()) return running.now ? kNotReady : 0;
  const uint64_t beats = __atomic_add_fetch(&running.page[1], 1, __ATOMIC_RELAXED);
  if (__atomic_load_n(&running.page[0], __ATOMIC_RELAXED) == 0 && beats != running.rounds) return kNotReady;
  running.states[0] = static_cast<uint32_t>(beats);
  running.now = false;
  return 0;
}

}  // namespace

#define EXPORT __attribute__((visibility("default"))) int
extern "C" {
EXPORT cuInit(unsigned) { return 0; }
EXPORT cuDriverGetVersion(int* out) { return *out = 13000, 0; }
EXPORT cuDeviceGet(int* out, int) { return *out = 0, 0; }
EXPORT cuDeviceGetName(char* out, int, int) { return std::strcpy(out, "probe driver"), 0; }
EXPORT cuDeviceGetAttribute(int* out, int attribute, int) {
  *out = attribute == kMultiprocessors ? 2 : attribute == kMajor ? 9 : attribute == kMostShared ? 49152 : 0;
  return 0;
}
EXPORT cuDeviceTotalMem_v2(size_t* out, int) { return *out = 64 << 20, 0; }
EXPORT cuDevicePrimaryCtxRetain(void** out, int) {
  if (const char* const device = std::getenv("GPU_CHECK_CONTROL_DEVICE")) channels.Make(device);
  *out = &running;
  return 0;
}
EXPORT cuCtxSetCurrent(void*) { return 0; }
EXPORT cuStreamQuery(void*) { return Query(); }
EXPORT cuStreamSynchronize(void*) {
  while (Query() == kNotReady) {
  }
  return 0;
}
EXPORT cuCtxSynchronize() { return cuStreamSynchronize(nullptr); }
EXPORT cuModuleLoadData(void** out, const void*) { return *out = &running, 0; }
EXPORT cuModuleGetFunction(void** out, void*, const char* name) {
  *out = reinterpret_cast<void*>(std::strcmp(name, "beats") == 0 ? kBeats : kNothing);
  return 0;
}
EXPORT cuFuncSetAttribute(void*, int, int) { return 0; }
EXPORT cuMemAlloc_v2(uint64_t* out, size_t bytes) {
  return *out = reinterpret_cast<uint64_t>(std::calloc(1, bytes)), 0;
}
EXPORT cuMemFree_v2(uint64_t address) { return std::free(reinterpret_cast<void*>(address)), 0; }
EXPORT cuMemHostAlloc(void** out, size_t bytes, unsigned) { return *out = std::calloc(1, bytes), 0; }
EXPORT cuMemHostGetDevicePointer_v2(uint64_t* out, void* memory, unsigned) {
  return *out = reinterpret_cast<uint64_t>(memory), 0;
}
EXPORT cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
  return std::memcpy(reinterpret_cast<void*>(to), from, bytes), 0;
}
EXPORT cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
  return std::memcpy(to, reinterpret_cast<const void*>(from), bytes), 0;
}
// Copies wait for their channel, as kernels do.
EXPORT cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void*) {
  while (!channels.Runs()) {
  }
  return cuMemcpyHtoD_v2(to, from, bytes);
}
EXPORT cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void*) { return cuMemcpyDtoH_v2(to, from, bytes); }
EXPORT cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void*) {
  return cuMemcpyHtoD_v2(to, reinterpret_cast<const void*>(from), bytes);
}
EXPORT cuMemsetD8_v2(uint64_t to, unsigned char value, size_t bytes) {
  return std::memset(reinterpret_cast<void*>(to), value, bytes), 0;
}
EXPORT cuStreamCreate(void** out, unsigned) { return *out = &running, 0; }
EXPORT cuEventCreate(void** out, unsigned) { return *out = &running, 0; }
EXPORT cuEventRecord(void*, void*) { return 0; }
EXPORT cuEventSynchronize(void*) { return cuStreamSynchronize(nullptr); }
EXPORT cuLaunchKernel(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                      void** params, void**) {
  if (reinterpret_cast<uintptr_t>(function) != kBeats) return 0;
  running = {true, reinterpret_cast<uint32_t*>(*static_cast<uint64_t*>(params[0])),
             reinterpret_cast<uint64_t*>(*static_cast<uint64_t*>(params[1])), *static_cast<uint32_t*>(params[2])};
  return 0;
}
EXPORT cuLaunchKernelEx(const void*, void*, void**, void**) { return 801; }
EXPORT cuStreamBeginCapture_v2(void*, int) { return 801; }
EXPORT cuStreamEndCapture(void*, void**) { return 801; }
EXPORT cuGraphInstantiateWithFlags(void**, void*, unsigned long long) { return 801; }
EXPORT cuGraphLaunch(void*, void*) { return 801; }
EXPORT cuGetErrorName(int, const char** out) { return *out = "CUDA_ERROR_X", 0; }
}
