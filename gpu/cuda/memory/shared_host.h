// SPDX-License-Identifier: Apache-2.0
// Memory of the guest's that kernels reach while they run: the driver pins and maps what this process has mapped. The
// thread that calls the Gpu.
#pragma once

#include <map>
#include <span>

#include "gpu/cuda/card.h"
#include "gpu/cuda/memory/ranges.h"

namespace vgpud::driver {

class SharedHost {
 public:
  // Both outlive it.
  SharedHost(const Card& card, Ranges& ranges) : card_(card), ranges_(ranges) {}
  ~SharedHost();
  SharedHost(const SharedHost&) = delete;
  SharedHost& operator=(const SharedHost&) = delete;

  // As HostSharing::Share and Unshare. The driver may wait in Unshare for kernels that run.
  GpuResult<GpuVa> Share(std::span<std::byte> memory, const MemoryFile& file);
  void Unshare(std::span<std::byte> memory);
  // Where this process has what kernels have at [address, address + bytes); nullptr: it is no such memory.
  std::byte* Find(GpuVa address, uint64_t bytes) const;

 private:
  const Card& card_;
  Ranges& ranges_;
  std::map<uint64_t, std::span<std::byte>> shared_;  // by the address of kernels
};

}  // namespace vgpud::driver
