// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/soft/state/soft_works.h"

#include <cmath>

#include "gpu/soft/state/checksum.h"
#include "tests/unit/soft/state/bulk_ptx.h"
#include "tests/unit/soft/state/family_works.h"
#include "tests/unit/soft/state/tensor_memory_ptx.h"

namespace vgpud::soft {
namespace {

std::vector<float> Waves(size_t count) {
  std::vector<float> values(count);
  for (size_t n = 0; n < count; ++n) values[n] = std::sin(static_cast<float>(n));
  return values;
}

void MustLoad(const Outcome& loaded) { ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text; }

// One launch of kernel "k", whose first parameter is its output.
Work MakeBody(SoftMachine& m, const std::string& body, const LaunchShape& shape, uint32_t words,
              const std::string& globals = "", const Params& more = {}, const std::string& more_params = "") {
  MustLoad(m.LoadBody(".param .u64 out" + more_params,
                      "ld.param.u64 %rd1, [out]; mov.u32 %r39, %tid.x; mov.u32 %r38, %ctaid.x; mov.u32 %r37, %ntid.x;\n"
                      "mad.lo.u32 %r36, %r38, %r37, %r39; mul.wide.u32 %rd39, %r36, 4; add.u64 %rd39, %rd1, %rd39;\n" +
                          body,
                      globals));
  Work work;
  work.out = m.Alloc(words * 4);
  work.words = words;
  Params params;
  params.Add(work.out);
  for (size_t at = 0; at < more.bytes().size(); at += 8) {
    uint64_t value = 0;
    std::memcpy(&value, more.bytes().data() + at, 8);
    params.Add(value);
  }
  work.grid = m.Launch("k", shape, params);
  return work;
}

Work MatMul(SoftMachine& m) {
  constexpr uint32_t kSize = 48;
  MustLoad(m.Load(ReadPtx("matmul")));
  const GpuVa a = m.Upload(Waves(kSize * kSize));
  Work work;
  work.out = m.Alloc(kSize * kSize * 4);
  work.words = kSize * kSize;
  work.grid = m.Launch("matmul", {{kSize / 16, kSize / 16, 1}, {16, 16, 1}, 0},
                       Params().Add(a).Add(a).Add(work.out).Add(kSize).Add(kSize));
  return work;
}

Work Collatz(SoftMachine& m) {
  constexpr uint32_t kCount = 1000;
  MustLoad(m.Load(ReadPtx("collatz")));
  Work work;
  work.out = m.Alloc(kCount * 4);
  work.words = kCount;
  work.grid = m.Launch("collatz", {{(kCount + 127) / 128, 1, 1}, {128, 1, 1}, 0}, Params().Add(work.out).Add(kCount));
  return work;
}

Work Reduction(SoftMachine& m) {
  constexpr uint32_t kCount = 5000;
  MustLoad(m.Load(ReadPtx("reduction")));
  std::vector<uint32_t> values(kCount);
  for (uint32_t n = 0; n < kCount; ++n) values[n] = n * 2654435761u;
  const GpuVa ints = m.Upload(values);
  const GpuVa floats = m.Upload(Waves(kCount));
  Work work;
  work.words = 16;
  work.out = m.Alloc(work.words * 4);
  work.grid =
      m.Launch("reduction", {{1, 1, 1}, {256, 1, 1}, 0}, Params().Add(ints).Add(floats).Add(kCount).Add(work.out));
  return work;
}

Work VectorAdd(SoftMachine& m) {
  constexpr uint32_t kCount = 10'000;
  MustLoad(m.Load(ReadPtx("vectoradd")));
  const GpuVa a = m.Upload(Waves(kCount));
  Work work;
  work.out = m.Alloc(kCount * 4);
  work.words = kCount;
  work.grid = m.Launch("vectoradd", {{(kCount + 255) / 256, 1, 1}, {256, 1, 1}, 0},
                       Params().Add(a).Add(a).Add(work.out).Add(kCount));
  return work;
}

Work Stencil(SoftMachine& m) {
  constexpr uint32_t kWidth = 70;
  constexpr uint32_t kHeight = 50;
  MustLoad(m.Load(ReadPtx("stencil")));
  const GpuVa in = m.Upload(Waves(kWidth * kHeight));
  Work work;
  work.out = m.Alloc(kWidth * kHeight * 4);
  work.words = kWidth * kHeight;
  work.grid = m.Launch("stencil", {{(kWidth + 31) / 32, (kHeight + 7) / 8, 1}, {32, 8, 1}, 0},
                       Params().Add(in).Add(work.out).Add(kWidth).Add(kHeight));
  return work;
}

Work Meter(SoftMachine& m) {
  constexpr uint32_t kLanes2 = 256;
  MustLoad(m.Load(ReadPtx("meter")));
  Work work;
  work.words = kLanes2 + 1;
  std::vector<uint32_t> states(work.words);
  for (uint32_t n = 0; n < kLanes2; ++n) states[n] = n + 1;
  work.out = m.Upload(states);
  const GpuVa done{Raw(work.out) + kLanes2 * 4};
  work.grid = m.Launch("meter_unit", {{kLanes2 / 64, 1, 1}, {64, 1, 1}, 0}, Params().Add(work.out).Add(done).Add(200u));
  return work;
}

// Blocks of a cluster add to each other's shared memory, in turn, between barriers of the cluster and waits at an
// mbarrier.
Work ClusterWork(SoftMachine& m) {
  LaunchShape shape{{8, 1, 1}, {40, 1, 1}, 0};
  shape.cluster[0] = 4;
  shape.cluster[1] = shape.cluster[2] = 1;
  return MakeBody(m, R"(
    mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, sums; mov.u32 %r3, 0; mov.u32 %r4, done;
    shl.b32 %r5, %r39, 2; add.u32 %r5, %r2, %r5; st.shared.u32 [%r5], %r36; setp.eq.u32 %p1, %r39, 0;
    @%p1 mbarrier.init.shared.b64 [%r4], 40;
    barrier.cluster.arrive; barrier.cluster.wait;
  ROUND:
    add.u32 %r6, %r1, %r3; and.b32 %r6, %r6, 3; mapa.shared::cluster.u32 %r7, %r5, %r6;
    mapa.shared::cluster.u32 %r8, %r4, %r6;
    mad.lo.u32 %r9, %r36, 7, %r3; atom.shared::cluster.add.u32 %r10, [%r7], %r9;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r8]; and.b32 %r11, %r3, 1;
  WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r4], %r11; @!%p2 bra WAIT;
    ld.shared.u32 %r12, [%r5]; mad.lo.u32 %r12, %r12, 3, %r39; bar.sync 0; st.shared.u32 [%r5], %r12;
    setp.lt.u32 %p3, %r39, 9; @%p3 bra LATE; barrier.cluster.arrive.relaxed; bra ON;
  LATE: bar.warp.sync 511; barrier.cluster.arrive;
  ON: barrier.cluster.wait;
    add.u32 %r3, %r3, 1; setp.lt.u32 %p4, %r3, 6; @%p4 bra ROUND;
    ld.shared.u32 %r12, [%r5]; st.global.u32 [%rd39], %r12;)",
                  shape, 320, ".shared .align 4 .b8 sums[160]; .shared .align 8 .b8 done[8];");
}

