// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/launcher/driver_api.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace {

constexpr char kLibrary[] = "libcuda.so.1";

driver::Calls Load() {
  void* const library = dlopen(kLibrary, RTLD_NOW);
  if (library == nullptr) {
    std::printf("FAILED %s can't be loaded: %s\n", kLibrary, dlerror());
    std::exit(1);
  }
  driver::Calls calls;
  const auto find = [library](const driver::CallRow& row) { return dlsym(library, row.symbol); };
  if (const auto* const missing = FindCalls(driver::kLauncher, calls, find)) {
    std::printf("FAILED %s has no %s\n", kLibrary, missing->symbol);
    std::exit(1);
  }
  return calls;
}

}  // namespace

const driver::Calls& Cuda() {
  static const driver::Calls calls = Load();
  return calls;
}

void Check(driver::Status result, const char* call) {
  if (result == driver::kOk) return;
  const char* name = "unknown error";
  const char* text = "";
  Cuda().GetErrorName(result, &name);
  Cuda().GetErrorString(result, &text);
  std::printf("FAILED %s: %s (%s)\n", call, name, text);
  std::exit(1);
}
