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
    launch_ = Find<decltype(launch_)>("cuLaunchKernel");
    synchronize_ = Find<decltype(synchronize_)>("cuCtxSynchronize");
  }
  // One warp.
  void Launch(void** parameters) const {
    Check("cuLaunchKernel", launch_(kernel_, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
  }
  void LaunchAndWait(void** parameters) const {
    Launch(parameters);
    Wait();
  }
  void Wait() const { Check("cuCtxSynchronize", synchronize_()); }
  // A function of the driver API, by the name under which the library exports it.
  template <class... Arguments>
  void Call(const char* name, Arguments... arguments) const {
    Check(name, Find<int (*)(Arguments...)>(name)(arguments...));
  }
  template <class Function>
  Function Find(const char* name) const {
    const auto function = reinterpret_cast<Function>(::dlsym(cuda_, name));
    if (function == nullptr) Fail(::dlerror());
    return function;
  }

 private:
  static void Check(const char* name, int status) {
    if (status != 0) Fail(fmt::format("{}: {}", name, status).c_str());
  }
  [[noreturn]] static void Fail(const char* why) {
    fmt::print(stderr, "{}\n", why);
    std::exit(2);
  }

  void* const cuda_;
  void* kernel_ = nullptr;
  int (*launch_)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                 void**) = nullptr;
  int (*synchronize_)() = nullptr;
};

}  // namespace vgpud::bench
