// SPDX-License-Identifier: Apache-2.0
// Tensor maps that are none, places where no box can be, tensormap.replace, and copies that there are not.
#include <gmock/gmock.h>

#include "tests/unit/soft/rig/tensor_fixture.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;

const TensorCase kPlane = {"", VGPU_TENSOR_U32, 4, {40, 9}, {8, 4}, {4, 2}};
constexpr const char* kLoad =
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {4, 2}], [%r2];";

struct BadMap {
  const char* name;
  void (*spoil)(vgpu_tensor_map& map);
  const char* why;
};
void PrintTo(const BadMap& c, std::ostream* out) { *out << c.name; }
class TensorMaps : public testing::TestWithParam<BadMap> {};

TEST_P(TensorMaps, WhatIsNoMapEndsTheKernel) {
  TensorMachine m;
  vgpu_tensor_map map = MapOf(kPlane, m.Alloc(kPlane.TensorBytes()));
  GetParam().spoil(map);
  m.RunTile(kLoad, map);
  EXPECT_EQ(m.outcome.status, CuStatus::kIllegalInstruction) << m.outcome.text;
  EXPECT_THAT(m.outcome.text, HasSubstr(GetParam().why));
}
INSTANTIATE_TEST_SUITE_P(, TensorMaps,
                         testing::ValuesIn(std::vector<BadMap>{
                             {"magic", [](auto& m) { m.magic = 0; }, "not made by this driver"},
                             {"rest", [](auto& m) { m.mbz2[3] = 1; }, "not made by this driver"},
                             {"type", [](auto& m) { m.type = VGPU_TENSOR_TYPES; }, "type or rank"},
                             {"rank", [](auto& m) { m.rank_minus_1 = 5; }, "type or rank"},
                             {"other_rank", [](auto& m) { m.rank_minus_1 = 0; }, "another rank"},
                             {"interleave", [](auto& m) { m.interleave = 1; }, "interleaved"},
                             {"swizzle", [](auto& m) { m.swizzle = 4; }, "swizzle mode"},
                             {"atomicity", [](auto& m) { m.atomicity = 1; }, "no atomicity"},
                             {"fill", [](auto& m) { m.fill = 2; }, "fill mode"},
                             {"fill_integers", [](auto& m) { m.fill = 1; }, "fill mode"},
                             {"address", [](auto& m) { m.address += 4; }, "not aligned"},
                             {"size", [](auto& m) { m.size[1] = 0; }, "no size"},
                             {"huge", [](auto& m) { m.size[0] = (uint64_t{1} << 32) + 1; }, "no size"},
                             {"stride", [](auto& m) { m.stride[0] = 8; }, "not aligned"},
                             {"box", [](auto& m) { m.box[1] = 0; }, "box has a size"},
                             {"box_large", [](auto& m) { m.box[1] = 257; }, "box has a size"},
                             {"box_odd", [](auto& m) { m.box[0] = 6; }, "multiple of 16 bytes"},
                             {"step", [](auto& m) { m.element_stride[1] = 9; }, "stride of elements"},
                             {"step_none", [](auto& m) { m.element_stride[1] = 0; }, "stride of elements"},
                             {"swizzle_long", [](auto& m) { m.swizzle = VGPU_SWIZZLE_32, m.box[0] = 16; },
                              "longer than what is swizzled"},
                             {"packed", [](auto& m) { m.type = VGPU_TENSOR_B6X16_P32; }, "is no multiple"},
                         }),
                         [](const auto& p) { return std::string(p.param.name); });

struct BadPlace {
  const char* name;
  const char* body;
  CuStatus status;
  const char* text;
};
void PrintTo(const BadPlace& c, std::ostream* out) { *out << c.name; }
class TensorPlaces : public testing::TestWithParam<BadPlace> {};

// The tensor of the map says that it is much larger than the memory behind it.
TEST_P(TensorPlaces, WhereNothingIsTheKernelEnds) {
  TensorMachine m;
  vgpu_tensor_map map = MapOf(kPlane, m.Alloc(kPlane.TensorBytes()));
  map.size[1] = uint64_t{1} << 32;
  map.stride[0] = uint64_t{1} << 38;
  m.RunTile(GetParam().body, map);
  EXPECT_EQ(m.outcome.status, GetParam().status) << m.outcome.text;
  EXPECT_THAT(m.outcome.text, HasSubstr(GetParam().text));
}
#define LOAD(to, map, at, bar)                                                                                     \
  "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [" to "], [" map ", " at "], [" bar \
  "]"                                                                                                              \
  ";"
