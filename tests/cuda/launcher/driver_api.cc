// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/launcher/driver_api.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace driver {
namespace {

constexpr char kLibrary[] = "libcuda.so.1";

Api Load() {
  void* library = dlopen(kLibrary, RTLD_NOW);
  if (library == nullptr) {
    std::printf("FAILED %s can't be loaded: %s\n", kLibrary, dlerror());
    std::exit(1);
  }
  const auto find = [&](const char* symbol) {
    void* address = dlsym(library, symbol);
    if (address != nullptr) return address;
    std::printf("FAILED %s has no %s\n", kLibrary, symbol);
    std::exit(1);
  };
  Api api;
#define DRIVER_API_LOAD(member, symbol, parameters) api.member = reinterpret_cast<decltype(api.member)>(find(symbol));
  DRIVER_API(DRIVER_API_LOAD)
#undef DRIVER_API_LOAD
  return api;
}

}  // namespace

const Api& Cuda() {
  static const Api api = Load();
  return api;
}

void Check(Result result, const char* call) {
  if (result == 0) return;
  const char* name = "unknown error";
  const char* text = "";
  Cuda().GetErrorName(result, &name);
  Cuda().GetErrorString(result, &text);
  std::printf("FAILED %s: %s (%s)\n", call, name, text);
  std::exit(1);
}

}  // namespace driver
