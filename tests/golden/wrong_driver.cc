// SPDX-License-Identifier: Apache-2.0
// A libcuda that is wrong on purpose: our own one, but for PTX with an instruction that the environment names. So a
// test sees that golden_cuda finds what differs. WRONG_DRIVER is words "WHAT=INSTRUCTION":
//   values=add.rz.f32   the lowest bit of the first result is the other one
//   refuses=...         the module is not taken (CUDA_ERROR_INVALID_PTX)
//   faults=...          the kernel ends with CUDA_ERROR_ILLEGAL_INSTRUCTION, and so does all that follows
#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>
#include <string>

namespace {

constexpr int kInvalidPtx = 218, kIllegalInstruction = 715;

std::string loaded;
bool fault = false;

// Is the instruction of this word of WRONG_DRIVER in the module that was loaded last?
bool Told(const char* what) {
  const char* const words = std::getenv("WRONG_DRIVER");
  const std::string told = std::string(" ") + (words == nullptr ? "" : words) + " ",
                    key = std::string(" ") + what + "=";
  const size_t at = told.find(key);
  if (at == std::string::npos) return false;
  const size_t begin = at + key.size();
  return loaded.find(told.substr(begin, told.find(' ', begin) - begin) + " ") != std::string::npos;
}

template <class F>
F Next(const char* name, F) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}
#define NEXT(name) Next(#name, &name)

}  // namespace

extern "C" {
// All other calls are those of the library that this one needs, by this reference.
int cuInit(unsigned);
__attribute__((visibility("default"))) int (*wrong_driver_needs)(unsigned) = &cuInit;

__attribute__((visibility("default"))) int cuModuleLoadData(void** module, const void* image) {
  loaded = static_cast<const char*>(image);
  return Told("refuses") ? kInvalidPtx : NEXT(cuModuleLoadData)(module, image);
}

__attribute__((visibility("default"))) int cuCtxSynchronize() {
  fault = fault || Told("faults");
  return fault ? kIllegalInstruction : NEXT(cuCtxSynchronize)();
}

__attribute__((visibility("default"))) int cuMemcpyDtoH_v2(void* to, unsigned long long from, size_t bytes) {
  const int status = NEXT(cuMemcpyDtoH_v2)(to, from, bytes);
  if (status == 0 && bytes > 0 && Told("values")) *static_cast<unsigned char*>(to) ^= 1;
  return status;
}
}
