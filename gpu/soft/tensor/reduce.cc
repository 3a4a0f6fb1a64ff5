// SPDX-License-Identifier: Apache-2.0
// cp.reduce.async.bulk.tensor (PTX ISA "cp.reduce.async.bulk.tensor"): an atomic operation for each element of a box
// that the tensor has. The type is that of the tensor map.
#include "gpu/soft/ops/reductions.h"
#include "gpu/soft/tensor/rows.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

enum class Op { kAdd, kMin, kMax, kInc, kDec, kAnd, kOr, kXor };
struct Reduction {
  Op op;
  uint32_t type;
  void (*run)(std::byte* to, const std::byte* from, uint32_t bytes);
};
constexpr Reduction kReductions[] = {
    {Op::kAdd, VGPU_TENSOR_U32, ReduceInto<ReduceAdd, uint32_t>},
    {Op::kAdd, VGPU_TENSOR_S32, ReduceInto<ReduceAdd, uint32_t>},
    {Op::kAdd, VGPU_TENSOR_U64, ReduceInto<ReduceAdd, uint64_t>},
    {Op::kAdd, VGPU_TENSOR_S64, ReduceInto<ReduceAdd, uint64_t>},
    {Op::kAdd, VGPU_TENSOR_F16, ReduceInto<ReduceAddSmall<Binary16>, uint16_t>},
    {Op::kAdd, VGPU_TENSOR_BF16, ReduceInto<ReduceAddSmall<Bfloat16>, uint16_t>},
    {Op::kAdd, VGPU_TENSOR_F32, ReduceInto<ReduceAddFloat, uint32_t>},
    {Op::kAdd, VGPU_TENSOR_F32_FTZ, ReduceInto<ReduceAddFloat, uint32_t>},
    {Op::kMin, VGPU_TENSOR_U32, ReduceInto<ReduceMin, uint32_t>},
    {Op::kMin, VGPU_TENSOR_S32, ReduceInto<ReduceMin, int32_t>},
    {Op::kMin, VGPU_TENSOR_U64, ReduceInto<ReduceMin, uint64_t>},
    {Op::kMin, VGPU_TENSOR_S64, ReduceInto<ReduceMin, int64_t>},
    {Op::kMin, VGPU_TENSOR_F16, ReduceInto<ReducePickSmall<Binary16, false>, uint16_t>},
    {Op::kMin, VGPU_TENSOR_BF16, ReduceInto<ReducePickSmall<Bfloat16, false>, uint16_t>},
    {Op::kMax, VGPU_TENSOR_U32, ReduceInto<ReduceMax, uint32_t>},
    {Op::kMax, VGPU_TENSOR_S32, ReduceInto<ReduceMax, int32_t>},
    {Op::kMax, VGPU_TENSOR_U64, ReduceInto<ReduceMax, uint64_t>},
    {Op::kMax, VGPU_TENSOR_S64, ReduceInto<ReduceMax, int64_t>},
    {Op::kMax, VGPU_TENSOR_F16, ReduceInto<ReducePickSmall<Binary16, true>, uint16_t>},
    {Op::kMax, VGPU_TENSOR_BF16, ReduceInto<ReducePickSmall<Bfloat16, true>, uint16_t>},
    {Op::kInc, VGPU_TENSOR_U32, ReduceInto<ReduceInc, uint32_t>},
    {Op::kDec, VGPU_TENSOR_U32, ReduceInto<ReduceDec, uint32_t>},
    {Op::kAnd, VGPU_TENSOR_U32, ReduceInto<ReduceAnd, uint32_t>},
    {Op::kAnd, VGPU_TENSOR_S32, ReduceInto<ReduceAnd, uint32_t>},
    {Op::kAnd, VGPU_TENSOR_U64, ReduceInto<ReduceAnd, uint64_t>},
    {Op::kAnd, VGPU_TENSOR_S64, ReduceInto<ReduceAnd, uint64_t>},
    {Op::kOr, VGPU_TENSOR_U32, ReduceInto<ReduceOr, uint32_t>},
    {Op::kOr, VGPU_TENSOR_S32, ReduceInto<ReduceOr, uint32_t>},
    {Op::kOr, VGPU_TENSOR_U64, ReduceInto<ReduceOr, uint64_t>},
    {Op::kOr, VGPU_TENSOR_S64, ReduceInto<ReduceOr, uint64_t>},
    {Op::kXor, VGPU_TENSOR_U32, ReduceInto<ReduceXor, uint32_t>},
    {Op::kXor, VGPU_TENSOR_S32, ReduceInto<ReduceXor, uint32_t>},
    {Op::kXor, VGPU_TENSOR_U64, ReduceInto<ReduceXor, uint64_t>},
    {Op::kXor, VGPU_TENSOR_S64, ReduceInto<ReduceXor, uint64_t>},
};

// Operands: map 0, from 1.
template <Op kOp>
const Inst* TensorReduce(Warp& w, const Inst* i) {
  return EachRow(w, i, [&](uint32_t lane, uint32_t type, std::byte* to, const std::byte* from, uint32_t bytes) {
    for (const Reduction& r : kReductions) {
      if (r.op != kOp || r.type != type) continue;
      r.run(to, from, bytes);
      return true;
    }
    RaiseFault(w, i, CuStatus::kIllegalInstruction, lane, "tensor map: its type has no such reduction");
    return false;
  });
}

}  // namespace

OpRows TensorReduceRows() {
#define REDUCE(name, op) \
  { "@cp.reduce.async.bulk.tensor." name, TensorReduce<op>, "", kInPieces }
  static const OpRow kRows[] = {
      REDUCE("add", Op::kAdd), REDUCE("min", Op::kMin), REDUCE("max", Op::kMax), REDUCE("inc", Op::kInc),
      REDUCE("dec", Op::kDec), REDUCE("and", Op::kAnd), REDUCE("or", Op::kOr),   REDUCE("xor", Op::kXor),
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
