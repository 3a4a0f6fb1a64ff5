// SPDX-License-Identifier: Apache-2.0
// Forms of texture and surface instructions: what is taken, and why the others are not.
#include <gmock/gmock.h>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;

constexpr const char* kUnknown = "no such instruction";
constexpr const char* kWrongKind = "destination of the wrong kind";
constexpr const char* kElements = "the vector has the wrong number of elements";

struct Case {
  const char* text;
  const char* why;  // "": it is taken
};

void Expect(const Case& c) {
  SoftMachine m;
  const Outcome loaded = m.LoadBody("", std::string("\n") + c.text, ".entry other() { ret; }");
  // `other` can be launched whatever the rest is.
  ASSERT_EQ(loaded.status, CuStatus::kSuccess) << c.text << "\n" << loaded.text;
  const auto grid = m.gpu.Launch(*m.module->Function("k"), {{1, 1, 1}, {1, 1, 1}, 0}, {}, 0);
  EXPECT_EQ(grid.has_value(), c.why[0] == '\0') << c.text << "\n" << (grid ? "" : grid.error().text);
  if (grid || c.why[0] == '\0') return;
  EXPECT_THAT(grid.error().text, HasSubstr(c.why)) << c.text;
  EXPECT_THAT(grid.error().text, HasSubstr("PTX line 14: ")) << c.text;
}

constexpr Case kTextures[] = {
    {"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", ""},
    {"tex.base.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", ""},
    {"tex.2d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [%rd1, {%r5, %r6}];", ""},
    {"tex.2d.v4.s32.f32 {%r1, _, %r3, %r4}, [%rd1, {%f5, %f6}];", ""},
    {"tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5}];", ""},
    {"tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, %f5];", ""},
    {"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, %f5];", "coordinates are missing"},
    {"tex.3d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6, %f7, %f7}];", ""},
    {"tex.3d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6, %f7}];", ""},
    {"tex.3d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", "coordinates are missing"},
    {"tex.a1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%r5, %f6}];", ""},
    {"tex.a1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%r5}];", "coordinates are missing"},
    {"tex.a2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%r5, %f6, %f7, %f7}];", ""},
    {"tex.a2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%r5, %f6}];", "coordinates are missing"},
    {"tex.cube.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6, %f7, %f7}];", ""},
    {"tex.cube.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", "coordinates are missing"},
    {"tex.acube.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%r5, %f6, %f7, %f8}];", ""},
    {"tex.acube.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%r5, %f6, %f7}];", "coordinates are missing"},
    {"tex.level.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}], %f7;", ""},
    {"tex.level.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r5, %r6}], %r7;", ""},
    {"tex.level.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", kUnknown},
    {"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}], %f7;", kUnknown},
    {"tex.grad.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}], {%f7, %f8}, {%f9, %f10};", ""},
    {"tex.grad.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}], {%f7}, {%f9, %f10};", "a gradient is too short"},
    {"tex.grad.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}], {%f7, %f8}, {%f9};", "a gradient is too short"},
    {"tex.grad.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}], {%f7, %f8};", kUnknown},
    {"tex.grad.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5}], {%f7}, {%f9};", ""},
    {"tex.grad.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5}], %f7, %f9;", ""},
    {"tex.grad.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r5, %r6}], {%r7, %r8}, {%r9, %r10};", kUnknown},
    {"tex.grad.3d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6, %f7}], {%f7, %f8, %f9}, {%f9, %f10, %f11};", ""},
    {"tex.2d.v2.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", kUnknown},
    {"tex.2d.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", kUnknown},
    {"tex.2d.v4.f16.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", kUnknown},
    {"tex.2d.v4.f32.u32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", kUnknown},
    {"tex.2d.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", kUnknown},
    {"tex.2d.v4.f32.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", kUnknown},
    {"tex.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", kUnknown},
    {"tex.2d.v4 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", kUnknown},
    {"tex.2d.v4.r.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", kUnknown},
    {"tex.2d.v4.add.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", kUnknown},
    {"tex.2d.v4.nc.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", kUnknown},
    {"tex.2dms.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", kUnknown},
    {"tex.2d.b.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", kUnknown},
    {"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1+8, {%f5, %f6}];", "only objects (cuTexObjectCreate)"},
    {"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [16, {%f5, %f6}];", "only objects"},
    {"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%r1, {%f5, %f6}];", "a texture or surface object has 64 bits"},
    {"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1];", kUnknown},
    {"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, %rd1;", kUnknown},
    {"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4};", kUnknown},
    {"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, %rd2, {%f5, %f6}];", kUnknown},
    {"tex.2d.v4.f32.f32 %f1, [%rd1, {%f5, %f6}];", "the result must be a vector of four"},
    {"tex.2d.v4.f32.f32 {%f1, %f2, %f3}, [%rd1, {%f5, %f6}];", "the result must be a vector of four"},
    {"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %p1}, [%rd1, {%f5, %f6}];", kWrongKind},
    {"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %p1}];", "a predicate where a value was expected"},
    {"tld4.r.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", ""},
    {"tld4.g.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", ""},
    {"tld4.b.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", ""},
    {"tld4.a.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", ""},
    {"tld4.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", kUnknown},
    {"tld4.r.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r5, %r6}];", kUnknown},
    {"tld4.x.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", kUnknown},
    {"tld4.r.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5}];", kUnknown},
    {"tld4.r.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}], %f7;", kUnknown},
};
TEST(SoftRefusedTextures, Textures) {
  for (const Case& c : kTextures) Expect(c);
}

