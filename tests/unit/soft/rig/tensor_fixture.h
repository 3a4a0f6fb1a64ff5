// SPDX-License-Identifier: Apache-2.0
// Tensors and their maps in tests: a map is written field by field, and where the bytes of a box belong is worked out
// from coordinates, without the soft GPU's own code.
#pragma once

#include "guest-driver-shim/include/uapi/vgpu_tensor_map.h"
#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {

// Bytes of shared memory that a test has for boxes.
inline constexpr uint32_t kTileBytes = 16384;
inline constexpr uint8_t kUntouched = 0xee;

struct TensorCase {
  const char* name;
  uint32_t type;
  uint32_t bytes;  // of an element
  std::vector<uint64_t> size;
  std::vector<uint32_t> box;
  std::vector<int32_t> at;
  uint32_t swizzle = VGPU_SWIZZLE_NONE;
  uint32_t atomicity = VGPU_ATOM_16;
  std::vector<uint32_t> step = {};  // element strides; empty: 1
  bool nan = false;
  uint32_t gap = 0;  // bytes between rows

  uint32_t Step(size_t d) const { return d == 0 || step.empty() ? 1 : step[d]; }
  uint32_t Count(size_t d) const { return (box[d] + Step(d) - 1) / Step(d); }
  uint64_t Stride(size_t d) const {
    uint64_t stride = bytes;
    for (size_t n = 0; n < d; ++n) stride = n == 0 ? (stride * size[0] + gap + 31) / 32 * 32 : stride * size[n];
    return stride;
  }
  uint64_t TensorBytes() const { return Stride(size.size()); }
  uint64_t Elements() const {
    uint64_t n = 1;
    for (size_t d = 0; d < box.size(); ++d) n *= Count(d);
    return n;
  }
};

inline void PrintTo(const TensorCase& c, std::ostream* out) { *out << c.name; }

inline vgpu_tensor_map MapOf(const TensorCase& c, GpuVa tensor) {
  vgpu_tensor_map map{};
  map.magic = VGPU_TENSOR_MAP_MAGIC;
  map.type = static_cast<uint8_t>(c.type);
  map.rank_minus_1 = static_cast<uint8_t>(c.size.size() - 1);
  map.swizzle = static_cast<uint8_t>(c.swizzle);
  map.atomicity = static_cast<uint8_t>(c.atomicity);
  map.fill = c.nan ? 1 : 0;
  map.address = Raw(tensor);
  for (size_t d = 0; d < c.size.size(); ++d) {
    map.size[d] = c.size[d];
    map.box[d] = static_cast<uint16_t>(c.box[d]);
    map.element_stride[d] = static_cast<uint8_t>(c.Step(d));
    if (d > 0) map.stride[d - 1] = c.Stride(d);
  }
  return map;
}

// Element number n of the box, in the order of shared memory: its place in the tensor, or that it is outside.
struct BoxElement {
  bool inside = true;
  uint64_t offset = 0;  // bytes into the tensor
};
inline BoxElement ElementOfBox(const TensorCase& c, uint64_t n) {
  BoxElement e;
  for (size_t d = 0; d < c.size.size(); ++d) {
    const int64_t at = c.at[d] + static_cast<int64_t>(n % c.Count(d)) * c.Step(d);
    n /= c.Count(d);
    e.inside = e.inside && at >= 0 && at < static_cast<int64_t>(c.size[d]);
    e.offset += static_cast<uint64_t>(at) * c.Stride(d);
  }
  return e;
}

