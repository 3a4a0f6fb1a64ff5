// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/driver/version.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "guest-driver-shim/libcuda/channel/channel_list.h"
#include "guest-driver-shim/libcuda/channel/vf_status.h"

namespace vgpud::cuda {
namespace {

constexpr int kMostDeviceFiles = 16;
constexpr int kOldest = 1000;  // no driver counts lower

// A host that is asked when the time is over may have its answer ready.
constexpr std::chrono::milliseconds kMoment{100};

// Takes the VF's into account.
void Consider(int error, const vgpu_status& status, HostAnswer* answer) {
  const int told = error == 0 ? static_cast<int>(std::min<uint32_t>(status.cuda_version, kDriverVersion)) : 0;
  if (told >= kOldest) answer->version = std::min(answer->version, told);
  answer->of_all &= error == 0 || error == ENOSYS || error == EPROTO;
}

HostAnswer AskAll() {
  if (const auto list = ChannelsOfEnvironment()) return AskHosts(list->sockets);
  HostAnswer answer;
  vgpu_status status{};
  for (int n = 0; n < kMostDeviceFiles; ++n) {
    const std::string path = "/dev/vgpu" + std::to_string(n);
    if (access(path.c_str(), R_OK) == 0) Consider(ReadStatusOfFile(path, &status), status, &answer);
  }
  return answer;
}

}  // namespace

HostAnswer AskHosts(const std::vector<std::string>& sockets) {
  HostAnswer answer;
  vgpu_status status{};
  const auto end = std::chrono::steady_clock::now() + kStatusPatience;
  for (const std::string& path : sockets) {
    if (path.starts_with("fd:")) continue;  // of a connection that is there already
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    Consider(ReadStatusOfSocket(path, &status, std::max(left, kMoment)), status, &answer);
  }
  return answer;
}

int HostVersions::Get() {
  MutexLock lock(mutex_);
  if (!asked_ || (!answer_.of_all && now_() >= ask_again_)) {
    answer_ = ask_();
    asked_ = true;
    ask_again_ = now_() + kWhile;
  }
  return answer_.version;
}

int DriverVersion() {
  static auto* const versions = new HostVersions(AskAll, HostVersions::Clock::now);
  return versions->Get();
}

}  // namespace vgpud::cuda
