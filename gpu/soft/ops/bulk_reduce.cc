// SPDX-License-Identifier: Apache-2.0
// cp.reduce.async.bulk (PTX ISA "cp.reduce.async.bulk"): an atomic operation for each element of a stretch of memory.
// As with bulk copies, it is done when its instruction is. Operands: to 0, from 1 (generic addresses), bytes 2.
#include "gpu/soft/ops/bulk.h"
#include "gpu/soft/ops/reductions.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

template <class F, class T>
const Inst* BulkReduce(Warp& w, const Inst* i) {
  const Inst* const next = OnePiece(w, i, [&](uint32_t l, uint32_t& done) {
    const BulkStretch all{In<uint64_t>(w, i, 0)[l], In<uint64_t>(w, i, 1)[l], In<uint32_t>(w, i, 2)[l]};
    return BulkPiece(w, i, l, all, done, "bulk reduction to", "bulk reduction from", ReduceInto<F, T>);
  });
  if (next == i + 1) NoteSync(w, i);
  return next;
}

}  // namespace

OpRows BulkReduceRows() {
#define REDUCE(op, F, type, T) \
  { "@cp.reduce.async.bulk." op "." type, BulkReduce<F, T>, "", kInPieces }
#define REDUCE_PICK(op, type, ...) \
  { "@cp.reduce.async.bulk." op "." type, BulkReduce<ReducePickSmall<__VA_ARGS__>, uint16_t>, "", kInPieces }
#define REDUCE_SMALL(type, Format)                                                                \
  REDUCE("add", ReduceAddSmall<Format>, type, uint16_t), REDUCE_PICK("min", type, Format, false), \
      REDUCE_PICK("max", type, Format, true)
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
