// SPDX-License-Identifier: Apache-2.0
// A process that calls: its memory, and the open files behind its descriptors.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace vgpud::kernel_side {

class Caller {
 public:
  // By one of its threads.
  explicit Caller(pid_t thread) : thread_(thread) {}

  // False: not all of it is there.
  bool Read(uint64_t at, void* to, size_t bytes) const;
  bool Write(uint64_t at, const void* from, size_t bytes) const;
  template <class T>
  std::optional<T> ReadAs(uint64_t at) const {
    T value{};
    return Read(at, &value, sizeof value) ? std::optional(value) : std::nullopt;
  }
  // The number of our open file that its descriptor is; none: it is another one's.
  std::optional<uint64_t> FileOf(int fd) const;
  pid_t process() const;

 private:
  pid_t thread_;
};

}  // namespace vgpud::kernel_side
