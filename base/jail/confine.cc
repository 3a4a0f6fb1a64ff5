// SPDX-License-Identifier: Apache-2.0
#include "base/jail/confine.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <grp.h>
#include <linux/securebits.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/jail/capabilities.h"
#include "base/jail/landlock.h"
#include "base/log.h"
#include "base/sanitizer.h"

namespace vgpud {
namespace {

// The directory only has to exist in the old root.
constexpr char kAnyDirectory[] = "/dev";

// The file that `from` is open on, at `path` in the file system that is mounted on kAnyDirectory.
Result<void> Place(const UniqueFd& from, const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
    if (::mkdir((kAnyDirectory + path.substr(0, slash)).c_str(), 0555) != 0 && errno != EEXIST)
      return FailErrno(fmt::format("a directory for {}", path));
  const std::string to = kAnyDirectory + path;
  const UniqueFd place{::open(to.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444)};
  if (!place) return FailErrno(fmt::format("a place for {}", path));
  const std::string what = fmt::format("/proc/self/fd/{}", from.get());
  if (::mount(what.c_str(), to.c_str(), nullptr, MS_BIND, nullptr) != 0)
    return FailErrno(fmt::format("mount of {}", path));
  return {};
}

// An empty file system that nobody can write becomes the root; the old one, with all under it but `keep`, is let go.
Result<void> EmptyRoot(std::span<const std::string> keep) {
  constexpr unsigned long kFlags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
  std::vector<std::pair<UniqueFd, std::string>> kept;
  for (const std::string& path : keep)
    if (UniqueFd file{::open(path.c_str(), O_PATH | O_CLOEXEC)}; file) kept.emplace_back(std::move(file), path);
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return FailErrno("own mounts");
  const bool empty = kept.empty();
  if (::mount("empty", kAnyDirectory, "tmpfs", empty ? kFlags : kFlags & ~MS_RDONLY,
              empty ? "size=4k,nr_inodes=1,mode=0555" : "size=64k,nr_inodes=256,mode=0555") != 0)
    return FailErrno("mount of an empty root");
  for (const auto& [file, path] : kept) TRY(Place(file, path));
  if (!empty && ::mount(nullptr, kAnyDirectory, nullptr, MS_REMOUNT | MS_BIND | kFlags, nullptr) != 0)
    return FailErrno("the root that nobody can write");
  if (::chdir(kAnyDirectory) != 0) return FailErrno("chdir to the empty root");
  // The new root is stacked on the old one and then uncovered (pivot_root(2), "pivot_root(".", ".")").
  if (::syscall(SYS_pivot_root, ".", ".") != 0) return FailErrno("pivot_root");
  if (::umount2(".", MNT_DETACH) != 0) return FailErrno("umount of the old root");
  if (::chdir("/") != 0) return FailErrno("chdir to /");
  return {};
}

bool HasNamespaces(Confinement kind) { return kind == Confinement::kUserNamespace || kind == Confinement::kNamespaces; }

// Mounts a /proc that has this process's threads by the numbers that its own namespace gives them.
Result<void> MountOwnProc() {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return FailErrno("own mounts");
  if (::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    return FailErrno("mount of its own one");
  return {};
}

Result<void> BecomeUser(uid_t user) {
  if (::setgroups(0, nullptr) != 0) return FailErrno("setgroups");
  if (::setresgid(user, user, user) != 0) return FailErrno(fmt::format("setresgid {}", user));
  if (::setresuid(user, user, user) != 0) return FailErrno(fmt::format("setresuid {}", user));
  return {};
}

}  // namespace

void PrepareForDriver(Confinement kind, const std::string& library) {
  if (kSanitizerBuild) return;
  if (HasNamespaces(kind)) {
    const auto mounted = MountOwnProc();
    if (!mounted) LOG(kInfo, "the driver gets the host's /proc: {}", mounted.error().context);
    return;
  }
  if (!HasLandlock()) return;
  std::vector<std::string> readable = {
      "/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/nvidia", "/etc/ssl", "/proc", "/sys"};
  std::error_code none;
  if (library.find('/') != std::string::npos)
    for (const auto& file : {std::filesystem::path(library), std::filesystem::weakly_canonical(library, none)})
      readable.push_back(file.parent_path().string());
  const char* const paths = std::getenv("LD_LIBRARY_PATH");
  std::istringstream list(paths != nullptr ? paths : "");
  for (std::string path; std::getline(list, path, ':');) readable.push_back(path);
  std::vector<std::string> writable = {"/proc/self", "/dev/null"};
  for (const auto& entry : std::filesystem::directory_iterator("/dev", none))
    if (entry.path().filename().string().starts_with("nvidia")) writable.push_back(entry.path().string());
  // Without it nothing but Landlock would be missing: the jail asks for the same.
  auto restricted = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? RestrictFiles(readable, writable)
                                                                  : Result<void>(FailErrno("no_new_privs"));
  if (!restricted) LOG(kWarning, "the driver may open every file of its user: {}", restricted.error().context);
}

std::optional<Confinement> ParseConfinement(std::string_view name) {
  const auto it = std::find(std::begin(kConfinementNames), std::end(kConfinementNames), name);
  if (it == std::end(kConfinementNames)) return std::nullopt;
  return static_cast<Confinement>(it - std::begin(kConfinementNames));
}

Result<void> EnterConfinement(Confinement kind, std::optional<uid_t> user, std::span<const std::string> keep) {
  if (kSanitizerBuild) return {};
  const rlimit nothing{0, 0};
  if (::setrlimit(RLIMIT_CORE, &nothing) != 0) return FailErrno("setrlimit(RLIMIT_CORE)");
  if (HasNamespaces(kind)) TRY(EmptyRoot(keep));
  constexpr unsigned long kNoRoot = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                                    SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                                    SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
  if (user) TRY(BecomeUser(*user));
  // Refused without privileges, where there is nothing to lock.
  (void)::prctl(PR_SET_SECUREBITS, kNoRoot, 0, 0, 0);
  TRY(KeepCapabilities({}));
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return FailErrno("no_new_privs");
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return FailErrno("PR_SET_DUMPABLE");
  if (!HasNamespaces(kind) && !keep.empty() && HasLandlock()) TRY(RestrictFiles({}, keep));
  return {};
}

void SetOomScore(int score) {
  const UniqueFd file{::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)};
  const std::string text = std::to_string(score);
  [[maybe_unused]] const auto n = ::write(file.get(), text.data(), text.size());
}

}  // namespace vgpud
