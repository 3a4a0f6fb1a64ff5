// SPDX-License-Identifier: Apache-2.0
// A container gets files and one variable; its image stays as it is, but for the cache of its dynamic linker
// (vgpuctl cdi --update-ldcache).
#include "vgpud/containers/cdi.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace vgpud::daemon {
namespace {

using Json = nlohmann::ordered_json;

// Names that begin with a digit came with it; nothing here is newer.
constexpr const char* kCdiVersion = "0.5.0";
constexpr std::string_view kLibrary = "libcuda.so.1";
// The same for all devices, so that a container may have several: libcuda.so.1 and libnvidia-ml.so.1 take every channel
// socket in it.
constexpr const char* kChannels = "/run/vgpud";
// Stands for all VFs, unless one of them is called so.
constexpr const char* kAll = "all";
// Where dynamic linkers look by themselves: of Debian and its kin, and of Fedora and its kin.
constexpr const char* kInContainer[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib64"};
// Seen from vgpuctl and vgpud: as built, and as installed.
constexpr const char* kOnHost[] = {"../guest-driver-shim/libcuda", "../lib/x86_64-linux-gnu/vgpud", "../lib/vgpud",
                                   "../lib64/vgpud"};

Json Mount(const std::string& host, const std::string& container, bool writable) {
  return {{"hostPath", host},
          {"containerPath", container},
          {"options", {"bind", writable ? "rw" : "ro", "nosuid", "nodev"}}};
}

Json DeviceOf(const CdiDevice& device) {
  Json mounts = Json::array();
  for (const CdiDevice::Vf& vf : device.vfs)
    mounts.push_back(Mount(vf.channel_socket, fmt::format("{}/{}.channel.sock", kChannels, vf.name), true));
  return {{"name", device.name}, {"containerEdits", {{"mounts", mounts}}}};
}

std::string RealPath(const std::string& path) {
  std::array<char, PATH_MAX> real{};
  return ::realpath(path.c_str(), real.data()) != nullptr ? real.data() : "";
}

std::string DirectoryOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

// libnvidia-ml.so.1, seen from libcuda's directory: as installed, and as built. "" if it is nowhere.
std::string NvmlBeside(const std::string& libcuda) {
  for (const char* place : {"libnvidia-ml.so.1", "../libnvidia-ml/libnvidia-ml.so.1"})
    if (const std::string real = RealPath(DirectoryOf(libcuda) + "/" + place); !real.empty()) return real;
  return "";
}

// vgpuctl, which is this program or lies next to it, as installed or as built; none where it does not, and in a pod,
// whose paths are not the host's.
Json Hooks() {
  if (::getenv("KUBERNETES_SERVICE_HOST") != nullptr) return Json::array();
  const std::string here = DirectoryOf(RealPath("/proc/self/exe"));
  for (const char* place : {"/vgpuctl", "/../tools/vgpuctl"}) {
    const std::string vgpuctl = RealPath(here + place);
    if (!vgpuctl.empty() && ::access(vgpuctl.c_str(), X_OK) == 0)
      return {{{"hookName", "createContainer"}, {"path", vgpuctl}, {"args", {"vgpuctl", "cdi", "--update-ldcache"}}}};
  }
  return Json::array();
}

// It is there whole or not at all: a container engine may read it at any time.
Result<void> Replace(const std::string& path, const std::string& text) {
  const std::string beside = fmt::format("{}.{}", path, ::getpid());
  const UniqueFd file{::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644)};
  if (!file) return FailErrno(fmt::format("cannot create {}", beside));
  const bool written = ::fchmod(file.get(), 0644) == 0 &&
                       ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       ::rename(beside.c_str(), path.c_str()) == 0;
  if (written) return {};
  const auto failed = FailErrno(fmt::format("cannot write {}", path));
  ::unlink(beside.c_str());
  return failed;
}

}  // namespace

Result<std::string> FindCudaLibrary(const std::string& given) {
  const std::string directory = DirectoryOf(RealPath("/proc/self/exe"));
  std::vector<std::string> places;
  if (given.empty())
    for (const char* place : kOnHost) places.push_back(fmt::format("{}/{}/{}", directory, place, kLibrary));
  else
    places.push_back(given);
  std::string looked;
  for (const std::string& place : places) {
    looked += (looked.empty() ? "" : ", ") + place;
    if (const std::string real = RealPath(place); !real.empty()) return real;
  }
  return Fail(std::errc::no_such_file_or_directory,
              fmt::format("{} of vgpud is not at {}: install libcuda1-vgpud, or say where it is with --library",
                          kLibrary, looked));
}

std::vector<LibraryMount> LibraryMounts(const std::string& libcuda) {
  const std::pair<std::string_view, std::string> libraries[] = {
      {kLibrary, libcuda}, {"libcuda.so", libcuda}, {"libnvidia-ml.so.1", NvmlBeside(libcuda)}};
  std::vector<LibraryMount> mounts;
  for (const auto& [name, on_host] : libraries)
    for (const char* place : kInContainer)
      if (!on_host.empty()) mounts.push_back({on_host, fmt::format("{}/{}", place, name)});
  return mounts;
}

std::string CdiTextOf(const std::string& kind, const std::vector<CdiDevice>& devices, const std::string& library) {
  if (devices.empty()) return "";
  Json described = Json::array();
  for (const CdiDevice& device : devices) described.push_back(DeviceOf(device));
  Json mounts = Json::array();
  for (const LibraryMount& each : LibraryMounts(library))
    mounts.push_back(Mount(each.on_host, each.in_container, false));
  Json edits = {{"env", {fmt::format("VGPU_CHANNEL={}", kChannels)}}, {"mounts", mounts}};
  if (Json hooks = Hooks(); !hooks.empty()) edits["hooks"] = std::move(hooks);
  const Json spec = {{"cdiVersion", kCdiVersion}, {"kind", kind}, {"devices", described}, {"containerEdits", edits}};
  return spec.dump(2) + "\n";
}

CdiFile CdiFileOf(const std::vector<CdiDevice::Vf>& vfs, const std::string& library) {
  CdiFile file;
  std::vector<CdiDevice> devices;
  CdiDevice all{.name = kAll, .vfs = {}};
  for (const CdiDevice::Vf& vf : vfs) {
    if (vf.name.empty() || std::isalnum(static_cast<unsigned char>(vf.name.back())) == 0) {
      file.left_out.push_back(vf.name);
      continue;
    }
    devices.push_back({.name = vf.name, .vfs = {vf}});
    all.vfs.push_back(vf);
  }
  const auto is_taken = [](const CdiDevice& each) { return each.name == kAll; };
  if (!devices.empty() && std::none_of(devices.begin(), devices.end(), is_taken)) devices.push_back(std::move(all));
  file.text = CdiTextOf(kCdiKind, devices, library);
  return file;
}

Result<void> WriteCdi(const std::string& path, const std::string& text) {
  if (!text.empty()) return Replace(path, text);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return FailErrno(fmt::format("cannot remove {}", path));
  return {};
}

}  // namespace vgpud::daemon
