// SPDX-License-Identifier: Apache-2.0
// Messages between vgpud and vgpud-keep (SOCK_SEQPACKET, base/message.h), which holds descriptors for the next vgpud.
// Both run as the same user. Each message is one Entry, with the descriptors that it names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vgpud::daemon::keep {

// Of a vgpud-keep, as its starter gives them.
inline constexpr int kSessionFd = 3;  // to its first vgpud
inline constexpr int kListenFd = 4;   // where later ones connect

inline constexpr uint32_t kVersion = 1;
inline constexpr size_t kMostFds = 8;
inline constexpr size_t kSecretBytes = 32;
inline constexpr size_t kMostEntries = 16 * 1024;

enum class Kind : uint32_t {
  // vgpud -> vgpud-keep
  kHello = 1,   // `note` begins with the secret: from the starter it is set, from a later vgpud compared
  kStore = 2,   // keeps the descriptors and the note under `name`; what was there under it goes
  kForget = 3,  // `name` and all names that begin with it and a '/' go
  kEnd = 4,     // everything goes, and so does vgpud-keep
  // vgpud-keep -> vgpud, after a kHello that was right
  kKept = 16,  // one for each name
  kAll = 17,   // these were all
};

struct Entry {
  Kind kind{};
  uint32_t version = kVersion;
  // kStore: 1 + which of the descriptors is a writable grant page (base/slice_page.h); 0: none is.
  uint32_t grant_page = 0;
  uint32_t note_bytes = 0;
  char name[160] = {};  // NUL padded, at least one
  std::byte note[80] = {};

  // Empty: it has no end.
  std::string_view Name() const {
    const std::string_view all(name, sizeof name);
    const size_t end = all.find('\0');
    return end == all.npos ? std::string_view() : all.substr(0, end);
  }
};
static_assert(sizeof(Entry) == 256);

}  // namespace vgpud::daemon::keep
