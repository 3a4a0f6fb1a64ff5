// SPDX-License-Identifier: Apache-2.0
// What kernels print: the driver writes it to this process' standard output, which is a socket to ourselves.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <span>

#include "base/fd.h"
#include "base/result.h"

namespace vgpud::driver {

class Printed {
 public:
  // Makes standard output ours. Once per process, before the jail.
  [[nodiscard]] Result<void> Begin();

  // Takes in what has been written. Whoever makes the driver write must have a second thread here that does the same
  // (Drain): a full socket would hold the driver up.
  void Collect();
  // Takes in whatever comes, for ever.
  [[noreturn]] void Drain();

  // How much is kept until it is fetched; the oldest goes first.
  void SetCapacity(uint64_t bytes);
  size_t bytes() const;
  // Moves the oldest, as much as fits; how much.
  size_t Take(std::span<std::byte> out);
  void Clear();

 private:
  UniqueFd ours_;
  mutable std::mutex mutex_;
  std::deque<std::byte> text_;
  size_t capacity_ = size_t{1} << 20;
};

}  // namespace vgpud::driver