// Where byte number `at` of a box lies: 128 bytes are a row of chunks, whose numbers are mixed with that of the row.
inline uint64_t PlaceOf(const TensorCase& c, uint64_t at) {
  const uint64_t row = at / 128, column = at % 128;
  struct Mode {
    uint32_t swizzle, atomicity, chunk, rows;
  };
  constexpr Mode kModes[] = {
      {VGPU_SWIZZLE_32, VGPU_ATOM_16, 16, 2},         {VGPU_SWIZZLE_64, VGPU_ATOM_16, 16, 4},
      {VGPU_SWIZZLE_128, VGPU_ATOM_16, 16, 8},        {VGPU_SWIZZLE_128, VGPU_ATOM_32, 32, 4},
      {VGPU_SWIZZLE_128, VGPU_ATOM_32_FLIP_8, 32, 4}, {VGPU_SWIZZLE_128, VGPU_ATOM_64, 64, 2},
  };
  for (const Mode& m : kModes) {
    if (m.swizzle != c.swizzle || m.atomicity != c.atomicity) continue;
    uint64_t within = column % m.chunk;
    if (m.atomicity == VGPU_ATOM_32_FLIP_8 && row % 2 == 1) within = (within + 8) % 16 + within / 16 * 16;
    return row * 128 + (column / m.chunk ^ row % m.rows) * m.chunk + within;
  }
  return at;
}

// What kernels of tensor tests begin with: shared memory `tile`, full of kUntouched, and an mbarrier `bar` that waits
// for one arrival. %rd1: map, %rd2: where to put what the tile holds in the end.
inline std::string TensorKernel(const std::string& body, const std::string& after = "") {
  return R"(
    .shared .align 1024 .b8 tile[16384]; .shared .align 8 .b8 bar[8];
    ld.param.u64 %rd1, [map]; ld.param.u64 %rd2, [out]; ld.param.u64 %rd3, [in];
    mov.u32 %r1, tile; mov.u32 %r2, bar; mov.u32 %r30, %tid.x; shl.b32 %r31, %r30, 2;
    setp.ne.u32 %p1, %r30, 0; mov.u32 %r3, 0;
  FILL: add.u32 %r4, %r3, %r31; add.u32 %r5, %r1, %r4; cvt.u64.u32 %rd4, %r4; add.u64 %rd5, %rd3, %rd4;
    ld.global.u32 %r6, [%rd5]; st.shared.u32 [%r5], %r6; add.u32 %r3, %r3, 128; setp.lt.u32 %p2, %r3, 16384;
    @%p2 bra FILL;
    @!%p1 mbarrier.init.shared.b64 [%r2], 1;
    bar.sync 0;
    @%p1 bra DONE;
)" + body +
         R"(
  DONE: bar.sync 0; mov.u32 %r3, 0;
  OUT: add.u32 %r4, %r3, %r31; add.u32 %r5, %r1, %r4; cvt.u64.u32 %rd4, %r4; add.u64 %rd5, %rd2, %rd4;
    ld.shared.u32 %r6, [%r5]; st.global.u32 [%rd5], %r6; add.u32 %r3, %r3, 128; setp.lt.u32 %p2, %r3, 16384;
    @%p2 bra OUT;
)" + after;
}

inline std::string Coordinates(const std::vector<int32_t>& at) {
  std::string text;
  for (const int32_t v : at) text += (text.empty() ? "{" : ", ") + std::to_string(v);
  return text + "}";
}

// Runs kernels of TensorKernel on a soft GPU of 9.0.
class TensorMachine : public SoftMachine {
 public:
  TensorMachine() : SoftMachine(BestIsa(), 64 << 20, 1, **FindComputeCapability("9.0")) {}
  // The tile's bytes in the end. `map`: 128 bytes; `tile`: those that it begins with.
  std::vector<uint8_t> RunTile(const std::string& body, const vgpu_tensor_map& map,
                               std::vector<uint8_t> tile = std::vector<uint8_t>(kTileBytes, kUntouched),
                               const std::string& after = "") {
    const Outcome loaded = LoadBody(".param .u64 map, .param .u64 out, .param .u64 in", TensorKernel(body, after));
    outcome = loaded;
    if (loaded.status != CuStatus::kSuccess) return {};
    map_at = Upload(std::vector<vgpu_tensor_map>{map});
    const GpuVa out = Alloc(kTileBytes);
    outcome =
        Run("k", {{1, 1, 1}, {32, 1, 1}, 0}, Params().Add(map_at).Add(out).Add(Upload(tile)), UINT64_MAX, 1'000'000);
    return outcome.status == CuStatus::kSuccess ? Download<uint8_t>(out, kTileBytes) : std::vector<uint8_t>();
  }
  Outcome outcome;
  GpuVa map_at{};
};

}  // namespace vgpud::soft
