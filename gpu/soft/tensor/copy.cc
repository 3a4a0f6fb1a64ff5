// SPDX-License-Identifier: Apache-2.0
// cp.async.bulk.tensor (PTX ISA "cp.async.bulk.tensor"). As with bulk copies, it is done when its instruction is. The
// bytes that an mbarrier is told of are those of the whole box as global memory has them, outside of the tensor or not.
// Each piece of a lane's copy counts as an instruction of its own.
#include "gpu/soft/ops/arrivals.h"
#include "gpu/soft/tensor/rows.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

// Eight bytes of what stands for elements outside of the tensor where that is not zero.
ALWAYS uint64_t NotANumber(uint32_t type) {
  if (type == VGPU_TENSOR_F16 || type == VGPU_TENSOR_BF16) return 0x7fff7fff7fff7fff;
  return type == VGPU_TENSOR_F64 ? 0x7fffffffffffffff : 0x7fffffff7fffffff;
}

ALWAYS uint32_t WithoutSubnormal(uint32_t v) { return (v & 0x7f800000u) == 0 ? v & 0x80000000u : v; }
// To the nearest value with 10 bits of fraction, ties to even.
ALWAYS uint32_t ToTf32(uint32_t v) {
  if ((v & 0x7fffffffu) > 0x7f800000u) return 0x7fffffffu;
  return (v + 0xfffu + (v >> 13 & 1)) & ~0x1fffu;
}
void Convert(uint32_t type, std::byte* row, uint32_t bytes) {
  const bool flush = type == VGPU_TENSOR_F32_FTZ || type == VGPU_TENSOR_TF32_FTZ;
  const bool shorten = type == VGPU_TENSOR_TF32 || type == VGPU_TENSOR_TF32_FTZ;
  if (!flush && !shorten) return;
  for (uint32_t at = 0; at < bytes; at += 4) {
    uint32_t v;
    __builtin_memcpy(&v, row + at, 4);
    v = flush ? WithoutSubnormal(v) : v;
    v = shorten ? ToTf32(v) : v;
    __builtin_memcpy(row + at, &v, 4);
  }
}

// The bytes of row `row`, filled up where the tensor ends. False: a fault was raised.
bool LoadRow(Warp& w, const Inst* i, uint32_t lane, const TensorBox& box, uint64_t row, std::byte* to) {
  const TensorMap& map = box.map;
  const TensorRow part = RowOf(box, row);
  if (part.end - part.first != map.count[0]) {
    const uint64_t fill = map.fill_nan ? NotANumber(map.type) : 0;
    for (uint32_t at = 0; at < box.row_bytes; at += kPiece) __builtin_memcpy(to + at, &fill, kPiece);
  }
  if (part.first == part.end) return true;
  const auto bytes = static_cast<uint32_t>(TensorBytes(map.type, part.end - part.first));
  std::byte* first = to + TensorBytes(map.type, part.first);
  const std::byte* from =
      part.address - kArenaVa < w.arena_bytes ? Stretch(w, lane, part.address, bytes, false) : nullptr;
  if (from == nullptr) {
    RaiseAddressFault(w, i, CuStatus::kIllegalAddress, lane, part.address, bytes, "tensor copy from");
    return false;
  }
  __builtin_memcpy(first, from, bytes);
  Convert(map.type, first, bytes);
  return true;
}

// The next rows of the box, to `count` places. A row is read once, however many blocks get it.
Piece LoadRows(Warp& w, const Inst* i, uint32_t lane, const TensorBox& box, const SharedBox* places, uint32_t count,
               uint32_t& done) {
  alignas(8) std::byte row[kMostRowBytes];
  return MoveRows(box, count, done, [&](uint64_t r) {
    if (!LoadRow(w, i, lane, box, r, row)) return false;
    for (uint32_t n = 0; n < count; ++n) MoveRow<true>(box, places[n], r * box.shared_row_bytes, row);
    return true;
  });
}

// Operands: map 0, to 1, mbarrier 2 (all generic addresses).
const Inst* TensorLoad(Warp& w, const Inst* i) {
  return OnePiece(w, i, [&](uint32_t l, uint32_t& done) {
    TensorBox box;
    SharedBox to;
    if (!ReadBox(w, i, l, &box) || !ReachBox(w, i, l, In<uint64_t>(w, i, 1)[l], box, true, &to)) return Piece::kFault;
    const Piece piece = LoadRows(w, i, l, box, &to, 1, done);
    if (piece != Piece::kLast) return piece;
    return TellBarrier(w, i, l, In<uint64_t>(w, i, 2)[l], box.bytes()) ? piece : Piece::kFault;
  });
}

Piece MulticastOfLane(Warp& w, const Inst* i, uint32_t l, uint32_t& done) {
  TensorBox box;
  if (!ReadBox(w, i, l, &box)) return Piece::kFault;
  uint64_t within[2];  // the block's shared memory: where the box goes, the mbarrier
  for (int n = 0; n < 2; ++n) {
    const uint64_t address = In<uint64_t>(w, i, 1 + n)[l];
    within[n] = (address - kSharedWindow) % kWindowBytes;
    if (address - kSharedWindow < kClusterWindowBytes) continue;
    RaiseAddressFault(w, i, CuStatus::kIllegalAddress, l, address, box.row_bytes, "tensor copy to");
    return Piece::kFault;
  }
  const auto [to, barrier] = within;
  const uint32_t blocks = In<uint32_t>(w, i, 3)[l] & ((1u << kMostClusterCtas) - 1);
  const auto window_of = [](uint32_t rest) {
    return kSharedWindow + (static_cast<uint64_t>(__builtin_ctz(rest)) + 1) * kWindowBytes;
  };
  SharedBox places[kMostClusterCtas];
  uint32_t count = 0;
  for (uint32_t rest = blocks; rest != 0; rest &= rest - 1)
    if (!ReachBox(w, i, l, window_of(rest) + to, box, true, &places[count++])) return Piece::kFault;
  const Piece piece = count != 0 ? LoadRows(w, i, l, box, places, count, done) : Piece::kLast;
  if (piece != Piece::kLast) return piece;
  for (uint32_t rest = blocks; rest != 0; rest &= rest - 1)
    if (!TellBarrier(w, i, l, window_of(rest) + barrier, box.bytes())) return Piece::kFault;
  return piece;
}
// As TensorLoad, to the same place in each block of the cluster that the mask (3) names.
const Inst* TensorMulticast(Warp& w, const Inst* i) {
  return OnePiece(w, i, [&](uint32_t lane, uint32_t& done) { return MulticastOfLane(w, i, lane, done); });
}

// Operands: map 0, from 1.
const Inst* TensorStore(Warp& w, const Inst* i) {
  return EachRow(w, i, [](uint32_t, uint32_t, std::byte* to, const std::byte* from, uint32_t bytes) {
    __builtin_memcpy(to, from, bytes);
    return true;
  });
}

const Inst* TensorPrefetch(Warp&, const Inst* i) { return i + 1; }

}  // namespace

OpRows TensorRows() {
  static const OpRow kRows[] = {
      {"@cp.async.bulk.tensor.load", TensorLoad, "", kInPieces},
      {"@cp.async.bulk.tensor.load.multicast", TensorMulticast, "", kInPieces},
      {"@cp.async.bulk.tensor.store", TensorStore, "", kInPieces},
      {"@cp.async.bulk.prefetch.tensor", TensorPrefetch, ""},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