Work BulkWork(SoftMachine& m) {
  LaunchShape shape{{2, 1, 1}, {32, 1, 1}, 0};
  shape.cluster[0] = 2;
  shape.cluster[1] = shape.cluster[2] = 1;
  return MakeBody(m, kBulkBody, shape, 30720, kBulkShared);
}

// Lanes call a recursive function through its name and through a pointer, at different depths.
Work Recursion(SoftMachine& m) {
  return MakeBody(m, R"(
    mov.u32 %r1, 0; mov.u32 %r5, 0;
    mov.u64 %rd2, table; ld.global.u64 %rd3, [%rd2];
  AGAIN:
    add.u32 %r2, %r36, %r1; and.b32 %r2, %r2, 7;
    { .param .b32 arg; .param .b32 result; st.param.b32 [arg], %r2;
      call.uni (result), factorial, (arg); ld.param.b32 %r3, [result]; }
    add.u32 %r5, %r5, %r3;
    setp.gt.u32 %p1, %r2, 3; @%p1 bra NEXT;
    { .param .b32 arg; .param .b32 result; st.param.b32 [arg], %r2;
      PROTO: .callprototype (.param .b32 _) _ (.param .b32 _);
      call (result), %rd3, (arg), PROTO; ld.param.b32 %r3, [result]; }
    add.u32 %r5, %r5, %r3;
  NEXT:
    add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 20; @%p2 bra AGAIN;
    st.global.u32 [%rd39], %r5;)",
                  {{2, 1, 1}, {50, 1, 1}, 0}, 100, R"(
.func (.param .b32 res) factorial(.param .b32 n)
{
  .reg .b32 %r<8>; .reg .pred %p<2>; .reg .b64 %rd<3>;
  .local .align 4 .b8 kept[4];
  ld.param.u32 %r1, [n];
  mov.u64 %rd1, kept; st.local.u32 [%rd1], %r1;
  setp.lt.u32 %p1, %r1, 2;
  mov.u32 %r3, 1;
  @%p1 bra leave;
  sub.u32 %r2, %r1, 1;
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call.uni (b), factorial, (a); ld.param.b32 %r4, [b]; }
  ld.local.u32 %r5, [%rd1];
  mul.lo.u32 %r3, %r5, %r4;
leave:
  st.param.b32 [res], %r3;
  ret;
}
.global .align 8 .u64 table[1] = {factorial};
)");
}

