// SPDX-License-Identifier: Apache-2.0
#include "vgpud/config/config.h"

#include <fmt/core.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <vector>

#include "vgpud/model/api.h"

namespace vgpud::daemon {
namespace {

Result<std::string> OwnDirectory() {
  std::array<char, PATH_MAX> path{};
  const ssize_t n = ::readlink("/proc/self/exe", path.data(), path.size());
  if (n <= 0) return FailErrno("readlink /proc/self/exe");
  const std::string own(path.data(), static_cast<size_t>(n));
  return own.substr(0, own.rfind('/'));
}

Result<std::string> FindHelper(const std::string& name, const std::string& built_in, const std::string& own_dir) {
  std::vector<std::string> places;
  if (const char* dir = std::getenv("VGPUD_LIBEXEC"); dir != nullptr && *dir != '\0') {
    places.push_back(fmt::format("{}/{}", dir, name));
  } else {
    places.push_back(fmt::format("{}/../{}/{}", own_dir, built_in, name));
    places.push_back(fmt::format("{}/../libexec/vgpud/{}", own_dir, name));
  }
  std::string looked;
  for (const std::string& place : places) {
    if (::access(place.c_str(), X_OK) == 0) return place;
    looked += (looked.empty() ? "" : ", ") + place;
  }
  return Fail(std::errc::no_such_file_or_directory,
              fmt::format("helper program {} not found (looked at {}); build it or set VGPUD_LIBEXEC to its directory",
                          name, looked));
}

uint32_t CpusOfThisProcess() {
  cpu_set_t allowed;
  return ::sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? static_cast<uint32_t>(CPU_COUNT(&allowed)) : 1;
}

uint64_t HostRamBytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), bytes = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && bytes > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(bytes) : 0;
}

std::string DefaultStateDir(const std::string& runtime_dir) {
  if (const char* dir = std::getenv("VGPUD_STATE_DIR"); dir != nullptr && *dir != '\0') return dir;
  return runtime_dir == control::kSystemRuntimeDir ? "/var/lib/vgpud" : runtime_dir + "/state";
}

}  // namespace

bool Config::metrics_on_low_port() const {
  const size_t colon = metrics_listen.rfind(':');
  return colon != std::string::npos && std::strtoul(metrics_listen.c_str() + colon + 1, nullptr, 10) < 1024;
}

uint32_t SoftGpuThreadsFor(uint32_t cpus) { return cpus <= 2 ? 1 : std::min((cpus + 1) / 2, 16u); }

Result<void> ResolveConfig(Config& config) {
  if (config.gpus.empty()) config.gpus.push_back(config);
  const uint32_t cpus = std::max(1u, CpusOfThisProcess() / static_cast<uint32_t>(config.gpus.size()));
  if (config.soft_gpu_threads == 0) config.soft_gpu_threads = SoftGpuThreadsFor(cpus);
  for (GpuConfig& gpu : config.gpus) {
    if (gpu.gpu.is_cuda()) gpu.soft_gpu_threads = 1;
    if (gpu.soft_gpu_threads == 0) gpu.soft_gpu_threads = config.soft_gpu_threads;
  }
  if (config.host_ram_bytes == 0) config.host_ram_bytes = HostRamBytes();
  if (config.runtime_dir.empty()) config.runtime_dir = control::DefaultRuntimeDir();
  if (config.state_dir.empty()) config.state_dir = DefaultStateDir(config.runtime_dir);
  const std::string own_dir = TRY(OwnDirectory());
  config.vf_program = TRY(FindHelper("vgpud-vf", "vfio", own_dir));
  config.exec_program = TRY(FindHelper("vgpud-exec", "gpu", own_dir));
  if (config.keep_vfs) config.keep_program = TRY(FindHelper("vgpud-keep", "vgpud", own_dir));
  return {};
}

}  // namespace vgpud::daemon
