// SPDX-License-Identifier: Apache-2.0
// Instructions whose length the guest names (OpTrait kInPieces): a bounded part at a time, so that a stop never waits
// for the whole. The register kDoneOperand says how far each lane is; registers are saved with the context.
#pragma once

#include "gpu/soft/ops/common.h"

namespace vgpud::soft::VGPUD_ISA {

// Bytes that one piece reads or writes: some 0.1 ms where each element takes an atomic operation.
inline constexpr uint32_t kBytesAtOnce = 16 << 10;

enum class Piece { kFault, kMore, kLast };

// One piece of the work of the first lane of the current split. `work(lane, done)` does what follows on `done`, counts
// it there, and says what it was. The instruction comes back until the last piece of the last lane is done; lanes that
// are ready wait behind it.
template <class Work>
ALWAYS const Inst* OnePiece(Warp& w, const Inst* i, Work work) {
  const auto lane = static_cast<uint32_t>(__builtin_ctz(w.mask));
  if (work(lane, Out<uint32_t>(w, i, kDoneOperand)[lane]) != Piece::kLast) return i;
  const uint32_t rest = w.mask & (w.mask - 1);
  return rest == 0 ? i + 1 : Diverge(w, i, rest, i + 1, w.mask & ~rest);
}

}  // namespace vgpud::soft::VGPUD_ISA
