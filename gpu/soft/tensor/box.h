// SPDX-License-Identifier: Apache-2.0
// A box of a tensor, as one lane's instruction names it: a tensor map, coordinates and a place in shared memory. All of
// it is the guest's, so nothing is used before it was checked.
#pragma once

#include "gpu/soft/code/tensor_form.h"
#include "gpu/soft/ops/address.h"
#include "gpu/soft/tensor/map.h"

namespace vgpud::soft::VGPUD_ISA {

// Of a row in global memory.
inline constexpr uint32_t kMostRowBytes = 256 * 8;

struct TensorBox {
  TensorMap map;
  int64_t at[VGPU_TENSOR_MAP_RANK];  // coordinates of its first element
  bool named_rows;                   // at[1] and on are the rows
  uint64_t rows;
  uint32_t row_bytes;         // in global memory
  uint32_t shared_row_bytes;  // in shared memory
  uint64_t bytes() const { return rows * row_bytes; }
  uint64_t shared_bytes() const { return rows * shared_row_bytes; }
};

// The part of a row that the tensor has: elements first <= n < end of the box. `address`: of element number `first`.
struct TensorRow {
  uint32_t first;
  uint32_t end;
  uint64_t address;
};

// Operand 0: address of the map (generic); extra operands: coordinates. False: a fault was raised.
ALWAYS bool ReadBox(Warp& w, const Inst* i, uint32_t lane, TensorBox* box) {
  const uint64_t address = In<uint64_t>(w, i, 0)[lane];
  const std::byte* bytes = LaneAddress(w, MemSpace::kGeneric, lane, address, sizeof(vgpu_tensor_map), false);
  if (bytes == nullptr || address % 64 != 0) {
    RaiseAddressFault(w, i, bytes == nullptr ? CuStatus::kIllegalAddress : CuStatus::kMisalignedAddress, lane, address,
                      sizeof(vgpu_tensor_map), "tensor map");
    return false;
  }
  vgpu_tensor_map copy;
  __builtin_memcpy(&copy, bytes, sizeof copy);
  const char* why = ReadTensorMap(copy, &box->map);
  const TensorMap& map = box->map;
  box->named_rows = (i->aux & kTensorRows) != 0;
  if (why == nullptr && map.rank != (i->aux & kTensorRank))
    why = "tensor map: it has another rank than the instruction";
  if (why == nullptr && box->named_rows && map.count[1] != 1) why = "tensor map: its box has several rows";
  if (why != nullptr) {
    RaiseFault(w, i, CuStatus::kIllegalInstruction, lane, why);
    return false;
  }
  const uint32_t coordinates = box->named_rows ? 1 + kNamedRows : map.rank;
  for (uint32_t d = 0; d < VGPU_TENSOR_MAP_RANK; ++d) {
    const ExtraOperand& o = w.extra[i->offset[kExtraOperand] + (d < coordinates ? d : 0)];
    const auto* lanes = reinterpret_cast<const int32_t*>(w.base[o.base] + o.offset);
    box->at[d] = d < coordinates ? lanes[lane] : 0;
  }
  box->rows = box->named_rows ? kNamedRows : map.rows();
  box->row_bytes = static_cast<uint32_t>(TensorBytes(map.type, map.count[0]));
  box->shared_row_bytes = map.count[0] * TensorSharedBits(map.type) / 8;
  // Elements of a few bits begin where a byte (or a group of them) does.
  const uint32_t step = TensorBits(map.type) >= 8 ? 1 : TensorSharedBits(map.type) == 4 ? 2 : 128;
  if (box->at[0] % step == 0) return true;
  RaiseFault(w, i, CuStatus::kIllegalInstruction, lane,
             "tensor copy: the first coordinate is inside of packed elements");
  return false;
}

// Row number `row`; one that is outside has first == end.
ALWAYS TensorRow RowOf(const TensorBox& box, uint64_t row) {
  const TensorMap& map = box.map;
  uint64_t address = map.address;
  bool inside = true;
  for (uint32_t d = 1; d < VGPU_TENSOR_MAP_RANK; ++d) {
    int64_t at = box.at[d];
    if (box.named_rows) {
      at = d == 1 ? box.at[1 + row] : 0;
    } else {
      at += static_cast<int64_t>(row % map.count[d] * map.element_stride[d]);
      row /= map.count[d];
    }
    inside = inside && at >= 0 && static_cast<uint64_t>(at) < map.size[d];
    address += static_cast<uint64_t>(at) * map.stride[d];
  }
  const int64_t count = map.count[0];
  const auto size = static_cast<int64_t>(map.size[0]);
  const int64_t first = box.at[0] >= 0 ? 0 : -box.at[0];
  const int64_t end = size - box.at[0] < count ? size - box.at[0] : count;
  if (!inside || first >= end) return {0, 0, 0};
  address += TensorBytes(map.type, static_cast<uint64_t>(box.at[0] + first));
  return {static_cast<uint32_t>(first), static_cast<uint32_t>(end), address};
}

// The shared memory of a box: host memory of the first byte, and its offset in the block's window.
struct SharedBox {
  std::byte* first;
  uint64_t offset;
  std::byte* At(const TensorMap& map, uint64_t position) const {
    return first + (Swizzled(map.swizzle, map.atomicity, offset + position) - offset);
  }
};
// `address`: generic. All that is swizzled lies in the same 128 bytes as the box. False: a fault was raised.
ALWAYS bool ReachBox(Warp& w, const Inst* i, uint32_t lane, uint64_t address, const TensorBox& box, bool store,
                     SharedBox* shared) {
  constexpr uint32_t kLine = 128;
  const uint64_t bytes =
      box.map.swizzle == VGPU_SWIZZLE_NONE ? box.shared_bytes() : (box.shared_bytes() + kLine - 1) / kLine * kLine;
  const bool is_shared = address - kSharedWindow < kClusterWindowBytes && bytes <= kWindowBytes;
  shared->first = is_shared ? Stretch(w, lane, address, static_cast<uint32_t>(bytes), store) : nullptr;
  shared->offset = (address - kSharedWindow) % kWindowBytes;
  if (shared->first != nullptr && address % kLine == 0) return true;
  RaiseAddressFault(w, i, shared->first == nullptr ? CuStatus::kIllegalAddress : CuStatus::kMisalignedAddress, lane,
                    address, static_cast<uint32_t>(bytes < UINT32_MAX ? bytes : UINT32_MAX),
                    store ? "tensor copy to" : "tensor copy from");
  return false;
}

}  // namespace vgpud::soft::VGPUD_ISA
