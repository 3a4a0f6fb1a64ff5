// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/driver/version.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "guest-driver-shim/libcuda/channel/channel_list.h"
#include "guest-driver-shim/libcuda/channel/vf_status.h"

namespace vgpud::cuda {
namespace {

constexpr int kMostDeviceFiles = 16;
constexpr int kOldest = 1000;  // no driver counts lower

// Takes the VF's into account. False: its host has not answered.
bool Consider(int error, const vgpu_status& status, int* version) {
  const int told = error == 0 ? static_cast<int>(std::min<uint32_t>(status.cuda_version, kDriverVersion)) : 0;
  if (told >= kOldest) *version = std::min(*version, told);
  return error == 0 || error == ENOSYS || error == EPROTO;
}

}  // namespace

int DriverVersion() {
  static std::atomic<int> answered{0};
  if (const int known = answered.load()) return known;
  int version = kDriverVersion;
  bool all = true;
  vgpu_status status{};
  if (const auto list = ChannelsOfEnvironment()) {
    for (const std::string& path : list->sockets)
      if (!path.starts_with("fd:")) all &= Consider(ReadStatusOfSocket(path, &status), status, &version);
  } else {
    for (int n = 0; n < kMostDeviceFiles; ++n) {
      const std::string path = "/dev/vgpu" + std::to_string(n);
      if (access(path.c_str(), R_OK) == 0) all &= Consider(ReadStatusOfFile(path, &status), status, &version);
    }
  }
  if (all) answered = version;
  return version;
}

}  // namespace vgpud::cuda
