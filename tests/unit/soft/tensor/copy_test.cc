// SPDX-License-Identifier: Apache-2.0
// cp.async.bulk.tensor and its reductions against plain loops over coordinates.
#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "tests/unit/soft/rig/tensor_fixture.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;

std::vector<uint8_t> RandomBytes(size_t count, uint32_t seed) {
  std::mt19937 source(seed);
  std::vector<uint8_t> bytes(count);
  for (auto& b : bytes) b = static_cast<uint8_t>(source());
  return bytes;
}

std::string Load(const TensorCase& c, uint64_t bytes, const char* mode = "tile") {
  return "mbarrier.arrive.expect_tx.shared.b64 %rd6, [%r2], " + std::to_string(bytes) + ";\ncp.async.bulk.tensor." +
         std::to_string(c.size.size()) + "d.shared::cluster.global." + mode +
         ".mbarrier::complete_tx::bytes [%r1], [%rd1, " + Coordinates(c.at) +
         "], [%r2];\nWAIT: mbarrier.try_wait.parity.shared.b64 %p3, [%r2], 0; @!%p3 bra WAIT;";
}
std::string Store(const TensorCase& c, const std::string& what = "cp.async.bulk.tensor", const std::string& op = "") {
  return what + "." + std::to_string(c.size.size()) + "d.global.shared::cta" + op + ".bulk_group [%rd1, " +
         Coordinates(c.at) + "], [%r1]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;";
}

class TensorCopies : public testing::TestWithParam<TensorCase> {};

TEST_P(TensorCopies, ABoxIsLoadedWhereItBelongs) {
  const TensorCase& c = GetParam();
  TensorMachine m;
  const auto tensor = RandomBytes(c.TensorBytes(), 1);
  const auto tile = m.RunTile(Load(c, c.Elements() * c.bytes), MapOf(c, m.Upload(tensor)));
  ASSERT_EQ(m.outcome.status, CuStatus::kSuccess) << m.outcome.text;
  std::vector<uint8_t> expected(kTileBytes, kUntouched);
  for (uint64_t n = 0; n < c.Elements(); ++n) {
    const BoxElement e = ElementOfBox(c, n);
    for (uint32_t b = 0; b < c.bytes; ++b) {
      const uint8_t fill = c.nan ? (b % c.bytes == c.bytes - 1 ? 0x7f : 0xff) : 0;
      expected[PlaceOf(c, n * c.bytes + b)] = e.inside ? tensor[e.offset + b] : fill;
    }
  }
  EXPECT_EQ(tile, expected);
}

TEST_P(TensorCopies, ABoxIsStoredAsFarAsTheTensorReaches) {
  const TensorCase& c = GetParam();
  TensorMachine m;
  auto tensor = RandomBytes(c.TensorBytes(), 2);
  const auto tile = RandomBytes(kTileBytes, 3);
  const GpuVa at = m.Upload(tensor);
  m.RunTile(Store(c), MapOf(c, at), tile);
  const bool for_loads_only = c.atomicity == VGPU_ATOM_32_FLIP_8;
  ASSERT_EQ(m.outcome.status, for_loads_only ? CuStatus::kIllegalInstruction : CuStatus::kSuccess) << m.outcome.text;
  for (uint64_t n = 0; n < c.Elements() && !for_loads_only; ++n) {
    const BoxElement e = ElementOfBox(c, n);
    for (uint32_t b = 0; e.inside && b < c.bytes; ++b) tensor[e.offset + b] = tile[PlaceOf(c, n * c.bytes + b)];
  }
  EXPECT_EQ(m.Download<uint8_t>(at, tensor.size()), tensor);
}

