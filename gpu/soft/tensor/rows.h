// SPDX-License-Identifier: Apache-2.0
// Rows of boxes on their way between shared memory and a tensor.
#pragma once

#include "gpu/soft/ops/pieces.h"
#include "gpu/soft/tensor/box.h"

namespace vgpud::soft::VGPUD_ISA {

inline constexpr uint32_t kPiece = 8;  // bytes that are never torn apart by a swizzle

// Between a row as global memory has it and shared memory. Of packed types that are padded there, 16 elements at a time
// lie in 16 bytes, from the first byte on.
template <bool kStore>
ALWAYS void MoveRow(const TensorBox& box, const SharedBox& shared, uint64_t position, std::byte* row) {
  const uint32_t piece = box.row_bytes == box.shared_row_bytes ? kPiece : 4;
  const uint32_t group = 16 * box.row_bytes / box.shared_row_bytes;
  for (uint32_t at = 0; at < box.row_bytes; at += piece) {
    const uint32_t padded = box.row_bytes == box.shared_row_bytes ? at : at / group * 16 + at % group;
    std::byte* there = shared.At(box.map, position + padded);
    if constexpr (kStore) {
      __builtin_memcpy(there, row + at, piece);
    } else {
      __builtin_memcpy(row + at, there, piece);
    }
  }
}

// Is there such a copy of this map from shared memory?
ALWAYS bool CanStore(Warp& w, const Inst* i, uint32_t lane, const TensorMap& map) {
  if (map.type != VGPU_TENSOR_B4X16_P64 && map.atomicity != VGPU_ATOM_32_FLIP_8) return true;
  RaiseFault(w, i, CuStatus::kIllegalInstruction, lane, "tensor map: its type or swizzle mode is for loads only");
  return false;
}

// The next rows of a lane's box, as many as make a piece at `places` places: `move(row)`, which is false when it raised
// a fault. Done counts rows.
template <class Move>
ALWAYS Piece MoveRows(const TensorBox& box, uint32_t places, uint32_t& done, Move move) {
  const uint64_t bytes = uint64_t{box.row_bytes} * (places != 0 ? places : 1);
  const uint64_t at_once = bytes < kBytesAtOnce ? kBytesAtOnce / bytes : 1;
  for (uint64_t n = 0; n < at_once && done < box.rows; ++n, ++done)
    if (!move(uint64_t{done})) return Piece::kFault;
  return done < box.rows ? Piece::kMore : Piece::kLast;
}

// A lane's rows from shared memory go through `put` to global memory, as far as the tensor reaches.
template <class Put>
ALWAYS Piece PutRows(Warp& w, const Inst* i, uint32_t lane, uint32_t& done, Put put) {
  TensorBox box;
  SharedBox shared;
  if (!ReadBox(w, i, lane, &box) || !CanStore(w, i, lane, box.map) ||
      !ReachBox(w, i, lane, In<uint64_t>(w, i, 1)[lane], box, false, &shared))
    return Piece::kFault;
  alignas(8) std::byte row[kMostRowBytes];
  return MoveRows(box, 1, done, [&](uint64_t r) {
    const TensorRow part = RowOf(box, r);
    if (part.first == part.end) return true;
    MoveRow<false>(box, shared, r * box.shared_row_bytes, row);
    const auto bytes = static_cast<uint32_t>(TensorBytes(box.map.type, part.end - part.first));
    std::byte* to = part.address - kArenaVa < w.arena_bytes ? Stretch(w, lane, part.address, bytes, true) : nullptr;
    if (to != nullptr) return put(lane, box.map.type, to, row + TensorBytes(box.map.type, part.first), bytes);
    RaiseAddressFault(w, i, CuStatus::kIllegalAddress, lane, part.address, bytes, "tensor copy to");
    return false;
  });
}

// PutRows of each lane.
template <class Put>
ALWAYS const Inst* EachRow(Warp& w, const Inst* i, Put put) {
  const Inst* const next =
      OnePiece(w, i, [&](uint32_t lane, uint32_t& done) { return PutRows(w, i, lane, done, put); });
  if (next == i + 1) NoteSync(w, i);
  return next;
}

}  // namespace vgpud::soft::VGPUD_ISA
