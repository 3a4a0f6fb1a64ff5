// SPDX-License-Identifier: Apache-2.0
// What kernels have printed and nobody has fetched yet. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>

#include "base/host_memory.h"
#include "gpu/soft/memory/lock_ranks.h"

namespace vgpud::soft {

class StateReader;
class StateWriter;

class PrintBuffer {
 public:
  static constexpr size_t kDefaultCapacity = 1 << 20;
  // What a guest may make the host keep for it.
  static constexpr size_t kMostCapacity = 64 << 20;

  // `host`: the oldest texts go as well when there is no host memory for more; nullptr: without a limit.
  explicit PrintBuffer(HostMemory* host = nullptr) : host_(host) {}
  // Bytes that are kept, at most kMostCapacity; when there is more to keep, the oldest texts go, as on a GPU.
  void SetCapacity(uint64_t bytes);
  size_t capacity() const;
  void Append(bool to_stderr, std::string text);
  // Moves the oldest texts of one kind, as much as fits, into `out`. Returns how many bytes; 0 = there is nothing.
  size_t Take(std::span<std::byte> out, bool* to_stderr);
  size_t bytes() const;
  // device_state.cc; Load into a fresh one.
  void Save(StateWriter& out) const;
  void Load(StateReader& in);

 private:
  struct Text {
    bool to_stderr;
    std::string text;
  };
  void DropOldest() REQUIRES(mutex_);

  HostMemory* const host_;
  mutable Mutex mutex_{lock_rank::kPrint};
  std::deque<Text> texts_ GUARDED_BY(mutex_);
  size_t bytes_ GUARDED_BY(mutex_) = 0;
  size_t overhead_ GUARDED_BY(mutex_) = 0;
  size_t capacity_ GUARDED_BY(mutex_) = kDefaultCapacity;
};

}  // namespace vgpud::soft