// Every other lane is in another function, which differ in length and call a third one.
Work Functions(SoftMachine& m) {
  return MakeBody(m, R"(
    mov.u32 %r1, 0; mov.u32 %r5, 0; and.b32 %r4, %r36, 1; mul.wide.u32 %rd2, %r4, 8;
    mov.u64 %rd3, table; add.u64 %rd3, %rd3, %rd2; ld.global.u64 %rd3, [%rd3];
  AGAIN:
    { .param .b32 arg; .param .b32 result; add.u32 %r2, %r36, %r1; st.param.b32 [arg], %r2;
      PROTO: .callprototype (.param .b32 _) _ (.param .b32 _);
      call (result), %rd3, (arg), PROTO; ld.param.b32 %r3, [result]; }
    mad.lo.u32 %r5, %r5, 31, %r3;
    add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 10; @%p2 bra AGAIN;
    st.global.u32 [%rd39], %r5;)",
                  {{2, 1, 1}, {50, 1, 1}, 0}, 100, R"(
.func (.param .b32 res) leaf(.param .b32 n)
{
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u32 %r1, [n];
  mul.wide.u32 %rd1, %r1, 0x10001; cvt.u32.u64 %r2, %rd1; xor.b32 %r2, %r2, %r1;
  st.param.b32 [res], %r2;
  ret;
}
.func (.param .b32 res) narrow(.param .b32 n)
{
  .reg .b32 %r<9>; .reg .pred %p<2>;
  ld.param.u32 %r1, [n]; mov.u32 %r2, 0; mov.u32 %r3, %r1;
  AGAIN:
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r3; call.uni (b), leaf, (a); ld.param.b32 %r4, [b]; }
  add.u32 %r3, %r3, %r4; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 9; @%p1 bra AGAIN;
  st.param.b32 [res], %r3;
  ret;
}
.func (.param .b32 res) wide(.param .b32 n)
{
  .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<2>;
  ld.param.u32 %r1, [n]; cvt.u64.u32 %rd1, %r1; mov.u64 %rd2, 0; and.b32 %r3, %r1, 15;
  AGAIN:
  cvt.u32.u64 %r4, %rd1;
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r4; call.uni (b), leaf, (a); ld.param.b32 %r4, [b]; }
  cvt.u64.u32 %rd3, %r4; mad.lo.u64 %rd1, %rd1, 0x100000007, %rd3; add.u64 %rd2, %rd2, 1; cvt.u32.u64 %r5, %rd2;
  setp.le.u32 %p1, %r5, %r3; @%p1 bra AGAIN;
  shr.u64 %rd1, %rd1, 9; cvt.u32.u64 %r6, %rd1;
  st.param.b32 [res], %r6;
  ret;
}
.global .align 8 .u64 table[2] = {narrow, wide};
)");
}