INSTANTIATE_TEST_SUITE_P(
    , TensorCopies,
    testing::ValuesIn(std::vector<TensorCase>{
        {"line", VGPU_TENSOR_U8, 1, {100}, {64}, {16}},
        {"line_before", VGPU_TENSOR_F32, 4, {40}, {16}, {-3}},
        {"plane", VGPU_TENSOR_F16, 2, {40, 9}, {8, 4}, {5, 3}},
        {"plane_behind", VGPU_TENSOR_U16, 2, {40, 9}, {16, 4}, {33, 7}},
        {"plane_outside", VGPU_TENSOR_U32, 4, {40, 9}, {8, 4}, {40, -4}},
        {"plane_gap", VGPU_TENSOR_F64, 8, {10, 6}, {4, 3}, {7, 4}, VGPU_SWIZZLE_NONE, VGPU_ATOM_16, {}, false, 48},
        {"space", VGPU_TENSOR_S32, 4, {12, 5, 4}, {8, 3, 2}, {2, -1, 3}},
        {"four", VGPU_TENSOR_U8, 1, {32, 3, 4, 3}, {16, 2, 3, 2}, {20, 1, 2, 2}},
        {"five", VGPU_TENSOR_BF16, 2, {24, 3, 2, 3, 4}, {8, 2, 2, 2, 3}, {3, 2, 1, -1, 2}},
        {"steps", VGPU_TENSOR_U32, 4, {16, 20, 12}, {8, 7, 5}, {4, 3, 1}, VGPU_SWIZZLE_NONE, VGPU_ATOM_16, {1, 2, 3}},
        {"nan_half", VGPU_TENSOR_F16, 2, {12, 4}, {16, 4}, {-2, 2}, VGPU_SWIZZLE_NONE, VGPU_ATOM_16, {}, true},
        {"nan_double", VGPU_TENSOR_F64, 8, {12, 4}, {4, 4}, {-2, 2}, VGPU_SWIZZLE_NONE, VGPU_ATOM_16, {}, true},
        {"swizzle_32", VGPU_TENSOR_U16, 2, {64, 64}, {16, 32}, {3, 5}, VGPU_SWIZZLE_32},
        {"swizzle_64", VGPU_TENSOR_F32, 4, {64, 64}, {16, 32}, {3, 50}, VGPU_SWIZZLE_64},
        {"swizzle_128", VGPU_TENSOR_F16, 2, {64, 64}, {64, 17}, {-1, 5}, VGPU_SWIZZLE_128},
        {"swizzle_short", VGPU_TENSOR_F16, 2, {64, 64}, {24, 17}, {1, 5}, VGPU_SWIZZLE_128},
        {"swizzle_atom_32", VGPU_TENSOR_F16, 2, {64, 64}, {64, 16}, {1, 5}, VGPU_SWIZZLE_128, VGPU_ATOM_32},
        {"swizzle_flip", VGPU_TENSOR_F16, 2, {64, 64}, {64, 16}, {1, 5}, VGPU_SWIZZLE_128, VGPU_ATOM_32_FLIP_8},
        {"swizzle_atom_64", VGPU_TENSOR_F16, 2, {64, 64}, {64, 16}, {1, 5}, VGPU_SWIZZLE_128, VGPU_ATOM_64},
    }),
    [](const auto& p) { return std::string(p.param.name); });

const TensorCase kPlane = {"", VGPU_TENSOR_U32, 4, {40, 9}, {8, 4}, {36, 6}};

TEST(Tensors, ValuesAreFlushedAndShortenedOnTheWay) {
  const std::vector<uint32_t> values = {0x00000001, 0x80700000, 0x3f800fff, 0x3f801000,
                                        0x3f803000, 0x7f7fffff, 0xff800000, 0x7fc00001};
  const std::map<uint32_t, std::vector<uint32_t>> by_type = {
      {VGPU_TENSOR_F32_FTZ, {0, 0x80000000, 0x3f800fff, 0x3f801000, 0x3f803000, 0x7f7fffff, 0xff800000, 0x7fc00001}},
      {VGPU_TENSOR_TF32, {0, 0x80700000, 0x3f800000, 0x3f800000, 0x3f804000, 0x7f800000, 0xff800000, 0x7fffffff}},
      {VGPU_TENSOR_TF32_FTZ, {0, 0x80000000, 0x3f800000, 0x3f800000, 0x3f804000, 0x7f800000, 0xff800000, 0x7fffffff}}};
  for (const auto& [type, expected] : by_type) {
    TensorMachine m;
    const TensorCase c = {"", type, 4, {8}, {8}, {0}};
    const auto tile = m.RunTile(Load(c, 32), MapOf(c, m.Upload(values)));
    ASSERT_EQ(m.outcome.status, CuStatus::kSuccess) << m.outcome.text;
    std::vector<uint32_t> got(8);
    std::memcpy(got.data(), tile.data(), 32);
    EXPECT_EQ(got, expected) << type;
  }
}

