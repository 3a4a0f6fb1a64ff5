// SPDX-License-Identifier: Apache-2.0
// tcgen05.alloc, .dealloc, .ld, .st, .cp and what orders them (PTX ISA "TensorCore 5th Generation Family
// Instructions"). A block has tensor memory of its own, so an allocation waits for nobody: one that does not fit is an
// error. All that is asynchronous is done when its instruction is.
#include "gpu/soft/matrix/tensor_memory.h"

#include "gpu/soft/code/tensor_copy_form.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

// Columns from operand `operand`, as a bit set of units from the lowest on. 0: a fault was raised.
uint32_t UnitsOf(Warp& w, const Inst* i, int operand) {
  const uint32_t columns = In<uint32_t>(w, i, operand)[FirstLane(w)];
  if (columns >= kTensorUnit && columns <= kTensorColumns && (columns & (columns - 1)) == 0)
    return (1u << columns / kTensorUnit) - 1;
  TensorFault(w, i, CuStatus::kIllegalInstruction,
              fmt::format("tensor memory of {} columns: their number is a power of two from 32 to 512", columns));
  return 0;
}

// Operands: address 0, in aux's space; columns 1.
const Inst* Allocate(Warp& w, const Inst* i) {
  if (!WholeWarp(w, i)) return i;
  const uint32_t lane = FirstLane(w);
  const uint32_t units = UnitsOf(w, i, 1);
  if (units == 0) return i;
  const uint64_t address = LaneOperandAddress(w, i, lane);
  std::byte* to = LaneAddress(w, static_cast<MemSpace>(i->aux), lane, address, 4, true);
  const bool shared = to != nullptr && to >= w.shared && to < w.shared + w.shared_bytes;
  if (!shared || address % 4 != 0)
    return RaiseAddressFault(w, i, shared ? CuStatus::kMisalignedAddress : CuStatus::kIllegalAddress, lane, address, 4,
                             "tcgen05.alloc, which writes to the shared memory of the block, to");
  TensorMemory& memory = w.cta->tensor;
  if (memory.relinquished)
    return TensorFault(w, i, CuStatus::kIllegalInstruction,
                       "tcgen05.alloc after tcgen05.relinquish_alloc_permit: the block may allocate no more");
  const auto count = static_cast<uint32_t>(__builtin_popcount(units));
  uint32_t at = 0;
  while (at + count <= kTensorColumns / kTensorUnit && (memory.used & units << at) != 0) ++at;
  if (memory.bytes == nullptr || at + count > kTensorColumns / kTensorUnit)
    return TensorFault(w, i, CuStatus::kIllegalInstruction,
                       fmt::format("tcgen05.alloc of {} columns: so many are not free side by side in the tensor "
                                   "memory of the block, which nobody else can make free",
                                   count * kTensorUnit));
  memory.used = static_cast<uint16_t>(memory.used | units << at);
  memory.first = static_cast<uint16_t>(memory.first | 1u << at);
  const uint32_t column = at * kTensorUnit;
  for (uint32_t row = 0; row < kTensorLanes; ++row)
    __builtin_memset(TensorAt(w, row, column), 0, size_t{count} * kTensorUnit * 4);
  __builtin_memcpy(to, &column, sizeof column);
  return i + 1;
}

// Operands: address 0, columns 1.
const Inst* Deallocate(Warp& w, const Inst* i) {
  if (!WholeWarp(w, i)) return i;
  const uint32_t address = In<uint32_t>(w, i, 0)[FirstLane(w)];
  const uint32_t units = UnitsOf(w, i, 1);
  if (units == 0) return i;
  TensorMemory& memory = w.cta->tensor;
  const uint32_t at = address / kTensorUnit;
  const uint32_t limit = kTensorColumns / kTensorUnit;
  const uint32_t behind = at + static_cast<uint32_t>(__builtin_popcount(units));
  const bool begins = address % kTensorUnit == 0 && at < limit && (memory.first >> at & 1) != 0;
  // It ends where the next one begins, or where nothing is allocated.
  const bool whole = begins && behind <= limit && (memory.used >> at & units) == units &&
                     (memory.first >> at & units) == 1 &&
                     (behind == limit || (memory.used >> behind & 1) == 0 || (memory.first >> behind & 1) != 0);
  if (!whole)
    return TensorFault(w, i, CuStatus::kIllegalAddress,
                       fmt::format("tcgen05.dealloc of {} columns at {:#x}: no such allocation",
                                   static_cast<uint32_t>(__builtin_popcount(units)) * kTensorUnit, address));
  memory.used = static_cast<uint16_t>(memory.used & ~(units << at));
  memory.first = static_cast<uint16_t>(memory.first & ~(1u << at));
  return i + 1;
}

const Inst* Relinquish(Warp& w, const Inst* i) {
  if (!WholeWarp(w, i)) return i;
  w.cta->tensor.relinquished = true;
  return i + 1;
}

