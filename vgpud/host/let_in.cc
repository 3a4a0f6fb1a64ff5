// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/let_in.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

namespace vgpud::daemon {
namespace {

// The format of the extended attribute, in the byte order of the host, which is little endian.
constexpr const char* kAttribute = "system.posix_acl_access";
constexpr uint32_t kVersion = 2;
constexpr uint32_t kNoId = 0xffffffff;
enum Tag : uint16_t { kOwner = 1, kUser = 2, kOwnGroup = 4, kGroup = 8, kMask = 16, kOthers = 32 };
constexpr uint16_t kConnect = 6;  // read and write
constexpr size_t kMostEntries = 64;

struct Entry {
  uint16_t tag;
  uint16_t permissions;
  uint32_t id;
};
static_assert(sizeof(Entry) == 8);

// Empty: the file has no list of its own.
std::vector<Entry> Read(const std::string& path) {
  std::array<unsigned char, sizeof kVersion + kMostEntries * sizeof(Entry)> raw{};
  const ssize_t n = ::getxattr(path.c_str(), kAttribute, raw.data(), raw.size());
  uint32_t version = 0;
  if (n < static_cast<ssize_t>(sizeof version)) return {};
  std::memcpy(&version, raw.data(), sizeof version);
  if (version != kVersion) return {};
  std::vector<Entry> entries((static_cast<size_t>(n) - sizeof version) / sizeof(Entry));
  std::memcpy(entries.data(), raw.data() + sizeof version, entries.size() * sizeof(Entry));
  return entries;
}

// What the members of the file's own group may do.
uint16_t OfOwnGroup(const std::vector<Entry>& list, mode_t mode) {
  const auto own = std::find_if(list.begin(), list.end(), [](const Entry& each) { return each.tag == kOwnGroup; });
  return own != list.end() ? own->permissions : static_cast<uint16_t>((mode >> 3) & 7);
}

}  // namespace

Result<void> LetIn(const std::string& path, const SocketAccess& allowed) {
  struct stat file {};
  if (::lstat(path.c_str(), &file) != 0) return FailErrno(fmt::format("cannot look at {}", path));
  SocketAccess others = allowed;
  if (others.user == file.st_uid) others.user.reset();
  if (!others.anybody()) return {};
  // The kernel wants them in this order.
  std::vector<Entry> list{{kOwner, kConnect, kNoId}};
  if (others.user) list.push_back({kUser, kConnect, *others.user});
  list.push_back({kOwnGroup, OfOwnGroup(Read(path), file.st_mode), kNoId});
  if (others.group) list.push_back({kGroup, kConnect, *others.group});
  list.insert(list.end(), {{kMask, kConnect, kNoId}, {kOthers, 0, kNoId}});
  std::vector<unsigned char> raw(sizeof kVersion + list.size() * sizeof(Entry));
  std::memcpy(raw.data(), &kVersion, sizeof kVersion);
  std::memcpy(raw.data() + sizeof kVersion, list.data(), list.size() * sizeof(Entry));
  if (::setxattr(path.c_str(), kAttribute, raw.data(), raw.size(), 0) == 0) return {};
  if (errno == EOPNOTSUPP)
    return Fail(
        std::errc::not_supported,
        fmt::format("{} can't be opened to other users: its file system has no access lists; name a directory on "
                    "another one, like tmpfs, with --runtime-dir",
                    path));
  return FailErrno(fmt::format("{} can't be opened to other users", path));
}

std::optional<gid_t> GroupLetIn(const std::string& path) {
  const std::vector<Entry> list = Read(path);
  for (const Entry& each : list)
    if (each.tag == kGroup && (each.permissions & kConnect) == kConnect) return each.id;
  struct stat file {};
  if (::lstat(path.c_str(), &file) != 0 || (OfOwnGroup(list, file.st_mode) & kConnect) != kConnect) return std::nullopt;
  return file.st_gid;
}

}  // namespace vgpud::daemon