Work Printf(SoftMachine& m) {
  return MakeBody(m, R"(
    .local .align 8 .b8 args[16];
    mov.u32 %r1, 0;
    mov.u64 %rd2, args; cvta.local.u64 %rd3, %rd2;
    mov.u64 %rd4, word; cvta.global.u64 %rd4, %rd4; mov.u64 %rd5, text; cvta.global.u64 %rd5, %rd5;
  AGAIN:
    mad.lo.u32 %r2, %r1, 100, %r39;
    st.local.u32 [%rd2], %r2; st.local.u64 [%rd2+8], %rd4;
    { .param .b64 p0; .param .b64 p1; .param .b32 q; st.param.b64 [p0], %rd5; st.param.b64 [p1], %rd3;
      call.uni (q), vprintf, (p0, p1); ld.param.b32 %r3, [q]; }
    add.u32 %r1, %r1, %r3; setp.lt.u32 %p1, %r1, 40; @%p1 bra AGAIN;
    st.global.u32 [%rd39], %r1;)",
                  {{1, 1, 1}, {40, 1, 1}, 0}, 40,
                  ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
                  ".global .align 1 .b8 text[] = {116, 37, 100, 32, 37, 115, 10, 0};\n"
                  ".const .align 1 .b8 word[] = {111, 107, 0};\n");
}

// Each thread makes a list of 12 nodes, gives every third one back and sums up the others.
Work Malloc(SoftMachine& m) {
  EXPECT_TRUE(m.gpu.SetHeapBytes(256 << 10));
  return MakeBody(m, R"(
    mov.u32 %r1, 0; mov.u64 %rd3, 0; mov.u64 %rd9, 40; mov.u64 %rd8, 0;
  MAKE:
    { .param .b64 p; .param .b64 q; st.param.b64 [p], %rd9; call.uni (q), malloc, (p); ld.param.b64 %rd4, [q]; }
    setp.eq.u64 %p1, %rd4, 0; @%p1 bra BAD;
    mad.lo.u32 %r2, %r1, 77, %r36; st.u32 [%rd4+8], %r2; st.u64 [%rd4], %rd3;
    rem.u32 %r3, %r1, 3; setp.ne.u32 %p2, %r3, 0; @%p2 bra KEEP;
    { .param .b64 p; st.param.b64 [p], %rd4; call.uni free, (p); }
    bra NEXT;
  KEEP: mov.u64 %rd3, %rd4;
  NEXT: add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 12; @%p3 bra MAKE;
    mov.u32 %r5, 0;
  WALK:
    ld.u32 %r6, [%rd3+8]; add.u32 %r5, %r5, %r6; ld.u64 %rd3, [%rd3]; setp.ne.u64 %p4, %rd3, 0; @%p4 bra WALK;
    st.global.u32 [%rd39], %r5;
    bra END;
  BAD: trap;
  END:)",
                  {{2, 1, 1}, {64, 1, 1}, 0}, 128,
                  ".extern .func (.param .b64 r) malloc (.param .b64 n);\n.extern .func free (.param .b64 p);\n");
}

Work Textures(SoftMachine& m) {
  constexpr uint32_t kWidth = 16;
  constexpr uint32_t kHeight = 8;
  const GpuVa image = m.Upload(Waves(kWidth * kHeight));
  TextureDesc desc;
  desc.width = kWidth;
  desc.height = kHeight;
  desc.format = 0x20;
  desc.linear = true;
  desc.levels.push_back({image, kWidth * 4, 0});
  const auto other = m.gpu.CreateTexture(desc);
  const auto texture = m.gpu.CreateTexture(desc);
  desc.linear = false;
  desc.surface = true;
  const auto surface = m.gpu.CreateTexture(desc);
  EXPECT_TRUE(other && texture && surface && m.gpu.DestroyTexture(*other));
  return MakeBody(m, R"(
    ld.param.u64 %rd2, [tex]; ld.param.u64 %rd3, [surf];
    mov.u32 %r1, 0; mov.f32 %f9, 0f00000000;
    and.b32 %r2, %r36, 15; shr.u32 %r3, %r36, 4;
  AGAIN:
    cvt.rn.f32.u32 %f1, %r2; cvt.rn.f32.u32 %f2, %r1; fma.rn.f32 %f1, %f1, 0f3F400000, %f2;
    cvt.rn.f32.u32 %f3, %r3;
    tex.2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd2, {%f1, %f3}];
    fma.rn.f32 %f9, %f9, 0f3F666666, %f4;
    add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 25; @%p1 bra AGAIN;
    bar.sync 0;
    shl.b32 %r4, %r2, 2; mov.b32 %r5, %f9;
    sust.b.2d.b32.trap [%rd3, {%r4, %r3}], {%r5};
    suld.b.2d.b32.trap {%r6}, [%rd3, {%r4, %r3}];
    st.global.u32 [%rd39], %r6;)",
                  {{1, 1, 1}, {128, 1, 1}, 0}, 128, "", Params().Add(*texture).Add(*surface),
                  ", .param .u64 tex, .param .u64 surf");
}

