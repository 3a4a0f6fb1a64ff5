// SPDX-License-Identifier: Apache-2.0
#include "base/jail/landlock.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"

namespace vgpud {
namespace {

// linux/landlock.h of Linux 5.19 and 6.2.
constexpr uint64_t kRefer = 1u << 13, kTruncate = 1u << 14;
constexpr uint64_t kOfFirstVersion = (1u << 13) - 1;
constexpr uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kWrite = LANDLOCK_ACCESS_FS_WRITE_FILE;
// A rule about a single file may name these rights.
constexpr uint64_t kOfFiles = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE;

// Returns the version of Landlock's interface; 0: this kernel has no Landlock.
long Version() {
  return std::max(0L, ::syscall(SYS_landlock_create_ruleset, nullptr, size_t{0}, LANDLOCK_CREATE_RULESET_VERSION));
}

Result<void> Allow(const UniqueFd& rules, const std::string& path, uint64_t access) {
  const UniqueFd at{::open(path.c_str(), O_PATH | O_CLOEXEC)};
  struct stat st {};
  if (!at || ::fstat(at.get(), &st) != 0) return {};
  landlock_path_beneath_attr rule{};
  rule.allowed_access = S_ISDIR(st.st_mode) ? access : access & kOfFiles;
  rule.parent_fd = at.get();
  if (::syscall(SYS_landlock_add_rule, rules.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0)
    return FailErrno(fmt::format("landlock: a rule for {}", path));
  return {};
}

}  // namespace

bool HasLandlock() { return Version() > 0; }

Result<void> RestrictFiles(std::span<const std::string> readable, std::span<const std::string> writable) {
  const long version = Version();
  landlock_ruleset_attr all{};
  all.handled_access_fs = kOfFirstVersion | (version >= 2 ? kRefer : 0) | (version >= 3 ? kTruncate : 0);
  const UniqueFd rules{static_cast<int>(::syscall(SYS_landlock_create_ruleset, &all, sizeof all.handled_access_fs, 0))};
  if (!rules) return FailErrno("landlock: a set of rules");
  for (const std::string& path : readable) TRY(Allow(rules, path, kRead));
  for (const std::string& path : writable) TRY(Allow(rules, path, kRead | kWrite));
  if (::syscall(SYS_landlock_restrict_self, rules.get(), 0) != 0) return FailErrno("landlock: restrict this thread");
  return {};
}

}  // namespace vgpud