#define STORE(from) "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {4, 0}], [" from "];"
INSTANTIATE_TEST_SUITE_P(
    , TensorPlaces,
    testing::ValuesIn(std::vector<BadPlace>{
        {"tensor", LOAD("%r1", "%rd1", "{4, 2}", "%r2"), CuStatus::kIllegalAddress, "tensor copy from"},
        {"tensor_wraps", LOAD("%r1", "%rd1", "{4, 2147483647}", "%r2"), CuStatus::kIllegalAddress, "tensor copy from"},
        {"shared_odd", LOAD("%r1+16", "%rd1", "{4, 9}", "%r2"), CuStatus::kMisalignedAddress, "tensor copy to"},
        {"shared_end", LOAD("%r1+16384", "%rd1", "{4, -9}", "%r2"), CuStatus::kIllegalAddress, "tensor copy to"},
        {"shared_far", LOAD("%r1+1073741824", "%rd1", "{4, -9}", "%r2"), CuStatus::kIllegalAddress, "tensor copy to"},
        {"barrier", LOAD("%r1", "%rd1", "{4, -9}", "%r2+262144"), CuStatus::kIllegalAddress, "mbarrier"},
        {"barrier_odd", LOAD("%r1", "%rd1", "{4, -9}", "%r1+4"), CuStatus::kMisalignedAddress, "mbarrier"},
        {"map", "mov.u64 %rd9, 4096;" LOAD("%r1", "%rd9", "{4, -9}", "%r2"), CuStatus::kIllegalAddress, "tensor map"},
        {"map_odd", LOAD("%r1", "%rd1+16", "{4, -9}", "%r2"), CuStatus::kMisalignedAddress, "tensor map"},
        {"store", STORE("%r1"), CuStatus::kIllegalAddress, "tensor copy to"},
        {"store_from", STORE("%r1+32768"), CuStatus::kIllegalAddress, "tensor copy from"},
        {"reduce", "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%rd1, {4, 0}], [%r1];",
         CuStatus::kIllegalAddress, "tensor copy to"},
    }),
    [](const auto& p) { return std::string(p.param.name); });

TEST(TensorMapChanges, EveryFieldIsReplaced) {
  TensorMachine m;
  const vgpu_tensor_map map = MapOf(kPlane, m.Alloc(kPlane.TensorBytes()));
  // In shared memory first, then copied to global memory and changed there.
  m.RunTile(R"(
    mov.u64 %rd7, 0x700000001000;
    tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r1], %rd7;
    tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r1], 2;
    tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1], 2, 17;
    tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r1], 4, 0xfffffff0;
    tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r1], 3, 0x123456780;
    tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r1], 1, 5;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [%r1], 128;
    tensormap.replace.tile.elemtype.global.b1024.b32 [%rd1], 10;
    tensormap.replace.tile.interleave_layout.global.b1024.b32 [%rd1], 2;
    tensormap.replace.tile.swizzle_mode.global.b1024.b32 [%rd1], 3;
    tensormap.replace.tile.swizzle_atomicity.global.b1024.b32 [%rd1], 1;
    tensormap.replace.tile.fill_mode.global.b1024.b32 [%rd1], 1;
    tensormap.replace.tile.box_dim.global.b1024.b32 [%rd1], 0, 0x10003;)",
            map, [&] {
              std::vector<uint8_t> tile(kTileBytes);
              std::memcpy(tile.data(), &map, sizeof map);
              return tile;
            }());
  ASSERT_EQ(m.outcome.status, CuStatus::kSuccess) << m.outcome.text;
  vgpu_tensor_map expected = map;
  expected.address = 0x700000001000;
  expected.rank_minus_1 = 2;
  expected.box[2] = 17;
  expected.size[4] = 0xfffffff0;
  expected.stride[3] = 0x123456780;
  expected.element_stride[1] = 5;
  expected.type = VGPU_TENSOR_BF16;
  expected.interleave = 2;
  expected.swizzle = VGPU_SWIZZLE_128;
  expected.atomicity = VGPU_ATOM_32;
  expected.fill = 1;
  expected.box[0] = 0xffff;  // more than there can be stays more
  const vgpu_tensor_map got = m.Download<vgpu_tensor_map>(m.map_at, 1)[0];
  EXPECT_EQ(std::memcmp(&got, &expected, sizeof got), 0);
}

TEST(TensorMapChanges, AMapThatIsNotThereEndsTheKernel) {
  TensorMachine m;
  m.RunTile("mov.u64 %rd7, 128; tensormap.replace.tile.rank.global.b1024.b32 [%rd7], 2;", {});
  EXPECT_EQ(m.outcome.status, CuStatus::kIllegalAddress);
  m.RunTile("tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r1+64], 2;", {});
  EXPECT_EQ(m.outcome.status, CuStatus::kMisalignedAddress);
}

TEST(TensorForms, WhatThereIsNotIsNamedWhenItIsLoaded) {
  for (const char* text :
       {"cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r1], [%rd1, {1, 2, 3}], "
        "[%r2], {%rs1}",
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {1, 2, 3}], [%r2]",
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], [%r2]",
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {1, 2}]",
        "cp.async.bulk.tensor.6d.global.shared::cta.bulk_group [%rd1, {1, 2}], [%r1]",
        "cp.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%rd1, {1, 2}], [%r1]",
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {1, 2}], [%r1]",
        "cp.async.bulk.tensor.2d.shared::cta.shared::cta.bulk_group [%rd1, {1, 2}], [%r1]",
        "tensormap.replace.tile.box_dim.global.b1024.b32 [%rd1], 5, 1",
        "tensormap.replace.tile.global_stride.global.b1024.b64 [%rd1], 4, 16",
        "tensormap.replace.tile.color.global.b1024.b32 [%rd1], 1"}) {
    SoftMachine m;
    const Outcome loaded = m.LoadBody("", std::string(text) + ";");
    EXPECT_EQ(loaded.status, CuStatus::kInvalidPtx) << text;
    EXPECT_THAT(loaded.text, HasSubstr("PTX line"));
  }
}

}  // namespace
}  // namespace vgpud::soft