// Blocks that wait for each other, as the headers of cooperative groups do it.
Work Cooperative(SoftMachine& m) {
  return MakeBody(m, R"(
    mov.u32 %r1, %envreg1; mov.u32 %r2, %envreg2; mov.b64 %rd2, {%r2, %r1};
    mov.u32 %r5, %nctaid.x; mov.u32 %r6, 0; mov.u32 %r20, 1;
    mul.wide.u32 %rd3, %r38, 4; add.u64 %rd3, %rd1, %rd3;
    add.u32 %r7, %r38, 1; rem.u32 %r7, %r7, %r5; mul.wide.u32 %rd4, %r7, 4; add.u64 %rd4, %rd1, %rd4;
  ROUND:
    add.u32 %r6, %r6, 1;
    bar.sync 0;
    setp.ne.u32 %p1, %r39, 0; @%p1 bra ARRIVED;
    mad.lo.u32 %r20, %r20, 1664525, %r38;
    st.volatile.global.u32 [%rd3], %r20;
    setp.eq.u32 %p2, %r38, 0;
    sub.u32 %r8, %r5, 1; sub.u32 %r8, 0x80000000, %r8; selp.u32 %r9, %r8, 1, %p2;
    membar.gl;
    atom.add.release.gpu.u32 %r10, [%rd2+4], %r9;
  SPIN:
    ld.acquire.gpu.u32 %r11, [%rd2+4];
    xor.b32 %r12, %r10, %r11; setp.ge.s32 %p3, %r12, 0; @%p3 bra SPIN;
    ld.volatile.global.u32 %r13, [%rd4]; add.u32 %r20, %r20, %r13;
    membar.gl;
    atom.add.release.gpu.u32 %r10, [%rd2+4], %r9;
  SPIN2:
    ld.acquire.gpu.u32 %r11, [%rd2+4];
    xor.b32 %r12, %r10, %r11; setp.ge.s32 %p3, %r12, 0; @%p3 bra SPIN2;
  ARRIVED:
    bar.sync 0;
    setp.lt.u32 %p5, %r6, 12; @%p5 bra ROUND;)",
                  {{20, 1, 1}, {40, 1, 1}, 0, true}, 20);
}

Work Matrices(SoftMachine& m) {
  std::vector<uint16_t> halves(256);
  for (uint32_t n = 0; n < halves.size(); ++n) halves[n] = static_cast<uint16_t>(0x2c00 + n * 7);
  const GpuVa ab = m.Upload(halves);
  return MakeBody(m, R"(
    .reg .b32 %a<8>; .reg .b32 %b<8>; .reg .f32 %c<8>;
    .shared .align 32 .b8 tile[512];
    ld.param.u64 %rd2, [ab]; mov.u32 %r1, 16; mov.u32 %r2, 0;
    mul.wide.u32 %rd3, %r39, 16; add.u64 %rd3, %rd2, %rd3; mov.u32 %r3, tile; shl.b32 %r4, %r39, 4; add.u32 %r4, %r3, %r4;
    ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%rd3]; st.shared.v4.u32 [%r4], {%r5, %r6, %r7, %r8}; bar.sync 0;
    wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%a0,%a1,%a2,%a3,%a4,%a5,%a6,%a7}, [%r3], %r1;
    wmma.load.b.sync.aligned.col.m16n16k16.global.f16 {%b0,%b1,%b2,%b3,%b4,%b5,%b6,%b7}, [%rd2], %r1;
    wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7}, [%rd1], %r1;
  AGAIN:
    wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7},
      {%a0,%a1,%a2,%a3,%a4,%a5,%a6,%a7}, {%b0,%b1,%b2,%b3,%b4,%b5,%b6,%b7}, {%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7};
    mul.f32 %c0, %c0, 0f3F000000;
    add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 30; @%p1 bra AGAIN;
    wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], {%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7}, %r1;)",
                  {{1, 1, 1}, {32, 1, 1}, 0}, 256, "", Params().Add(ab), ", .param .u64 ab");
}

