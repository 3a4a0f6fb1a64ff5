// SPDX-License-Identifier: Apache-2.0
// Work on a stretch of memory whose length a register names, from one place to another, in pieces.
#pragma once

#include "gpu/soft/ops/address.h"
#include "gpu/soft/ops/pieces.h"

namespace vgpud::soft::VGPUD_ISA {

// Generic addresses; all multiples of 16.
struct BulkStretch {
  uint64_t to;
  uint64_t from;
  uint32_t bytes;
};

// Is all of it there? nullptr: a fault was raised.
ALWAYS std::byte* ReachStretch(Warp& w, const Inst* i, uint32_t lane, uint64_t address, uint32_t bytes, bool store,
                               const char* what) {
  std::byte* const at = Stretch(w, lane, address, bytes, store);
  if (at != nullptr && (address | bytes) % 16 == 0) return at;
  RaiseAddressFault(w, i, at != nullptr ? CuStatus::kMisalignedAddress : CuStatus::kIllegalAddress, lane, address,
                    bytes, what);
  return nullptr;
}

// The next piece of one lane's stretch: `work(to, from, bytes)`. Memory may go while the kernel is off the GPU, so both
// ends are looked at as a whole each time.
template <class Work>
ALWAYS Piece BulkPiece(Warp& w, const Inst* i, uint32_t lane, const BulkStretch& all, uint32_t& done,
                       const char* to_what, const char* from_what, Work work) {
  if (done >= all.bytes) return Piece::kLast;
  const std::byte* const from = ReachStretch(w, i, lane, all.from, all.bytes, false, from_what);
  if (from == nullptr) return Piece::kFault;
  std::byte* const to = ReachStretch(w, i, lane, all.to, all.bytes, true, to_what);
  if (to == nullptr) return Piece::kFault;
  done &= ~15u;  // it may come from a saved context
  const uint32_t left = all.bytes - done;
  const uint32_t bytes = left < kBytesAtOnce ? left : kBytesAtOnce;
  // What overlaps comes out as if it were moved at once. The windows of a block begin at multiples of their size.
  const bool upwards = all.to % kWindowBytes <= all.from % kWindowBytes;
  const uint32_t at = upwards ? done : left - bytes;
  work(to + at, from + at, bytes);
  done += bytes;
  return bytes == left ? Piece::kLast : Piece::kMore;
}

}  // namespace vgpud::soft::VGPUD_ISA
