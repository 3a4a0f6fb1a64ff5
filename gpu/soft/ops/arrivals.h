// SPDX-License-Identifier: Apache-2.0
// mbarrier objects (PTX ISA "Parallel Synchronization and Communication Instructions: mbarrier").
#pragma once

#include "gpu/soft/ops/address.h"

namespace vgpud::soft::VGPUD_ISA {

// The 64 bits of an mbarrier object: arrivals that are still to come, arrivals of a phase, bytes of asynchronous copies
// that are still to come (the tx-count), number of the phase.
struct Arrivals {
  static constexpr uint64_t kCount = (1u << 20) - 1;
  static constexpr uint64_t kTx = (1u << 21) - 1;  // a number with a sign
  uint64_t bits;
  uint64_t pending() const { return bits & kCount; }
  uint64_t expected() const { return bits >> 20 & kCount; }
  uint64_t tx() const { return bits >> 40 & kTx; }
  uint64_t phase() const { return bits >> 61; }
  static Arrivals Make(uint64_t pending, uint64_t expected, uint64_t tx, uint64_t phase) {
    return {(pending & kCount) | (expected & kCount) << 20 | (tx & kTx) << 40 | phase << 61};
  }
  // A phase is over when nothing is to come.
  Arrivals IfComplete() const {
    return pending() == 0 && tx() == 0 ? Make(expected(), expected(), 0, phase() + 1) : *this;
  }
  // `count` fewer are awaited; `dropped` of them in later phases too.
  Arrivals After(uint64_t count, uint64_t dropped) const {
    const uint64_t next = expected() - (dropped < expected() ? dropped : expected());
    return Make(pending() - (count < pending() ? count : pending()), next, tx(), phase()).IfComplete();
  }
  Arrivals Expecting(uint64_t bytes) const { return Make(pending(), expected(), tx() + bytes, phase()); }
  Arrivals Without(uint64_t bytes) const { return Make(pending(), expected(), tx() - bytes, phase()).IfComplete(); }
};

// Bytes of an asynchronous copy have come: the object at a generic address is told. False: a fault was raised.
ALWAYS bool TellBarrier(Warp& w, const Inst* i, uint32_t lane, uint64_t address, uint64_t bytes) {
  auto* at = reinterpret_cast<uint64_t*>(LaneAddress(w, MemSpace::kGeneric, lane, address, 8, true));
  if (at == nullptr || address % 8 != 0) {
    RaiseAddressFault(w, i, at == nullptr ? CuStatus::kIllegalAddress : CuStatus::kMisalignedAddress, lane, address, 8,
                      "mbarrier");
    return false;
  }
  *at = Arrivals{*at}.Without(bytes).bits;
  return true;
}

}  // namespace vgpud::soft::VGPUD_ISA