// 16 elements of four or six bits fill 8 or 12 of 16 bytes.
TEST(Tensors, PackedElementsAreSpreadOut) {
  for (const auto& [type, group] : {std::pair{VGPU_TENSOR_B4X16_P64, 8u}, std::pair{VGPU_TENSOR_B6X16_P32, 12u}}) {
    TensorMachine m;
    const uint32_t row = 2 * 8 * group;  // 256 elements
    const auto tensor = RandomBytes(3 * row, 5);
    vgpu_tensor_map map = MapOf({"", type, 1, {256, 3}, {128, 2}, {128, 1}}, m.Upload(tensor));
    map.stride[0] = row;
    const auto tile = m.RunTile(Load({"", type, 1, {256, 3}, {128, 2}, {128, 1}}, 2 * 8 * group), map);
    ASSERT_EQ(m.outcome.status, CuStatus::kSuccess) << m.outcome.text;
    for (uint32_t y = 0; y < 2; ++y)
      for (uint32_t x = 0; x < 128; ++x)
        EXPECT_EQ(tile[y * 128 + x],
                  x % 16 < group ? tensor[(y + 1) * row + row / 2 + x / 16 * group + x % 16] : kUntouched);
  }
}

TEST(Tensors, FourRowsAreGatheredAndScattered) {
  TensorMachine m;
  std::vector<uint32_t> tensor(40 * 9);
  for (uint32_t n = 0; n < tensor.size(); ++n) tensor[n] = n;
  const TensorCase c = {"", VGPU_TENSOR_U32, 4, {40, 9}, {8, 1}, {36, 7, 2, 9, 0}};
  const GpuVa at = m.Upload(tensor);
  auto tile = m.RunTile(Load(c, 128, "tile::gather4"), MapOf(c, at));
  ASSERT_EQ(m.outcome.status, CuStatus::kSuccess) << m.outcome.text;
  std::vector<uint32_t> got(32);
  std::memcpy(got.data(), tile.data(), 128);
  for (uint32_t n = 0; n < 32; ++n) {
    const uint32_t rows[] = {7, 2, 9, 0}, x = 36 + n % 8;
    EXPECT_EQ(got[n], x < 40 && rows[n / 8] < 9 ? rows[n / 8] * 40 + x : 0u) << n;
  }
  m.RunTile("cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%rd1, {36, 7, 2, 9, 0}], [%r1];",
            MapOf(c, at));
  ASSERT_EQ(m.outcome.status, CuStatus::kSuccess) << m.outcome.text;
  for (const uint32_t y : {7u, 2u, 0u})
    for (uint32_t x = 36; x < 40; ++x) tensor[y * 40 + x] = 0xeeeeeeee;
  EXPECT_EQ(m.Download<uint32_t>(at, tensor.size()), tensor);
}