// Named barriers with counts, bar.red in all kinds, arrive without waiting, votes, shuffles.
Work Barriers(SoftMachine& m) {
  return MakeBody(m, R"(
    .shared .align 4 .b8 box[256];
    mov.u32 %r1, 0; mov.u32 %r2, %r36; mov.u32 %r10, box; shl.b32 %r11, %r39, 2; add.u32 %r12, %r10, %r11;
  AGAIN:
    setp.lt.u32 %p1, %r39, 32; @%p1 bra PRODUCER;
    bar.sync 1, 64;
    sub.u32 %r13, %r12, 128; ld.shared.u32 %r3, [%r13]; add.u32 %r2, %r2, %r3;
    bar.sync 2, 64;
    bra MET;
  PRODUCER:
    mad.lo.u32 %r2, %r2, 1664525, %r1; st.shared.u32 [%r12], %r2;
    bar.arrive 1, 64;
    bar.sync 2, 64;
  MET:
    and.b32 %r4, %r2, 3; setp.eq.u32 %p2, %r4, 0;
    bar.red.popc.u32 %r5, 0, %p2; add.u32 %r2, %r2, %r5;
    setp.ne.u32 %p3, %r4, 1;
    bar.red.and.pred %p4, 0, %p3; selp.u32 %r6, 5, 9, %p4; xor.b32 %r2, %r2, %r6;
    bar.red.or.pred %p5, 3, %p2; selp.u32 %r6, 3, 17, %p5; add.u32 %r2, %r2, %r6;
    shfl.sync.bfly.b32 %r7, %r2, 5, 31, -1; xor.b32 %r2, %r2, %r7;
    setp.gt.u32 %p6, %r7, %r2; vote.sync.ballot.b32 %r8, %p6, -1; add.u32 %r2, %r2, %r8;
    add.u32 %r1, %r1, 1; setp.lt.u32 %p7, %r1, 25; @%p7 bra AGAIN;
    st.global.u32 [%rd39], %r2;)",
                  {{2, 1, 1}, {64, 1, 1}, 0}, 128);
}

// Threads of one warp and of several blocks take a lock in turn.
Work Locks(SoftMachine& m) {
  return MakeBody(m, R"(
    mov.u32 %r1, 0;
  again:
    atom.global.cas.b32 %r2, [%rd1], 0, 1;
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra again;
    membar.gl;
    ld.volatile.global.u32 %r3, [%rd1+4]; add.u32 %r3, %r3, 1; st.volatile.global.u32 [%rd1+4], %r3;
    membar.gl;
    atom.global.exch.b32 %r4, [%rd1], 0;
    add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 6; @%p2 bra again;)",
                  {{3, 1, 1}, {40, 1, 1}, 0}, 2);
}

