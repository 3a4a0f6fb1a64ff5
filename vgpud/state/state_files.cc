// SPDX-License-Identifier: Apache-2.0
#include "vgpud/state/state_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "vgpud/host/private_dir.h"

namespace vgpud::daemon {
namespace {

// A child of a daemon that was killed while it made it holds the lock until it is a program of its own.
constexpr Ns kLockLimit = std::chrono::seconds{1};
constexpr Ns kTryLockEvery = std::chrono::milliseconds{10};
// Of a file that is being written: hidden, so that it is never taken for one that is whole.
constexpr std::string_view kUnfinished = ".new-";

Result<void> WriteAll(const UniqueFd& file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(file.get(), text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return FailErrno("write");
    text.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<StateFiles>> StateFiles::Open(const std::string& directory, const std::string& what,
                                                     const std::string& option) {
  UniqueFd opened = TRY(OpenPrivateDir(directory, 0750, what, option));
  const TimePoint end = Now() + kLockLimit;
  while (::flock(opened.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return FailErrno(fmt::format("{}: cannot lock {}", what, directory));
    if (Now() > end)
      return Fail(std::errc::device_or_resource_busy,
                  fmt::format("{}: {} belongs to another vgpud that runs; stop it or name another directory with {}",
                              what, directory, option));
    std::this_thread::sleep_for(kTryLockEvery);
  }
  return std::unique_ptr<StateFiles>(new StateFiles(directory, std::move(opened)));
}

Result<std::string> StateFiles::Read(const std::string& name) const {
  const UniqueFd file{
      ::openat(directory_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)};
  if (!file && errno == ELOOP) return Fail(std::errc::too_many_symbolic_link_levels, "it is a link");
  if (!file) return FailErrno("it cannot be opened");
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) return FailErrno("it cannot be looked at");
  const auto refuse = [](std::string why) { return Fail(std::errc::operation_not_permitted, std::move(why)); };
  if (!S_ISREG(about.st_mode)) return refuse("it is no ordinary file");
  if (about.st_uid != ::geteuid())
    return refuse(fmt::format("it belongs to uid {}, vgpud runs as uid {}", about.st_uid, ::geteuid()));
  if (about.st_nlink != 1) return refuse(fmt::format("it has {} names", static_cast<uint64_t>(about.st_nlink)));
  if ((about.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return refuse(fmt::format("others may write to it (mode {:04o})", about.st_mode & 07777));
  std::string text(kMostBytes + 1, '\0');
  size_t got = 0;
  for (ssize_t n = 1; n != 0 && got < text.size(); got += static_cast<size_t>(std::max<ssize_t>(n, 0))) {
    n = ::read(file.get(), text.data() + got, text.size() - got);
    if (n < 0 && errno != EINTR) return FailErrno("it cannot be read");
  }
  if (got > kMostBytes) return refuse(fmt::format("it has more than {} bytes", kMostBytes));
  text.resize(got);
  return text;
}

Result<std::vector<StateFiles::File>> StateFiles::ReadAll(const std::string& suffix) {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing{::opendir(path_.c_str()), &::closedir};
  if (listing == nullptr) return FailErrno(fmt::format("cannot read {}", path_));
  std::vector<std::string> names;
  for (const dirent* entry; (entry = ::readdir(listing.get())) != nullptr;) {
    const std::string name = entry->d_name;
    if (name.starts_with(kUnfinished)) ::unlinkat(directory_.get(), name.c_str(), 0);
    if (!name.starts_with('.') && name.ends_with(suffix)) names.push_back(name);
  }
  if (names.size() > kMostFiles)
    return Fail(std::errc::file_too_large, fmt::format("{} has {} files that end in {}, more than {}: move some away",
                                                       path_, names.size(), suffix, kMostFiles));
  std::sort(names.begin(), names.end());
  std::vector<File> files;
  for (const std::string& name : names) files.push_back({name, Read(name)});
  return files;
}

Result<void> StateFiles::Replace(const std::string& name, const std::string& text) {
  const std::string unfinished = std::string(kUnfinished) + name;
  const auto fail = [&](Error error) {
    ::unlinkat(directory_.get(), unfinished.c_str(), 0);
    return Fail(error.code, fmt::format("cannot write {}/{}: {}", path_, name, error.context));
  };
  ::unlinkat(directory_.get(), unfinished.c_str(), 0);
  {
    const UniqueFd file{
        ::openat(directory_.get(), unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
    if (!file) return fail(FailErrno("create").value());
    if (const auto written = WriteAll(file, text); !written) return fail(written.error());
    if (::fsync(file.get()) != 0) return fail(FailErrno("fsync").value());
  }
  if (::renameat(directory_.get(), unfinished.c_str(), directory_.get(), name.c_str()) != 0)
    return fail(FailErrno("rename").value());
  return Sync();
}

Result<void> StateFiles::Remove(const std::string& name) {
  if (::unlinkat(directory_.get(), name.c_str(), 0) != 0) {
    if (errno == ENOENT) return {};
    return FailErrno(fmt::format("cannot remove {}/{}", path_, name));
  }
  return Sync();
}

Result<void> StateFiles::Sync() const {
  if (::fsync(directory_.get()) != 0) return FailErrno(fmt::format("cannot write {}", path_));
  return {};
}

}  // namespace vgpud::daemon
