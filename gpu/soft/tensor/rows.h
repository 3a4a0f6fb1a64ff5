// SPDX-License-Identifier: Apache-2.0
// Rows of boxes on their way between shared memory and a tensor.
#pragma once

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

// Copies of one lane: the first of the current split. The others come back to the instruction, so a stop waits for one
// lane's boxes at most and finds each lane before its copy or behind it. The decoder lets it divert, so a guard is a
// branch. `copy(lane)` is false when a fault was raised.
template <class Copy>
ALWAYS const Inst* CopyOneLane(Warp& w, const Inst* i, Copy copy) {
  if (!copy(static_cast<uint32_t>(__builtin_ctz(w.mask)))) return i;
  const uint32_t rest = w.mask & (w.mask - 1);
  return rest == 0 ? i + 1 : Diverge(w, i, rest, i + 1, w.mask & ~rest);
}

// One lane's rows from shared memory go through `put` to global memory, as far as the tensor reaches. False: a fault
// was raised.
template <class Put>
ALWAYS bool PutRows(Warp& w, const Inst* i, uint32_t lane, Put put) {
  TensorBox box;
  SharedBox shared;
  if (!ReadBox(w, i, lane, &box) || !CanStore(w, i, lane, box.map) ||
      !ReachBox(w, i, lane, In<uint64_t>(w, i, 1)[lane], box, false, &shared))
    return false;
  alignas(8) std::byte row[kMostRowBytes];
  for (uint64_t r = 0; r < box.rows; ++r) {
    const TensorRow part = RowOf(box, r);
    if (part.first == part.end) continue;
    MoveRow<false>(box, shared, r * box.shared_row_bytes, row);
    const auto bytes = static_cast<uint32_t>(TensorBytes(box.map.type, part.end - part.first));
    std::byte* to = part.address - kArenaVa < w.arena_bytes ? Stretch(w, lane, part.address, bytes, true) : nullptr;
    if (to == nullptr) {
      RaiseAddressFault(w, i, CuStatus::kIllegalAddress, lane, part.address, bytes, "tensor copy to");
      return false;
    }
    if (!put(lane, box.map.type, to, row + TensorBytes(box.map.type, part.first), bytes)) return false;
  }
  return true;
}

// PutRows of each lane.
template <class Put>
ALWAYS const Inst* EachRow(Warp& w, const Inst* i, Put put) {
  const bool last = (w.mask & (w.mask - 1)) == 0;
  const Inst* next = CopyOneLane(w, i, [&](uint32_t lane) { return PutRows(w, i, lane, put); });
  if (last && next != i) NoteSync(w, i);
  return next;
}

}  // namespace vgpud::soft::VGPUD_ISA