// cp.async, mbarrier, dynamic shared memory, local memory, of variables and of alloca.
Work Async(SoftMachine& m) {
  std::vector<uint32_t> in(64);
  for (uint32_t n = 0; n < in.size(); ++n) in[n] = n * n + 1;
  const GpuVa from = m.Upload(in);
  return MakeBody(m, R"(
    .shared .align 8 .b8 bar[8];
    .local .align 4 .b8 mine[32];
    ld.param.u64 %rd2, [from]; mov.u32 %r1, bar; mov.u32 %r2, tile; mov.u64 %rd8, mine;
    shl.b32 %r3, %r39, 2; add.u32 %r3, %r2, %r3; mul.wide.u32 %rd3, %r39, 4; add.u64 %rd3, %rd2, %rd3;
    setp.ne.u32 %p1, %r39, 0; @%p1 bra READY;
    mbarrier.init.shared.b64 [%r1], 64;
  READY: bar.sync 0;
    mov.u32 %r4, 0; mov.u32 %r9, 0;
  AGAIN:
    cp.async.ca.shared.global [%r3], [%rd3], 4; cp.async.commit_group; cp.async.wait_group 0;
    mbarrier.arrive.shared.b64 %rd4, [%r1];
  FULL: mbarrier.test_wait.shared.b64 %p2, [%r1], %rd4; @!%p2 bra FULL;
    xor.b32 %r5, %r39, 63; shl.b32 %r5, %r5, 2; add.u32 %r5, %r2, %r5; ld.shared.u32 %r6, [%r5];
    and.b32 %r7, %r4, 7; mul.wide.u32 %rd5, %r7, 4; add.u64 %rd6, %rd8, %rd5;
    mad.lo.u32 %r9, %r9, 31, %r6; st.local.u32 [%rd6], %r9;
    stacksave.u64 %rd10; alloca.u64 %rd11, 48, 16; st.local.u32 [%rd11+40], %r9; mov.u32 %r9, 0;
    bar.sync 0;
    ld.local.u32 %r9, [%rd11+40]; stackrestore.u64 %rd10; st.global.u32 [%rd3], %r9;
    add.u32 %r4, %r4, 1; setp.lt.u32 %p3, %r4, 16; @%p3 bra AGAIN;
    ld.local.u32 %r6, [%rd8+12]; add.u32 %r9, %r9, %r6;
    st.global.u32 [%rd39], %r9;)",
                  {{1, 1, 1}, {64, 1, 1}, 256}, 64, ".extern .shared .align 16 .b8 tile[];\n", Params().Add(from),
                  ", .param .u64 from");
}

Work TensorMemoryWork(SoftMachine& m) { return MakeBody(m, kTensorMemoryBody, {{3, 1, 1}, {128, 1, 1}, 0}, 3 * 128); }

constexpr WorkRow kWorks[] = {
    {"matmul", MatMul},       {"collatz", Collatz},     {"reduction", Reduction},
    {"vectoradd", VectorAdd}, {"stencil", Stencil},     {"meter", Meter},
    {"recursion", Recursion}, {"functions", Functions}, {"printf", Printf},
    {"malloc", Malloc},       {"textures", Textures},   {"cooperative", Cooperative},
    {"wmma", Matrices},       {"barriers", Barriers},   {"locks", Locks},
    {"async", Async},         {"cluster", ClusterWork}, {"tensor_memory", TensorMemoryWork},
    {"bulk", BulkWork},       {"family", FamilyTree},   {"family_of_blocks", FamilyOfManyBlocks},
};

}  // namespace

std::span<const WorkRow> Works() { return kWorks; }

const WorkRow& FindWork(std::string_view name) {
  for (const WorkRow& row : kWorks)
    if (row.name == name) return row;
  ADD_FAILURE() << "no work " << name;
  return kWorks[0];
}

uint64_t Answer(SoftMachine& m, const Work& work) {
  Checksum sum;
  const auto words = m.Download<uint32_t>(work.out, work.words);
  sum.Add(std::as_bytes(std::span(words)));
  std::vector<std::byte> out(4096);
  bool to_stderr = false;
  std::string printed;
  while (const size_t bytes = m.gpu.TakePrinted(out, &to_stderr))
    printed.append(reinterpret_cast<const char*>(out.data()), bytes);
  sum.Add(std::as_bytes(std::span(printed)));
  return sum.value();
}

uint64_t Undisturbed(const WorkRow& row, Isa isa, uint64_t* instructions) {
  SoftMachine m(isa);
  const Work work = row.make(m);
  const Outcome ran = m.Finish(*work.grid);
  EXPECT_EQ(ran.status, CuStatus::kSuccess) << row.name << ": " << ran.text;
  if (instructions != nullptr) *instructions = ran.instructions;
  return Answer(m, work);
}

}  // namespace vgpud::soft
