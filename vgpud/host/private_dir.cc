// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/private_dir.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace vgpud::daemon {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kGroupOrOthersWrite = S_IWGRP | S_IWOTH;

// Why a directory is not good enough; empty: it is. `last`: the one that was asked for, not one on the way.
std::string WhyNot(const struct stat& st, bool last) {
  const uid_t us = ::geteuid();
  if (st.st_uid != us && (last || st.st_uid != 0))
    return fmt::format("belongs to uid {}, vgpud runs as uid {}", st.st_uid, us);
  if (last && (st.st_mode & kGroupOrOthersWrite) != 0)
    return fmt::format("can be written by others (mode {:04o})", st.st_mode & 07777);
  if (!last && (st.st_mode & S_IWOTH) != 0 && (st.st_mode & S_ISVTX) == 0)
    return fmt::format("can be written by anybody (mode {:04o}, without the sticky bit)", st.st_mode & 07777);
  return {};
}

struct Wanted {
  std::string_view what;
  std::string_view option;
  mode_t mode;
};

// One step down. Every step is checked through the descriptor that the next one starts from.
Result<UniqueFd> Enter(const UniqueFd& parent, const std::string& name, const std::string& path, bool last,
                       const Wanted& wanted) {
  const auto fail = [&](std::errc code, const std::string& why) {
    return Fail(code, fmt::format("{}: {} {}: remove it or change that, or name another with {}", wanted.what, path,
                                  why, wanted.option));
  };
  // On the way to it, directories need not be readable.
  const int flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | (last ? O_RDONLY : O_PATH);
  UniqueFd directory{::openat(parent.get(), name.c_str(), flags)};
  const bool made = !directory && errno == ENOENT;
  if (made) {
    if (::mkdirat(parent.get(), name.c_str(), 0700) != 0 && errno != EEXIST)
      return FailErrno(fmt::format("{}: cannot create {} (name another with {})", wanted.what, path, wanted.option));
    directory.Reset(::openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  if (!directory && (errno == ELOOP || errno == ENOTDIR))
    return fail(std::errc::not_a_directory, "is a link or no directory");
  if (!directory) return FailErrno(fmt::format("{}: cannot open {}", wanted.what, path));
  struct stat st {};
  if (::fstat(directory.get(), &st) != 0) return FailErrno(fmt::format("{}: cannot look at {}", wanted.what, path));
  if (const std::string why = WhyNot(st, last); !why.empty()) return fail(std::errc::operation_not_permitted, why);
  // Whatever the umask. After the look: it might be somebody else's by now.
  if (made && ::fchmod(directory.get(), wanted.mode) != 0)
    return FailErrno(fmt::format("{}: cannot set the mode of {}", wanted.what, path));
  return directory;
}

// Links on the way are followed where only root or this user can have put them: the way is walked again without any,
// and each directory of it checked.
Result<fs::path> RealWay(const std::string& path, const Wanted& wanted) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error).lexically_normal();
  const fs::path given = whole.has_filename() ? whole : whole.parent_path();
  const fs::path way = error ? fs::path() : fs::weakly_canonical(given.parent_path(), error);
  if (error) return Fail(std::errc::invalid_argument, fmt::format("{}: {}: {}", wanted.what, path, error.message()));
  return way / given.filename();
}

}  // namespace

Result<UniqueFd> OpenPrivateDir(const std::string& path, mode_t mode, std::string_view what, std::string_view option) {
  const Wanted wanted{what, option, mode};
  const fs::path real = TRY(RealWay(path, wanted));
  UniqueFd directory{::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!directory) return FailErrno("cannot open /");
  fs::path so_far = "/";
  for (auto part = real.begin(); part != real.end(); ++part) {
    if (*part == "/") continue;
    so_far /= *part;
    directory = TRY(Enter(directory, *part, so_far, std::next(part) == real.end(), wanted));
  }
  return directory;
}

Result<UniqueFd> OpenPrivateFile(const UniqueFd& directory, const std::string& name) {
  UniqueFd file{::openat(directory.get(), name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600)};
  if (!file && errno == ELOOP)
    return Fail(std::errc::too_many_symbolic_link_levels, fmt::format("{} is a link: remove it", name));
  if (!file) return FailErrno(fmt::format("cannot open {}", name));
  struct stat st {};
  if (::fstat(file.get(), &st) != 0) return FailErrno(fmt::format("cannot look at {}", name));
  if (!S_ISREG(st.st_mode) || st.st_uid != ::geteuid() || st.st_nlink != 1)
    return Fail(std::errc::operation_not_permitted,
                fmt::format("{} is not a file of vgpud's own (uid {}, {} names): remove it", name, st.st_uid,
                            static_cast<uint64_t>(st.st_nlink)));
  return file;
}

}  // namespace vgpud::daemon
