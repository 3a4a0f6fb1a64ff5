// SPDX-License-Identifier: Apache-2.0
// What of the device's addresses belongs to this context: allocations, variables of modules that the guest has been
// told of, memory that it has mapped or shares. Copies are held against it, so that no address of a guest reaches the
// driver unchecked. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace vgpud::driver {

class Ranges {
 public:
  enum class Kind : uint8_t { kAllocation, kVariable, kMapped, kShared };

  // A range that begins where one does already replaces it.
  void Add(uint64_t address, uint64_t bytes, Kind kind) { ranges_[address] = {bytes, kind}; }
  // Bytes of the range of that kind that begins there; it is gone.
  std::optional<uint64_t> Remove(uint64_t address, Kind kind) {
    const auto it = ranges_.find(address);
    if (it == ranges_.end() || it->second.kind != kind) return std::nullopt;
    const uint64_t bytes = it->second.bytes;
    ranges_.erase(it);
    return bytes;
  }
  // Is all of it inside of one range, or of mapped ones side by side? Nothing is nowhere.
  bool Contains(uint64_t address, uint64_t bytes) const {
    auto it = ranges_.upper_bound(address);
    if (bytes == 0 || it == ranges_.begin()) return false;
    --it;
    const uint64_t offset = address - it->first;
    if (offset > it->second.bytes) return false;
    for (uint64_t rest = it->second.bytes - offset; bytes > rest; rest = it->second.bytes) {
      const uint64_t end = it->first + it->second.bytes;
      if (it->second.kind != Kind::kMapped) return false;
      bytes -= rest;
      if (++it == ranges_.end() || it->first != end || it->second.kind != Kind::kMapped) return false;
    }
    return true;
  }

 private:
  struct Range {
    uint64_t bytes;
    Kind kind;
  };
  std::map<uint64_t, Range> ranges_;
};

}  // namespace vgpud::driver