constexpr Case kSurfacesAndQueries[] = {
    {"txq.width.b32 %r1, [%rd1];", ""},
    {"txq.height.b32 %r1, [%rd1];", ""},
    {"txq.depth.b32 %r1, [%rd1];", ""},
    {"txq.channel_data_type.b32 %r1, [%rd1];", ""},
    {"txq.channel_order.b32 %r1, [%rd1];", ""},
    {"txq.normalized_coords.b32 %r1, [%rd1];", ""},
    {"txq.array_size.b32 %r1, [%rd1];", ""},
    {"txq.num_mipmap_levels.b32 %r1, [%rd1];", ""},
    {"txq.num_samples.b32 %r1, [%rd1];", ""},
    {"txq.level.width.b32 %r1, [%rd1], %r2;", ""},
    {"txq.level.width.b32 %r1, [%rd1];", kUnknown},
    {"txq.width.b32 %r1, [%rd1], %r2;", kUnknown},
    {"txq.b32 %r1, [%rd1];", kUnknown},
    {"txq.width.b32 %r1;", kUnknown},
    {"txq.squareness.b32 %r1, [%rd1];", kUnknown},
    {"txq.width.b32 %p1, [%rd1];", kWrongKind},
    {"txq.width.b32 %r1, %rd1;", "only objects"},
    {"suq.width.b32 %r1, [%rd1];", ""},
    {"suq.height.b32 %r1, [%rd1];", ""},
    {"suq.level.width.b32 %r1, [%rd1], %r2;", kUnknown},
    {"suld.b.2d.b32.trap %r1, [%rd1, {%r2, %r3}];", ""},
    {"suld.b.2d.b32.trap {%r1}, [%rd1, {%r2, %r3}];", ""},
    {"suld.b.1d.v2.b32.clamp {%r1, %r2}, [%rd1, {%r3}];", ""},
    {"suld.b.3d.v4.b32.zero {%r1, %r2, %r3, %r4}, [%rd1, {%r5, %r6, %r7, %r8}];", ""},
    {"suld.b.2d.v2.b64.trap {%rd2, %rd3}, [%rd1, {%r2, %r3}];", ""},
    {"suld.b.2d.v4.b64.trap {%rd2, %rd3, %rd4, %rd5}, [%rd1, {%r2, %r3}];", kUnknown},
    {"suld.b.2d.b128.trap %rd2, [%rd1, {%r2, %r3}];", kUnknown},
    {"suld.b.2d.b8.trap %rs1, [%rd1, {%r2, %r3}];", ""},
    {"suld.b.2d.v4.b16.trap {%rs1, %rs2, %rs3, %rs4}, [%rd1, {%r2, %r3}];", ""},
    {"suld.b.a2d.b32.trap %r1, [%rd1, {%r2, %r3, %r4, %r5}];", ""},
    {"suld.b.a1d.b32.trap %r1, [%rd1, {%r2, %r3}];", ""},
    {"suld.b.2d.v2.b32.trap {%r1}, [%rd1, {%r2, %r3}];", kElements},
    {"suld.b.2d.v2.b32.trap %r1, [%rd1, {%r2, %r3}];", kElements},
    {"suld.b.2d.b32.trap %r1, [%rd1, {%r2, %r3}], %r4;", kElements},
    {"suld.2d.b32.trap %r1, [%rd1, {%r2, %r3}];", kUnknown},
    {"suld.b.2d.b32.b32.trap %r1, [%rd1, {%r2, %r3}];", kUnknown},
    {"suld.b.2d.trap %r1, [%rd1, {%r2, %r3}];", kUnknown},
    {"suld.b.b32.trap %r1, [%rd1, {%r2, %r3}];", kUnknown},
    {"suld.b.2d.b32.wrap %r1, [%rd1, {%r2, %r3}];", kUnknown},
    {"suld.b.2d.b32.trap %r1, [%rd1, {%r2}];", "coordinates are missing"},
    {"suld.r.2d.b32.trap %r1, [%rd1, {%r2, %r3}];", kUnknown},
    {"suld.b.2d.add.b32.trap %r1, [%rd1, {%r2, %r3}];", kUnknown},
    {"suld.p.2d.b32.trap %r1, [%rd1, {%r2, %r3}];", kUnknown},
    {"suld.b.2d.ca.b32.trap %r1, [%rd1, {%r2, %r3}];", ""},
    {"suld.b.2d.cg.b32.trap %r1, [%rd1, {%r2, %r3}];", ""},
    {"suld.b.2d.cs.b32.trap %r1, [%rd1, {%r2, %r3}];", ""},
    {"suld.b.2d.cv.b32.trap %r1, [%rd1, {%r2, %r3}];", ""},
    {"sust.b.2d.wb.b32.trap [%rd1, {%r2, %r3}], %r1;", ""},
    {"sust.b.2d.wt.b32.trap [%rd1, {%r2, %r3}], %r1;", ""},
    {"sust.b.2d.v2.b32.clamp [%rd1, {%r2, %r3}], {%r1, %r4};", ""},
    {"sust.p.2d.b32.trap [%rd1, {%r2, %r3}], %r1;", ""},
    {"sust.p.2d.v4.b32.trap [%rd1, {%r2, %r3}], {%r1, %r4, %r5, %r6};", ""},
    {"sust.p.2d.b16.trap [%rd1, {%r2, %r3}], %rs1;", kUnknown},
    {"sust.p.2d.b64.trap [%rd1, {%r2, %r3}], %rd2;", kUnknown},
    {"sust.b.2d.b64.trap [%rd1, {%r2, %r3}], %rd2;", ""},
    {"sust.b.2d.b32.trap [%rd1, {%r2, %r3}], {%r1};", ""},
    {"sust.b.2d.v2.b32.trap [%rd1, {%r2, %r3}], {%r1};", kElements},
    {"sust.b.2d.b32.trap [%rd1, {%r2, %r3}];", kElements},
    {"sust.b.2d.b32.trap [%rd1, {%r2, %r3}], %p1;", "a predicate where a value was expected"},
    {"sust.b.2d.b32.trap %r1, [%rd1, {%r2, %r3}];", kUnknown},
    {"sured.b.add.2d.u32.trap [%rd1, {%r2, %r3}], %r1;", ""},
    {"sured.b.add.2d.s32.trap [%rd1, {%r2, %r3}], %r1;", ""},
    {"sured.b.add.2d.u64.trap [%rd1, {%r2, %r3}], %rd2;", ""},
    {"sured.b.min.2d.u32.trap [%rd1, {%r2, %r3}], %r1;", ""},
    {"sured.b.min.2d.s32.trap [%rd1, {%r2, %r3}], %r1;", ""},
    {"sured.b.max.2d.u32.trap [%rd1, {%r2, %r3}], %r1;", ""},
    {"sured.b.max.2d.s32.trap [%rd1, {%r2, %r3}], %r1;", ""},
    {"sured.b.and.2d.b32.trap [%rd1, {%r2, %r3}], %r1;", ""},
    {"sured.b.or.2d.b32.trap [%rd1, {%r2, %r3}], %r1;", ""},
    {"sured.b.add.1d.u32.clamp [%rd1, {%r2}], %r1;", ""},
    {"sured.b.add.3d.u32.zero [%rd1, {%r2, %r3, %r4, %r5}], %r1;", ""},
    {"sured.b.2d.u32.trap [%rd1, {%r2, %r3}], %r1;", kUnknown},
    {"sured.b.add.2d.v2.u32.trap [%rd1, {%r2, %r3}], {%r1, %r4};", kUnknown},
    {"sured.b.add.a2d.u32.trap [%rd1, {%r2, %r3, %r4, %r5}], %r1;", kUnknown},
    {"sured.b.add.cube.u32.trap [%rd1, {%r2, %r3, %r4, %r5}], %r1;", kUnknown},
    {"sured.b.add.2d.f32.trap [%rd1, {%r2, %r3}], %f1;", kUnknown},
    {"sured.b.exch.2d.b32.trap [%rd1, {%r2, %r3}], %r1;", kUnknown},
};
TEST(SoftRefusedTextures, SurfacesAndQueries) {
  for (const Case& c : kSurfacesAndQueries) Expect(c);
}

}  // namespace
}  // namespace vgpud::soft
