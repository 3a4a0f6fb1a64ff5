// SPDX-License-Identifier: Apache-2.0
// Local memory that functions take while they run (PTX ISA, "Stack Manipulation Instructions"). It lies behind the
// variables of all functions and grows downwards; the last word of a lane's local memory says how much of it is taken,
// so that it is saved and restored with the rest. A kernel can overwrite that word: what it says is checked each time.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/checked.h"
#include "gpu/soft/run/warp.h"

namespace vgpud::soft {
namespace {

uint32_t EndOf(const Warp& w) { return w.local_stride - kDynamicTakenBytes; }
uint32_t MostOf(const Warp& w) { return EndOf(w) - w.local_fixed; }

std::byte* TopAt(const Warp& w, uint32_t lane) {
  return w.local_memory + static_cast<size_t>(lane) * w.local_stride + EndOf(w);
}

uint32_t Taken(const Warp& w, uint32_t lane) {
  uint32_t taken = 0;
  std::memcpy(&taken, TopAt(w, lane), sizeof taken);
  return std::min(taken, MostOf(w));
}

void Take(const Warp& w, uint32_t lane, uint32_t taken) { std::memcpy(TopAt(w, lane), &taken, sizeof taken); }

uint64_t* Lanes(const Warp& w, const Inst* i, int operand) {
  return reinterpret_cast<uint64_t*>(w.base[i->base[operand]] + i->offset[operand]);
}

}  // namespace

const Inst* OpAlloca(Warp& w, const Inst* i) {
  uint64_t* addresses = Lanes(w, i, 0);
  const uint64_t* sizes = Lanes(w, i, 1);
  const auto alignment = static_cast<uint64_t>(i->imm);
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(m));
    const uint32_t taken = Taken(w, lane);
    const uint32_t left = MostOf(w) - taken;
    const uint64_t from = sizes[lane] <= left ? (EndOf(w) - taken - sizes[lane]) & ~(alignment - 1) : 0;
    if (from < w.local_fixed || sizes[lane] > left)
      return RaiseFault(w, i, CuStatus::kHardwareStackError, lane,
                        fmt::format("alloca of {} bytes: {} of the {} bytes that a thread can take are left",
                                    sizes[lane], left, MostOf(w)));
    Take(w, lane, MustFit<uint32_t>(EndOf(w) - from));
    addresses[lane] = from;
  }
  return i + 1;
}

const Inst* OpStackSave(Warp& w, const Inst* i) {
  uint64_t* to = Lanes(w, i, 0);
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(m));
    to[lane] = Taken(w, lane);
  }
  return i + 1;
}

const Inst* OpStackRestore(Warp& w, const Inst* i) {
  const uint64_t* from = Lanes(w, i, 0);
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(m));
    if (from[lane] > MostOf(w))
      return RaiseFault(w, i, CuStatus::kHardwareStackError, lane,
                        fmt::format("stackrestore of {:#x}, which stacksave did not give", from[lane]));
    Take(w, lane, static_cast<uint32_t>(from[lane]));
  }
  return i + 1;
}

}  // namespace vgpud::soft
