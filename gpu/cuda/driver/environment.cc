// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/driver/environment.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "base/log.h"
#include "gpu/cuda/driver/card_files.h"

namespace vgpud::driver {
namespace {

constexpr struct {
  const char* name;
  const char* value;  // nullptr: none
} kVariables[] = {
    // What a guest's program compiles is its own: no cache on the host's disk, which the jail would refuse.
    {"CUDA_CACHE_DISABLE", "1"},
    // The driver connects to whoever listens in that folder, /tmp/nvidia-mps by default, and waits for an answer: a
    // folder that nobody can make.
    {"CUDA_MPS_PIPE_DIRECTORY", "/proc/no-mps"},
    // A first launch would load code and wait for all that runs.
    {"CUDA_MODULE_LOADING", "EAGER"},
    {"CUDA_FORCE_PRELOAD_LIBRARIES", "1"},
    // Profiles and settings of a user.
    {"HOME", nullptr},
};

constexpr struct {
  const char* name;
  const char* without;
} kCompilers[] = {
    {"libnvidia-ptxjitcompiler.so.1", "programs whose kernels are PTX get CUDA_ERROR_JIT_COMPILER_NOT_FOUND"},
    {"libnvidia-nvvm.so.4", "programs that link code for link-time optimization get an error"},
};

}  // namespace

void SetDriverEnvironment(const std::string& address) {
  for (const auto& variable : kVariables)
    if (variable.value != nullptr)
      ::setenv(variable.name, variable.value, 1);
    else
      ::unsetenv(variable.name);
  if (address.empty()) return;
  if (const std::string uuid = ReadCardFacts(address).uuid; !uuid.empty())
    ::setenv("CUDA_VISIBLE_DEVICES", uuid.c_str(), 1);
}

void LoadCompilers(const std::string& library) {
  const auto folder = std::filesystem::path(library).parent_path();
  for (const auto& compiler : kCompilers) {
    if (::dlopen(compiler.name, RTLD_NOW | RTLD_LOCAL) != nullptr) continue;
    if (!folder.empty() && ::dlopen((folder / compiler.name).c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) continue;
    LOG(kWarning, "{}, a part of the driver, can't be loaded: {}: {}", compiler.name, ::dlerror(), compiler.without);
  }
}

}  // namespace vgpud::driver
