// SPDX-License-Identifier: Apache-2.0
// What a hypervisor took away from the processors of this machine. Linux books it as computing time of whoever was on
// the processor, and in /proc/stat (proc(5), "steal") as what it is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vgpud::daemon {

class StolenTime {
 public:
  explicit StolenTime(std::string path = "/proc/stat") : path_(std::move(path)) {}

  // One small file, here and in MostSinceMark.
  void Mark() { marked_ = Read(); }
  // In ns, of the processor that lost most since the mark, which may be all that one thread lost; up to a tick of
  // USER_HZ too much. 0 without a mark, where nothing was taken, and where the file cannot be read.
  uint64_t MostSinceMark() const;

 private:
  // In ticks, by the place of the processor in the file.
  std::vector<uint64_t> Read() const;

  std::string path_;
  std::vector<uint64_t> marked_;
};

}  // namespace vgpud::daemon