const Inst* Done(Warp& w, const Inst* i) { return WholeWarp(w, i) ? i + 1 : i; }
const Inst* Nothing(Warp&, const Inst* i) { return i + 1; }

// Where register r of thread t is, from the address on.
struct TensorPlace {
  uint32_t lane, column;
};
ALWAYS TensorPlace PlaceIn(TensorShape shape, uint32_t t, uint32_t r) {
  switch (shape) {
    case k16x64b:
      return {t / 4 + t % 2 * 8, r * 2 + t / 2 % 2};
    case k16x128b:
      return {t / 4 + r % 2 * 8, r / 2 * 4 + t % 4};
    case k16x256b:
      return {t / 4 + r / 2 % 2 * 8, r / 4 * 8 + t % 4 * 2 + r % 2};
    default:
      return {t, r};
  }
}

// Operand 0: the address; extra operands: the registers.
template <bool kStore>
const Inst* Transfer(Warp& w, const Inst* i) {
  if (!WholeWarp(w, i)) return i;
  const auto shape = static_cast<TensorShape>(i->aux & ((1u << kTensorShapeBits) - 1));
  const uint32_t registers = 1u << (i->aux >> kTensorShapeBits);
  const uint32_t address = In<uint32_t>(w, i, 0)[FirstLane(w)] + static_cast<uint32_t>(i->imm);
  if (!ReachColumns(w, i, address, shape == k32x32b ? registers : registers * 2)) return i;
  // A warp reaches a quarter of the lanes. Its number may be left out of the address.
  const uint32_t quarter = w.index % 4 * kLanes;
  const uint32_t lane = TensorLane(address);
  const uint32_t within = lane % kLanes;
  const bool mine = lane == within || lane - within == quarter;
  if (!mine || (within != 0 && (shape == k32x32b || within != 16)))
    return TensorFault(
        w, i, CuStatus::kIllegalAddress,
        fmt::format("tensor memory at {:#x}: lane {} is not one at which warp {} may begin", address, lane, w.index));
  for (uint32_t r = 0; r < registers; ++r) {
    auto* reg = Fragment<F32>(w, i, r);
    for (uint32_t m = w.mask; m != 0; m &= m - 1) {
      const auto t = static_cast<uint32_t>(__builtin_ctz(m));
      const TensorPlace at = PlaceIn(shape, t, r);
      std::byte* cell = TensorAt(w, quarter + within + at.lane, TensorColumn(address) + at.column);
      if constexpr (kStore) {
        __builtin_memcpy(cell, reg + t, sizeof *reg);
      } else {
        __builtin_memcpy(reg + t, cell, sizeof *reg);
      }
    }
  }
  return i + 1;
}

// tcgen05.cp: rows of one or two pieces of 16 bytes, by lines. Operands: address 0, descriptor 1; aux says
// how many, and whether there are 32 rows, which each quarter of the lanes has.
const Inst* Copy(Warp& w, const Inst* i) {
  const uint32_t pieces = i->aux & kCopiedPieces;
  const uint32_t rows = (i->aux & kCopiesToQuarters) != 0 ? kLanes : kTensorLanes;
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto t = static_cast<uint32_t>(__builtin_ctz(m));
    const uint32_t address = In<uint32_t>(w, i, 0)[t] + static_cast<uint32_t>(i->imm);
    SharedMatrix matrix(0);
    if (!ReachColumns(w, i, address, pieces * kPieceBytes / 4) || !MatrixOf(w, i, In<uint64_t>(w, i, 1)[t], matrix))
      return i;
    if (TensorLane(address) != 0)
      return TensorFault(w, i, CuStatus::kIllegalAddress,
                         fmt::format("tensor memory at {:#x}: a copy begins at lane 0", address));
    for (uint32_t row = 0; row < rows; ++row) {
      for (uint32_t piece = 0; piece < pieces; ++piece) {
        const std::byte* from = PieceAt(w, i, matrix.ByLines(row, piece));
        if (from == nullptr) return i;
        for (uint32_t lane = row; lane < kTensorLanes; lane += rows)
          __builtin_memcpy(TensorAt(w, lane, TensorColumn(address) + piece * kPieceBytes / 4), from, kPieceBytes);
      }
    }
  }
  return i + 1;
}

}  // namespace

OpRows TensorMemoryRows() {
  static const OpRow kRows[] = {
      {"@tcgen05.alloc", Allocate, ""},        {"@tcgen05.dealloc", Deallocate, ""},
      {"@tcgen05.relinquish", Relinquish, ""}, {"@tcgen05.ld", Transfer<false>, ""},
      {"@tcgen05.st", Transfer<true>, ""},     {"@tcgen05.wait", Done, ""},
      {"@tcgen05.fence", Nothing, ""},         {"@tcgen05.cp", Copy, ""},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
