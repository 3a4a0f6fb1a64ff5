// SPDX-License-Identifier: Apache-2.0
// vgpuctl cdi: VFs as devices of containers, in the words of the Container Device Interface (cncf-tags), which podman,
// containerd, CRI-O and docker read. Nothing in it is run: a container gets files and variables, and its image stays as
// it is.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "tools/vgpuctl/ask.h"

namespace vgpud::tools {
namespace {

// Names that begin with a digit came with it; nothing here is newer.
constexpr const char* kCdiVersion = "0.5.0";
constexpr const char* kKind = "vgpud.dev/vf";
constexpr std::string_view kLibrary = "libcuda.so.1";
// Where dynamic linkers look by themselves: of Debian and its kin, and of Fedora and its kin.
constexpr const char* kInContainer[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib64"};
// Seen from vgpuctl: as built, and as installed.
constexpr const char* kOnHost[] = {"../guest-driver-shim/libcuda", "../lib/x86_64-linux-gnu/vgpud", "../lib/vgpud",
                                   "../lib64/vgpud"};

Result<std::string> FindLibrary(const CtlArgs& args) {
  std::array<char, PATH_MAX> own{};
  const ssize_t n = ::readlink("/proc/self/exe", own.data(), own.size() - 1);
  if (n <= 0) return FailErrno("readlink /proc/self/exe");
  const std::string_view self(own.data(), static_cast<size_t>(n));
  const std::string_view directory = self.substr(0, self.rfind('/'));
  std::vector<std::string> places;
  if (args.library.empty())
    for (const char* place : kOnHost) places.push_back(fmt::format("{}/{}/{}", directory, place, kLibrary));
  else
    places.push_back(args.library);
  std::string looked;
  for (const std::string& place : places) {
    looked += (looked.empty() ? "" : ", ") + place;
    std::array<char, PATH_MAX> real{};
    if (::realpath(place.c_str(), real.data()) != nullptr) return std::string(real.data());
  }
  return Fail(std::errc::no_such_file_or_directory,
              fmt::format("{} of vgpud is not at {}: install libcuda1-vgpud, or say where it is with --library",
                          kLibrary, looked));
}

CtlJson Mount(const std::string& host, const std::string& container, bool writable) {
  return {{"hostPath", host},
          {"containerPath", container},
          {"options", {"bind", writable ? "rw" : "ro", "nosuid", "nodev"}}};
}

CtlJson DeviceOf(const std::string& name, const std::string& socket) {
  const std::string inside = fmt::format("/run/vgpud/{}.sock", name);
  return {{"name", name},
          {"containerEdits", {{"env", {"VGPU_CHANNEL=" + inside}}, {"mounts", {Mount(socket, inside, true)}}}}};
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

int CmdCdi(const CtlArgs& args) {
  const auto library = FindLibrary(args);
  if (!library) return Complain(kExitFailed, library.error().context);
  const auto answer = Ask(args, "GET", "/v1/vfs");
  if (!answer) return answer.error();
  CtlJson mounts = CtlJson::array(), devices = CtlJson::array();
  for (const char* place : kInContainer)
    mounts.push_back(Mount(*library, fmt::format("{}/{}", place, kLibrary), false));
  for (const CtlJson& vf : answer->json.value("vfs", CtlJson::array())) {
    const std::string name = Text(vf, "name"), socket = Text(vf, "channel_socket");
    if (socket.empty()) continue;  // it is lost, and has none
    if (std::isalnum(static_cast<unsigned char>(name.back())) == 0) {
      (void)Complain(kExitOk,
                     fmt::format("vf \"{}\" is left out: names of such devices end with a letter or a digit", name));
      continue;
    }
    devices.push_back(DeviceOf(name, socket));
  }
  const CtlJson spec = {
      {"cdiVersion", kCdiVersion}, {"kind", kKind}, {"devices", devices}, {"containerEdits", {{"mounts", mounts}}}};
  const std::string text = spec.dump(2) + "\n";
  if (args.file.empty() || args.file == "-") return PrintRaw(text);
  // A file without devices is refused by those who read it.
  if (devices.empty()) {
    if (::unlink(args.file.c_str()) != 0 && errno != ENOENT)
      return Complain(kExitFailed, fmt::format("cannot remove {}", args.file));
    fmt::print("there is no VF: {} is not there either\n", args.file);
    return kExitOk;
  }
  if (const auto done = Replace(args.file, text); !done) return Complain(kExitFailed, done.error().context);
  for (const CtlJson& device : devices) fmt::print("{}={}\n", kKind, Text(device, "name"));
  return kExitOk;
}

}  // namespace vgpud::tools
