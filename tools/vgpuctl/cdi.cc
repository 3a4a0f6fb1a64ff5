// SPDX-License-Identifier: Apache-2.0
// Nothing in it is run: a container gets files and variables, and its image stays as it is.
#include "tools/vgpuctl/cdi.h"

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
constexpr std::string_view kLibrary = "libcuda.so.1";
// Where dynamic linkers look by themselves: of Debian and its kin, and of Fedora and its kin.
constexpr const char* kInContainer[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib64"};
// Seen from vgpuctl: as built, and as installed.
constexpr const char* kOnHost[] = {"../guest-driver-shim/libcuda", "../lib/x86_64-linux-gnu/vgpud", "../lib/vgpud",
                                   "../lib64/vgpud"};

CtlJson Mount(const std::string& host, const std::string& container, bool writable) {
  return {{"hostPath", host},
          {"containerPath", container},
          {"options", {"bind", writable ? "rw" : "ro", "nosuid", "nodev"}}};
}

CtlJson DeviceOf(const CdiDevice& device) {
  CtlJson mounts = CtlJson::array();
  std::string channels;
  for (const CdiDevice::Vf& vf : device.vfs) {
    const std::string inside = fmt::format("/run/vgpud/{}.sock", vf.name);
    channels += (channels.empty() ? "" : ",") + inside;
    mounts.push_back(Mount(vf.channel_socket, inside, true));
  }
  return {{"name", device.name}, {"containerEdits", {{"env", {"VGPU_CHANNEL=" + channels}}, {"mounts", mounts}}}};
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
  std::array<char, PATH_MAX> own{};
  const ssize_t n = ::readlink("/proc/self/exe", own.data(), own.size() - 1);
  if (n <= 0) return FailErrno("readlink /proc/self/exe");
  const std::string_view self(own.data(), static_cast<size_t>(n));
  const std::string_view directory = self.substr(0, self.rfind('/'));
  std::vector<std::string> places;
  if (given.empty())
    for (const char* place : kOnHost) places.push_back(fmt::format("{}/{}/{}", directory, place, kLibrary));
  else
    places.push_back(given);
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

std::string CdiTextOf(const std::string& kind, const std::vector<CdiDevice>& devices, const std::string& library) {
  if (devices.empty()) return "";
  CtlJson mounts = CtlJson::array(), described = CtlJson::array();
  for (const char* place : kInContainer) mounts.push_back(Mount(library, fmt::format("{}/{}", place, kLibrary), false));
  for (const CdiDevice& device : devices) described.push_back(DeviceOf(device));
  const CtlJson spec = {
      {"cdiVersion", kCdiVersion}, {"kind", kind}, {"devices", described}, {"containerEdits", {{"mounts", mounts}}}};
  return spec.dump(2) + "\n";
}

Result<std::string> CdiText(const std::string& vfs, const std::string& library) {
  const CtlJson answer = CtlJson::parse(vfs, nullptr, false);
  if (!answer.is_object()) return Fail(std::errc::protocol_error, "vgpud answered without JSON");
  std::vector<CdiDevice> devices;
  for (const CtlJson& vf : answer.value("vfs", CtlJson::array())) {
    const std::string name = Text(vf, "name"), socket = Text(vf, "channel_socket");
    if (name.empty() || socket.empty()) continue;  // it is lost, and has none
    if (std::isalnum(static_cast<unsigned char>(name.back())) == 0) {
      (void)Complain(kExitOk,
                     fmt::format("vf \"{}\" is left out: names of such devices end with a letter or a digit", name));
      continue;
    }
    devices.push_back({.name = name, .vfs = {{name, socket}}});
  }
  return CdiTextOf(kCdiKind, devices, library);
}

Result<void> WriteCdi(const std::string& path, const std::string& text) {
  if (!text.empty()) return Replace(path, text);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return FailErrno(fmt::format("cannot remove {}", path));
  return {};
}

int CmdCdi(const CtlArgs& args) {
  const auto library = FindCudaLibrary(args.library);
  if (!library) return Complain(kExitFailed, library.error().context);
  const auto vfs = AskForText(args, "/v1/vfs");
  if (!vfs) return vfs.error();
  const auto text = CdiText(*vfs, *library);
  if (!text) return Complain(kExitFailed, text.error().context);
  if (args.file.empty() || args.file == "-") return PrintRaw(*text);
  if (const auto done = WriteCdi(args.file, *text); !done) return Complain(kExitFailed, done.error().context);
  if (text->empty()) fmt::print("there is no VF: {} is not there either\n", args.file);
  const CtlJson spec = CtlJson::parse(*text, nullptr, false);
  for (const CtlJson& device : spec.is_object() ? spec["devices"] : CtlJson::array())
    fmt::print("{}={}\n", kCdiKind, Text(device, "name"));
  return kExitOk;
}

}  // namespace vgpud::tools
