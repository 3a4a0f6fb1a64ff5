// Waiting for the lanes that a .sync instruction names.
#pragma once

#include "gpu/soft/ops/common.h"

namespace vgpud::soft::VGPUD_ISA {

// True if all lanes are here that some active lane wants; else the handler must return `i`.
ALWAYS bool Gathered(Warp& w, const Inst* i, int operand) {
  if (w.mask == w.live) {
    w.force_sync = false;
    return true;
  }
  const uint32_t* members = In<uint32_t>(w, i, operand);
  uint32_t all = 0;
  for (uint32_t m = w.mask; m != 0; m &= m - 1) all |= members[__builtin_ctz(m)];
  return WarpSyncReady(w, i, all);
}

}  // namespace vgpud::soft::VGPUD_ISA
