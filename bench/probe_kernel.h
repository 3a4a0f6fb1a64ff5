// SPDX-License-Identifier: Apache-2.0
// A kernel of a program of bench/, through the driver API by its public names, so that one build runs with any
// libcuda.so.1. Whatever fails ends the program with status 2.
#pragma once

#include <dlfcn.h>
#include <fmt/core.h>

#include <cstdlib>

namespace vgpud::bench {

class ProbeKernel {
 public:
  // `ptx` is loaded on the first device.
  ProbeKernel(const char* ptx, const char* name) : cuda_(::dlopen("libcuda.so.1", RTLD_NOW)) {
    if (cuda_ == nullptr) Fail(::dlerror());
    void *context = nullptr, *module = nullptr;
    Call("cuInit", 0u);
    Call("cuDevicePrimaryCtxRetain", &context, 0);
    Call("cuCtxSetCurrent", context);
    Call("cuModuleLoadData", &module, static_cast<const void*>(ptx));
    Call("cuModuleGetFunction", &kernel_, module, name);
  }
  // One warp.
  void Launch(void** parameters) const {
    void* const none = nullptr;
    Call("cuLaunchKernel", kernel_, 1u, 1u, 1u, 32u, 1u, 1u, 0u, none, parameters, none);
  }
  void LaunchAndWait(void** parameters) const {
    Launch(parameters);
    Call("cuCtxSynchronize");
  }
  // A function of the driver API, by the name under which the library exports it.
  template <class... Arguments>
  void Call(const char* name, Arguments... arguments) const {
    const auto function = reinterpret_cast<int (*)(Arguments...)>(::dlsym(cuda_, name));
    if (function == nullptr) Fail(::dlerror());
    if (const int status = function(arguments...); status != 0) Fail(fmt::format("{}: {}", name, status).c_str());
  }

 private:
  [[noreturn]] static void Fail(const char* why) {
    fmt::print(stderr, "{}\n", why);
    std::exit(2);
  }

  void* const cuda_;
  void* kernel_ = nullptr;
};

}  // namespace vgpud::bench
