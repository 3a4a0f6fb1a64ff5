// SPDX-License-Identifier: Apache-2.0
// cp.reduce.async.bulk (PTX ISA "cp.reduce.async.bulk"): an atomic operation for each element of a stretch of memory.
// As with bulk copies, it is done when its instruction is. Operands: to 0, from 1 (generic addresses), bytes 2.
#include <utility>

#include "gpu/soft/ops/address.h"
#include "gpu/soft/ops/reductions.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

template <class F, class T>
const Inst* BulkReduce(Warp& w, const Inst* i) {
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    const uint32_t bytes = In<uint32_t>(w, i, 2)[l];
    if (bytes == 0) continue;
    std::byte* places[2];
    for (const uint32_t n : {0u, 1u}) {
      const uint64_t address = In<uint64_t>(w, i, static_cast<int>(n))[l];
      places[n] = Stretch(w, l, address, bytes, n == 0);
      if (places[n] != nullptr && (address | bytes) % 16 == 0) continue;
      return RaiseAddressFault(w, i, places[n] != nullptr ? CuStatus::kMisalignedAddress : CuStatus::kIllegalAddress, l,
                               address, bytes, n == 0 ? "bulk reduction to" : "bulk reduction from");
    }
    ReduceInto<F, T>(places[0], places[1], bytes);
  }
  NoteSync(w, i);
  return i + 1;
}

}  // namespace

OpRows BulkReduceRows() {
#define REDUCE(op, F, type, T) \
  { "@cp.reduce.async.bulk." op "." type, BulkReduce<F, T>, "" }
#define REDUCE_SMALL(type, Format)                                                                     \
  REDUCE("add", ReduceAddSmall<Format>, type, uint16_t),                                               \
      {"@cp.reduce.async.bulk.min." type, BulkReduce<ReducePickSmall<Format, false>, uint16_t>, ""}, { \
    "@cp.reduce.async.bulk.max." type, BulkReduce<ReducePickSmall<Format, true>, uint16_t>, ""         \
  }
#define REDUCE_ORDER(type, T) REDUCE("min", ReduceMin, type, T), REDUCE("max", ReduceMax, type, T)
#define REDUCE_LOGIC(type, T) \
  REDUCE("and", ReduceAnd, type, T), REDUCE("or", ReduceOr, type, T), REDUCE("xor", ReduceXor, type, T)
  static const OpRow kRows[] = {
      REDUCE("add", ReduceAdd, "u32", uint32_t),
      REDUCE("add", ReduceAdd, "s32", uint32_t),
      REDUCE("add", ReduceAdd, "u64", uint64_t),
      REDUCE("add", ReduceAddFloat, "f32", uint32_t),
      REDUCE("add", ReduceAddFloat, "f64", uint64_t),
      REDUCE("inc", ReduceInc, "u32", uint32_t),
      REDUCE("dec", ReduceDec, "u32", uint32_t),
      REDUCE_ORDER("u32", uint32_t),
      REDUCE_ORDER("s32", int32_t),
      REDUCE_ORDER("u64", uint64_t),
      REDUCE_ORDER("s64", int64_t),
      REDUCE_LOGIC("b32", uint32_t),
      REDUCE_LOGIC("b64", uint64_t),
      REDUCE_SMALL("f16", Binary16),
      REDUCE_SMALL("bf16", Bfloat16),
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
