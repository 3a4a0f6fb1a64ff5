// SPDX-License-Identifier: Apache-2.0
// Kernels of a VF that failed, by the error that their program saw: CUDA's counterpart to the XID errors that people
// alert on. As the VF's executors report it: for display, trusted for nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace vgpud::daemon {

struct KernelError {
  uint32_t error;  // CUresult
  const char* label;
};
inline constexpr KernelError kKernelErrors[] = {
    {700, "700"},  // illegal address
    {702, "702"},  // launch timeout
    {710, "710"},  // assert
    {714, "714"},  // hardware stack error
    {715, "715"},  // illegal instruction
    {716, "716"},  // misaligned address
    {717, "717"},  // invalid address space
    {718, "718"},  // invalid program counter
    {719, "719"},  // launch failed
    {0, "other"},  // every other error: a compromised executor may report any number
};

class KernelFaults {
 public:
  void Count(uint32_t error, uint64_t times) {
    size_t row = 0;
    while (row + 1 < counts_.size() && kKernelErrors[row].error != error) ++row;
    counts_[row] += times;
  }
  // In the order of kKernelErrors.
  uint64_t of(size_t row) const { return counts_[row]; }
  bool operator==(const KernelFaults&) const = default;

 private:
  std::array<uint64_t, std::size(kKernelErrors)> counts_{};
};

}  // namespace vgpud::daemon
