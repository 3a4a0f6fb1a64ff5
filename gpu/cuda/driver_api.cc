// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/driver_api.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <cstring>

namespace vgpud::driver {
namespace {

constexpr const char* kUsualLibrary = "libcuda.so.1";
constexpr uint64_t kNoFlags = 0;

// cuGetProcAddress_v2; `found` tells why there is nothing (CUdriverProcAddressQueryResult).
using GetProcAddress = Status (*)(const char* name, void** function, int version, uint64_t flags, int* found);

std::string VersionText(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

}  // namespace

std::string Api::Describe(Status status) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (GetErrorName(status, &name) != kOk || name == nullptr) name = "unknown error";
  if (GetErrorString(status, &text) != kOk || text == nullptr) return fmt::format("{} ({})", name, status);
  return fmt::format("{} ({}): {}", name, status, text);
}

Result<Api> LoadApi(const std::string& library) {
  const std::string name = library.empty() ? kUsualLibrary : library;
  void* const loaded = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr)
    return Fail(std::errc::no_such_file_or_directory,
                fmt::format("no CUDA driver: {}; install NVIDIA's driver (its package has libcuda.so.1), or use the "
                            "built-in GPU: vgpud --gpu soft",
                            ::dlerror()));
  const auto get = reinterpret_cast<GetProcAddress>(::dlsym(loaded, "cuGetProcAddress_v2"));
  const auto version_of = reinterpret_cast<decltype(Api::DriverGetVersion)>(::dlsym(loaded, "cuDriverGetVersion"));
  int version = 0;
  if (version_of == nullptr || version_of(&version) != kOk)
    return Fail(std::errc::not_supported,
                fmt::format("{} is no CUDA driver: it does not tell its version (cuDriverGetVersion)", name));
  if (version < kOldestDriver || get == nullptr)
    return Fail(std::errc::not_supported,
                fmt::format("the CUDA driver {} is too old: it is of CUDA {}, vgpud needs {} or newer; install a newer "
                            "driver",
                            name, VersionText(version), VersionText(kOldestDriver)));
  Api api{};
  const auto find = [&](const CallRow& row) {
    void* function = nullptr;
    int found = 0;
    return get(row.name, &function, row.version, kNoFlags, &found) == kOk ? function : nullptr;
  };
  if (const CallRow* const missing = FindCalls(kBackend, api, find))
    return Fail(std::errc::not_supported,
                fmt::format("the CUDA driver {} (CUDA {}) has no {} of version {}: its installation is damaged, "
                            "install it again",
                            name, VersionText(version), missing->name, VersionText(missing->version)));
  const auto optional = [&](const char* call, auto* place) {
    void* const function = ::dlsym(loaded, call);
    std::memcpy(place, &function, sizeof function);
  };
  optional("cuTensorMapEncodeIm2colWide", &api.TensorMapEncodeIm2colWide);
  optional("cuDeviceGetUuid", &api.DeviceGetCardUuid);
  optional("vgpuDescribeHostMemory", &api.DescribeHostMemory);
  return api;
}

}  // namespace vgpud::driver