TEST(Tensors, ABoxIsReducedIntoTheTensor) {
  const std::map<std::string, uint32_t (*)(uint32_t, uint32_t)> ops = {
      {"add", [](uint32_t a, uint32_t b) { return a + b; }},
      {"min", [](uint32_t a, uint32_t b) { return std::min(a, b); }},
      {"max", [](uint32_t a, uint32_t b) { return std::max(a, b); }},
      {"and", [](uint32_t a, uint32_t b) { return a & b; }},
      {"or", [](uint32_t a, uint32_t b) { return a | b; }},
      {"xor", [](uint32_t a, uint32_t b) { return a ^ b; }},
      {"inc", [](uint32_t a, uint32_t b) { return a >= b ? 0 : a + 1; }},
      {"dec", [](uint32_t a, uint32_t b) { return a == 0 || a > b ? b : a - 1; }}};
  for (const auto& [op, reduce] : ops) {
    TensorMachine m;
    auto tensor = RandomBytes(kPlane.TensorBytes(), 6);
    const auto tile = RandomBytes(kTileBytes, 7);
    const GpuVa at = m.Upload(tensor);
    m.RunTile(Store(kPlane, "cp.reduce.async.bulk.tensor", "." + op + ".tile"), MapOf(kPlane, at), tile);
    ASSERT_EQ(m.outcome.status, CuStatus::kSuccess) << m.outcome.text;
    for (uint64_t n = 0; n < kPlane.Elements(); ++n) {
      const BoxElement e = ElementOfBox(kPlane, n);
      if (!e.inside) continue;
      uint32_t a, b;
      std::memcpy(&a, tensor.data() + e.offset, 4);
      std::memcpy(&b, tile.data() + n * 4, 4);
      a = reduce(a, b);
      std::memcpy(tensor.data() + e.offset, &a, 4);
    }
    EXPECT_EQ(m.Download<uint8_t>(at, tensor.size()), tensor) << op;
  }
}

TEST(Tensors, HalvesAreAddedAndComparedAsNumbers) {
  const TensorCase c = {"", VGPU_TENSOR_F16, 2, {8}, {8}, {0}};
  const auto half = [](float v) { return std::bit_cast<uint16_t>(static_cast<_Float16>(v)); };
  for (const auto& [op, value] : {std::pair{".add", 1.5f}, std::pair{".min", -0.5f}, std::pair{".max", 2.0f}}) {
    TensorMachine m;
    const GpuVa at = m.Upload(std::vector<uint16_t>(8, half(-0.5f)));
    std::vector<uint8_t> tile(kTileBytes);
    for (size_t n = 0; n < 8; ++n) {
      const uint16_t v = half(2.0f);
      std::memcpy(tile.data() + 2 * n, &v, 2);
    }
    m.RunTile(Store(c, "cp.reduce.async.bulk.tensor", op), MapOf(c, at), tile);
    ASSERT_EQ(m.outcome.status, CuStatus::kSuccess) << m.outcome.text;
    EXPECT_EQ(m.Download<uint16_t>(at, 8), std::vector<uint16_t>(8, half(value))) << op;
  }
}

// Every lane of a warp loads a box of its own; prefetches and fences change nothing.
TEST(Tensors, LanesLoadForThemselves) {
  TensorMachine m;
  std::vector<uint32_t> tensor(64 * 32);
  for (uint32_t n = 0; n < tensor.size(); ++n) tensor[n] = n;
  const TensorCase c = {"", VGPU_TENSOR_U32, 4, {64, 32}, {32, 1}, {0, 0}};
  const auto tile = m.RunTile("", MapOf(c, m.Upload(tensor)), std::vector<uint8_t>(kTileBytes, 0), R"(
    @!%p1 mbarrier.arrive.expect_tx.shared.b64 %rd6, [%r2], 4096; bar.sync 0;
    prefetch.tensormap [%rd1]; fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;
    cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd1, {%r30, %r30}];
    shl.b32 %r7, %r30, 7; add.u32 %r8, %r1, %r7;
    cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r8], [%rd1, {%r30, %r30}], [%r2];
  WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [%r2], 0; @!%p3 bra WAIT;
    ld.shared.u32 %r9, [%r8+4]; add.u64 %rd7, %rd2, 0; mul.wide.u32 %rd8, %r30, 4; add.u64 %rd7, %rd7, %rd8;
    st.global.u32 [%rd7], %r9;)");
  ASSERT_EQ(m.outcome.status, CuStatus::kSuccess) << m.outcome.text;
  std::vector<uint32_t> got(32);
  std::memcpy(got.data(), tile.data(), 128);
  for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(got[l], l * 64 + l + 1);
}

}  // namespace
}  // namespace vgpud::soft
