// SPDX-License-Identifier: Apache-2.0
// How long a kernel takes, by how long it took. Pure.
#pragma once

#include <cstdint>
#include <optional>

namespace vgpud::driver {

class KernelLength {
 public:
  // A launch of `blocks` took so long. A longer one counts at once, shorter ones bit by bit.
  void Note(uint64_t ns, uint64_t blocks);
  // What a launch of `blocks` will take; nullopt before there was one.
  std::optional<uint64_t> Expect(uint64_t blocks) const;

 private:
  uint64_t ns_ = 0;
  uint64_t blocks_ = 0;  // the most that a launch had; 0: there was none
};

}  // namespace vgpud::driver
