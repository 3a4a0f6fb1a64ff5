// SPDX-License-Identifier: Apache-2.0
// tensormap.replace and tensormap.cp_fenceproxy (PTX ISA "tensormap.replace", "tensormap.cp_fenceproxy"). What is
// written is looked at when the map is used.
#include "gpu/soft/ops/address.h"
#include "gpu/soft/tensor/map.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

// Where a field is in the map, and how it has what is written: `width` bytes.
struct Field {
  uint32_t offset;
  uint32_t width;
};
#define AT(member) __builtin_offsetof(vgpu_tensor_map, member)
constexpr Field kAddress = {AT(address), 8};
constexpr Field kRank = {AT(rank_minus_1), 1};
constexpr Field kBox = {AT(box), 2};
constexpr Field kSize = {AT(size), 8};
constexpr Field kStride = {AT(stride), 8};
constexpr Field kElementStride = {AT(element_stride), 1};
constexpr Field kType = {AT(type), 1};
constexpr Field kInterleave = {AT(interleave), 1};
constexpr Field kSwizzle = {AT(swizzle), 1};
constexpr Field kAtomicity = {AT(atomicity), 1};
constexpr Field kFill = {AT(fill), 1};
#undef AT

// nullptr: a fault was raised.
std::byte* MapAt(Warp& w, const Inst* i, uint32_t lane, uint64_t address, bool store) {
  std::byte* at = LaneAddress(w, MemSpace::kGeneric, lane, address, sizeof(vgpu_tensor_map), store);
  if (at != nullptr && address % sizeof(vgpu_tensor_map) == 0) return at;
  RaiseAddressFault(w, i, at == nullptr ? CuStatus::kIllegalAddress : CuStatus::kMisalignedAddress, lane, address,
                    sizeof(vgpu_tensor_map), "tensor map");
  return nullptr;
}

// Operands: map 0 (generic address), the value 1. imm: number of the dimension.
template <const Field& kField, class Value>
const Inst* Replace(Warp& w, const Inst* i) {
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    std::byte* map = MapAt(w, i, l, In<uint64_t>(w, i, 0)[l], true);
    if (map == nullptr) return i;
    const uint64_t value = In<Value>(w, i, 1)[l];
    // What is too large for the field is too large for a map.
    constexpr uint64_t kMost = kField.width == 8 ? UINT64_MAX : (uint64_t{1} << 8 * kField.width) - 1;
    const uint64_t kept = value < kMost ? value : kMost;
    __builtin_memcpy(map + kField.offset + kField.width * static_cast<uint32_t>(i->imm), &kept, kField.width);
  }
  return i + 1;
}

// Operands: to 0, from 1.
const Inst* CopyMap(Warp& w, const Inst* i) {
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    const std::byte* from = MapAt(w, i, l, In<uint64_t>(w, i, 1)[l], false);
    std::byte* to = from != nullptr ? MapAt(w, i, l, In<uint64_t>(w, i, 0)[l], true) : nullptr;
    if (to == nullptr) return i;
    __builtin_memmove(to, from, sizeof(vgpu_tensor_map));
  }
  NoteSync(w, i);
  return i + 1;
}

}  // namespace

// Operands of a row: a value of 32 or 64 bits, behind n where a dimension is named.
OpRows TensorMapRows() {
#define REPLACE(field, kField, letters, Value) \
  { "@tensormap.replace.tile." field, Replace<kField, Value>, letters }
  static const OpRow kRows[] = {
      REPLACE("global_address", kAddress, "A", uint64_t), REPLACE("rank", kRank, "a", uint32_t),
      REPLACE("box_dim", kBox, "na", uint32_t),           REPLACE("global_dim", kSize, "na", uint32_t),
      REPLACE("global_stride", kStride, "nA", uint64_t),  REPLACE("element_stride", kElementStride, "na", uint32_t),
      REPLACE("elemtype", kType, "a", uint32_t),          REPLACE("interleave_layout", kInterleave, "a", uint32_t),
      REPLACE("swizzle_mode", kSwizzle, "a", uint32_t),   REPLACE("swizzle_atomicity", kAtomicity, "a", uint32_t),
      REPLACE("fill_mode", kFill, "a", uint32_t),         {"@tensormap.cp_fenceproxy", CopyMap, ""},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
