// SPDX-License-Identifier: Apache-2.0
// The hook of a container with a VF. It runs as the container engine does, in the container's mounts, whose root is not
// yet that of a process; all that it takes from the container is the path of that root, which the engine has written.
#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/fd.h"
#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/cdi.h"

namespace vgpud::tools {
namespace {

constexpr size_t kMostBytes = size_t{16} << 20;
// Ubuntu's ldconfig is a script around the second one.
constexpr const char* kLdconfig[] = {"/sbin/ldconfig.real", "/sbin/ldconfig", "/usr/sbin/ldconfig"};
// Where cdi.cc puts libraries, wherever else the image's own configuration looks.
constexpr const char* kFolders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib64"};

Result<std::string> ReadAll(int fd, const std::string& what) {
  std::string text;
  std::array<char, 65536> piece;
  for (;;) {
    const ssize_t n = ::read(fd, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailErrno("cannot read " + what);
    if (n == 0) return text;
    text.append(piece.data(), static_cast<size_t>(n));
    if (text.size() > kMostBytes) return Fail(std::errc::file_too_large, what + " is too long");
  }
}

Result<CtlJson> ReadJson(int fd, const std::string& what) {
  const auto text = TRY(ReadAll(fd, what));
  CtlJson json = CtlJson::parse(text, nullptr, false);
  if (!json.is_object()) return Fail(std::errc::protocol_error, what + " is no JSON object");
  return json;
}

// The state names the bundle, and the bundle's configuration the root, from there.
Result<std::string> RootOfContainer() {
  const CtlJson state = TRY(ReadJson(STDIN_FILENO, "the container's state on standard input"));
  const std::string bundle = Text(state, "bundle");
  if (bundle.empty() || bundle.front() != '/')
    return Fail(std::errc::protocol_error, "the container's state names no bundle");
  const std::string path = bundle + "/config.json";
  const UniqueFd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file) return FailErrno("cannot open " + path);
  const CtlJson config = TRY(ReadJson(file.get(), path));
  const std::string root = config.contains("root") ? Text(config["root"], "path") : "";
  if (root.empty()) return Fail(std::errc::protocol_error, path + " names no root");
  return root.front() == '/' ? root : bundle + "/" + root;
}

Result<void> RunLdconfig(const std::string& root) {
  std::array<char*, 6> arguments{};
  std::string words[] = {"ldconfig", "-r", root, kFolders[0], kFolders[1]};
  for (size_t i = 0; i < std::size(words); ++i) arguments[i] = words[i].data();
  char* no_environment[] = {nullptr};
  for (const char* program : kLdconfig) {
    if (::access(program, X_OK) != 0) continue;
    pid_t child = -1;
    int status = -1;
    if (const int error = ::posix_spawn(&child, program, nullptr, nullptr, arguments.data(), no_environment))
      return Fail(std::errc(error), fmt::format("cannot start {}", program));
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (status == 0) return {};
    return Fail(std::errc::io_error, fmt::format("{} -r {} ended with status {:#x}", program, root, status));
  }
  return Fail(std::errc::no_such_file_or_directory, "this host has no ldconfig");
}

}  // namespace

int UpdateLdcache() {
  const auto root = RootOfContainer();
  const auto done = root ? RunLdconfig(*root) : Result<void>(tl::unexpected(root.error()));
  if (!done)
    (void)Complain(kExitOk, fmt::format("the container's dynamic linker is not told of the VF's libraries: {}",
                                        done.error().context));
  return kExitOk;
}

}  // namespace vgpud::tools
