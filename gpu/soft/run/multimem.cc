// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/run/multimem.h"

#include <fmt/format.h>

#include <bit>

namespace vgpud::soft {

const Inst* OpMultimem(Warp& w, const Inst* i) {
  const auto lane = static_cast<uint32_t>(std::countr_zero(w.mask));
  const auto* addresses = reinterpret_cast<const uint64_t*>(w.base[i->base[0]] + i->offset[0]);
  return RaiseFault(w, i, CuStatus::kIllegalAddress, lane,
                    fmt::format("multimem at {:#x}: this device has no memory that several GPUs have in common",
                                addresses[lane] + static_cast<uint64_t>(i->imm)));
}

}  // namespace vgpud::soft
