// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/rewrite/rewrite_works.h"

#include <algorithm>

#include "gpu/soft/state/checksum.h"

namespace vgpud::rewrite {
namespace {

using soft::Params;
using soft::SoftMachine;
using soft::Work;
using soft::WorkRow;

// Kernel "k", whose first parameter is its output. There are %r39 = %tid.x, %r38 = %ctaid.x, %r36 = the thread's number
// in the grid and %rd39 = its word of the output, all of the first dimension.
Work MakeBody(SoftMachine& m, const std::string& body, const LaunchShape& shape, uint32_t words,
              const std::string& globals = "") {
  const soft::Outcome loaded =
      m.LoadBody(".param .u64 out",
                 "ld.param.u64 %rd1, [out]; mov.u32 %r39, %tid.x; mov.u32 %r38, %ctaid.x; mov.u32 %r37, %ntid.x;\n"
                 "mad.lo.u32 %r36, %r38, %r37, %r39; mul.wide.u32 %rd39, %r36, 4; add.u64 %rd39, %rd1, %rd39;\n" +
                     body,
                 globals);
  EXPECT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  Work work;
  if (loaded.status != CuStatus::kSuccess) return work;
  work.out = m.Alloc(words * 4);
  work.words = words;
  work.grid = m.Launch("k", shape, Params().Add(work.out));
  return work;
}

// Each thread writes where it is, in three dimensions.
Work Index(SoftMachine& m) {
  return MakeBody(m, R"(
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z;
    mov.u32 %r4, %nctaid.x; mov.u32 %r5, %nctaid.y; mov.u32 %r6, %nctaid.z;
    mad.lo.u32 %r7, %r3, %r5, %r2; mad.lo.u32 %r7, %r7, %r4, %r1;
    mov.u32 %r8, %tid.y; mov.u32 %r9, %tid.z; mad.lo.u32 %r8, %r9, 2, %r8; mad.lo.u32 %r8, %r8, 5, %r39;
    mad.lo.u32 %r7, %r7, 30, %r8; mul.wide.u32 %rd2, %r7, 4; add.u64 %rd2, %rd1, %rd2;
    mad.lo.u32 %r10, %r1, 7, %r2; mad.lo.u32 %r10, %r10, 11, %r3; mad.lo.u32 %r10, %r10, 31, %r6;
    add.u32 %r10, %r10, %r8; mad.lo.u32 %r10, %ctaid.y, 3, %r10;
    ld.global.u32 %r11, [%rd2]; add.u32 %r10, %r10, %r11; add.u32 %r10, %r10, 1; st.global.u32 [%rd2], %r10;)",
                  {{4, 3, 5}, {5, 2, 3}, 0}, 60 * 30);
}

// Functions ask, called by name and by address; one has a body parameter and its own shared memory.
Work Asking(SoftMachine& m) {
  return MakeBody(m, R"(
    mov.u32 %r10, 0;
    { .param .b32 r; call.uni (r), where, (); ld.param.b32 %r10, [r]; }
    mov.u64 %rd2, table; and.b32 %r1, %r38, 1; mul.wide.u32 %rd3, %r1, 8; add.u64 %rd2, %rd2, %rd3; ld.global.u64 %rd4, [%rd2];
    { .param .b32 r; P: .callprototype (.param .b32 _) _ (); call (r), %rd4, (), P; ld.param.b32 %r11, [r]; }
    mad.lo.u32 %r10, %r10, 131, %r11; st.global.u32 [%rd39], %r10;)",
                  {{9, 2, 1}, {40, 1, 1}, 0}, 9 * 40, R"(
.func (.param .b32 res) where()
{
  .reg .b32 %r<8>; .reg .pred %p<2>;
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; mov.u32 %r3, %nctaid.y; mad.lo.u32 %r1, %r1, %r2, %r3;
  setp.gt.u32 %p1, %r1, 3;
  @%p1 add.u32 %r1, %r1, %nctaid.z;
  st.param.b32 [res], %r1;
  ret;
}
.func (.param .b32 res) row()
{
  .reg .b32 %r<8>;
  { .param .b32 r; call.uni (r), where, (); ld.param.b32 %r1, [r]; }
  mov.u32 %r2, %nctaid.y; add.u32 %r1, %r1, %r2;
  st.param.b32 [res], %r1;
  ret;
}
.global .align 8 .u64 table[2] = {where, row};
)");
}

// A block waits for what the one before it has found, as scans in one pass do.
Work LookBack(SoftMachine& m) {
  return MakeBody(m, R"(
    setp.ne.u32 %p1, %r39, 0; @%p1 bra END;
    mul.wide.u32 %rd2, %r38, 4; add.u64 %rd2, %rd1, %rd2; mov.u32 %r2, 1;
    setp.eq.u32 %p2, %r38, 0; @%p2 bra PUT;
  SPIN: ld.acquire.gpu.global.u32 %r2, [%rd2+-4]; setp.eq.u32 %p3, %r2, 0; @%p3 bra SPIN;
  PUT: mad.lo.u32 %r2, %r2, 5, %r38; st.release.gpu.global.u32 [%rd2], %r2;
  END:)",
                  {{70, 1, 1}, {33, 1, 1}, 0}, 70);
}

// All of the static shared memory that there is; some threads end before the barriers.
Work FullShared(SoftMachine& m) {
  return MakeBody(m, R"(
    .shared .align 4 .b8 all[49152];
    setp.gt.u32 %p1, %r39, 77; @%p1 exit;
    mov.u32 %r1, all; shl.b32 %r2, %r39, 9; add.u32 %r2, %r1, %r2; st.shared.u32 [%r2], %r36; bar.sync 0;
    xor.b32 %r3, %r39, 1; shl.b32 %r3, %r3, 9; add.u32 %r3, %r1, %r3; ld.shared.u32 %r4, [%r3]; bar.sync 0;
    mad.lo.u32 %r4, %r4, 3, %r36; st.global.u32 [%rd39], %r4;)",
                  {{7, 1, 1}, {90, 1, 1}, 0}, 630);
}

// Blocks take numbers of their own, with a counter, and the last one to end adds up.
Work LastBlock(SoftMachine& m) {
  return MakeBody(m, R"(
    .shared .align 4 .b8 last[4];
    mad.lo.u32 %r1, %r36, 2654435761, 12345; st.volatile.global.u32 [%rd39+64], %r1; membar.gl; bar.sync 0;
    setp.ne.u32 %p1, %r39, 0; @%p1 bra MET;
    atom.global.add.u32 %r2, [%rd1], 1; mov.u32 %r3, %nctaid.x; sub.u32 %r3, %r3, 1;
    setp.eq.u32 %p2, %r2, %r3; selp.u32 %r4, 1, 0, %p2; st.shared.u32 [last], %r4;
  MET: bar.sync 0;
    ld.shared.u32 %r4, [last]; setp.eq.u32 %p3, %r4, 0; @%p3 exit;
    mov.u32 %r5, %r39; mov.u32 %r6, 0; mov.u32 %r9, %nctaid.x; mul.lo.u32 %r9, %r9, %r37;
  SUM: mul.wide.u32 %rd3, %r5, 4; add.u64 %rd3, %rd1, %rd3; ld.volatile.global.u32 %r7, [%rd3+64]; add.u32 %r6, %r6, %r7;
    add.u32 %r5, %r5, %r37; setp.lt.u32 %p4, %r5, %r9; @%p4 bra SUM;
    atom.global.add.u32 %r8, [%rd1+4], %r6;)",
                  {{30, 1, 1}, {64, 1, 1}, 0}, 30 * 64 + 16);
}

// Registers of all kinds, a predicate that is set once, and an array of its own live through a loop that each thread
// goes round a different number of times.
Work Types(SoftMachine& m) {
  return MakeBody(m, R"(
    .local .align 8 .b8 mine[44]; .local .align 1 .b8 bytes[3];
    .reg .v4 .f32 %v; .reg .v2 .u64 %w; .reg .f16 %h<3>; .reg .pred odd;
    mov.u64 %rd2, mine; mov.u64 %rd7, bytes; mov.u32 %r1, 0; and.b32 %r2, %r36, 15; add.u32 %r2, %r2, 3;
    and.b32 %r3, %r36, 1; setp.eq.u32 odd, %r3, 1; mov.u16 %rs1, 3; mov.f32 %f1, 0f3F800000; mov.f64 %fd1, 0d3FF0000000000000;
    mov.f32 %v.x, 0f3F800000; mov.f32 %v.y, 0f40000000; mov.f32 %v.z, 0f40400000; mov.f32 %v.w, 0f40800000;
    mov.u64 %w.x, 5; mov.u64 %w.y, 0x123456789abcdef; mov.b16 %h1, %rs1;
    st.local.u32 [%rd2+40], %r2; st.local.u8 [%rd7+2], %rs1; cvta.local.u64 %rd8, %rd2;
  AGAIN:
    mad.lo.u16 %rs1, %rs1, 7, 1; fma.rn.f32 %f1, %f1, 0f3F8CCCCD, %v.x; fma.rn.f64 %fd1, %fd1, 0d3FF199999999999A, 0d3FF0000000000000;
    mad.lo.u64 %w.y, %w.y, 3, %w.x; add.f32 %v.x, %v.x, %v.w; add.f32 %v.w, %v.w, %v.y;
    @odd add.u64 %w.x, %w.x, 9;
    rem.u32 %r4, %r1, 10; mul.wide.u32 %rd3, %r4, 4; add.u64 %rd3, %rd8, %rd3; ld.u32 %r5, [%rd3]; cvt.u32.u16 %r6, %rs1;
    setp.lt.u32 %p2, %r1, 10; selp.u32 %r5, 0, %r5, %p2; add.u32 %r5, %r5, %r6; st.u32 [%rd3], %r5;
    add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %r2; @%p1 bra AGAIN;
    ld.local.u32 %r7, [%rd2+8]; ld.local.u32 %r8, [%rd2+40]; ld.local.u8 %rs2, [%rd7+2]; mov.b16 %rs3, %h1;
    mov.b32 %r9, %f1; mov.b64 {%r10, %r11}, %fd1; mov.b64 {%r12, %r13}, %w.y; mov.b32 %r14, %v.x; cvt.u32.u16 %r15, %rs2;
    xor.b32 %r7, %r7, %r8; xor.b32 %r7, %r7, %r9; xor.b32 %r7, %r7, %r10; add.u32 %r7, %r7, %r11; xor.b32 %r7, %r7, %r12;
    add.u32 %r7, %r7, %r13; xor.b32 %r7, %r7, %r14; add.u32 %r7, %r7, %r15; cvt.u32.u16 %r15, %rs3; add.u32 %r7, %r7, %r15;
    @odd xor.b32 %r7, %r7, 0x55555555;
    st.global.u32 [%rd39], %r7;)",
                  {{4, 1, 1}, {50, 1, 1}, 0}, 200);
}

// Loops of different lengths between barriers of the block; some threads end early, some barriers are guarded, some
// reduce; shared memory of the kernel, of the module and what the launch adds.
Work Meeting(SoftMachine& m) {
  return MakeBody(m, R"(
    .shared .align 2 .b8 odd[14];
    mov.u32 %r1, 0; mov.u32 %r2, %r36; mov.u32 %r10, box; mov.u32 %r11, tile; mov.u32 %r12, odd;
    shl.b32 %r13, %r39, 2; add.u32 %r14, %r10, %r13; add.u32 %r15, %r11, %r13; setp.ge.u32 %p9, %r39, 77; @%p9 exit;
    setp.lt.u32 %p8, %r39, 100;
  ROUND:
    mad.lo.u32 %r2, %r2, 1664525, %r1; and.b32 %r3, %r2, 15; mov.u32 %r4, 0;
  INNER:
    mad.lo.u32 %r2, %r2, 5, %r4; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, %r3; @%p1 bra INNER;
    st.shared.u32 [%r14], %r2; xor.b32 %r5, %r2, 0x1234; st.shared.u32 [%r15], %r5;
    setp.lt.u32 %p2, %r39, 7; shl.b32 %r6, %r39, 1; add.u32 %r6, %r12, %r6; cvt.u16.u32 %rs1, %r2; @%p2 st.shared.u16 [%r6], %rs1;
    @%p8 bar.sync 0;
    rem.u32 %r7, %r39, 7; shl.b32 %r6, %r7, 1; add.u32 %r6, %r12, %r6; ld.shared.u16 %rs2, [%r6]; cvt.u32.u16 %r7, %rs2;
    add.u32 %r8, %r39, 5; rem.u32 %r8, %r8, 77; shl.b32 %r8, %r8, 2; add.u32 %r9, %r10, %r8; ld.shared.u32 %r16, [%r9];
    add.u32 %r9, %r11, %r8; ld.shared.u32 %r17, [%r9]; add.u32 %r2, %r2, %r7; xor.b32 %r2, %r2, %r16; add.u32 %r2, %r2, %r17;
    setp.gt.u32 %p3, %r2, 0x7fffffff; bar.red.popc.u32 %r18, 0, %p3; add.u32 %r2, %r2, %r18;
    add.u32 %r1, %r1, 1; setp.lt.u32 %p4, %r1, 9; @%p4 bra ROUND;
    st.global.u32 [%rd39], %r2;)",
                  {{5, 1, 1}, {90, 1, 1}, 310}, 450,
                  ".shared .align 4 .b8 box[310];\n.extern .shared .align 8 .b8 tile[];\n");
}

// The two halves of a block meet at different barriers of one number, after ways of different lengths; one thread
// writes a flag in shared memory that others look at again and again.
Work Halves(SoftMachine& m) {
  return MakeBody(m, R"(
    .shared .align 4 .b8 flag[4]; .shared .align 4 .b8 sums[256];
    mov.u32 %r1, 0; mov.u32 %r2, %r36; mov.u32 %r10, flag; mov.u32 %r11, sums; shl.b32 %r3, %r39, 2; add.u32 %r11, %r11, %r3;
    mov.u32 %r20, 0; setp.ne.u32 %p5, %r39, 9; @%p5 bra SET; st.volatile.shared.u32 [%r10], %r20;
  SET: bar.sync 3;
  ROUND:
    setp.lt.u32 %p1, %r39, 32; @%p1 bra FIRST;
    mov.u32 %r4, 0;
  LONG: mad.lo.u32 %r2, %r2, 3, %r4; add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 20; @%p2 bra LONG;
    st.shared.u32 [%r11], %r2;
    bar.sync 3;
    bra MET;
  FIRST:
    mad.lo.u32 %r2, %r2, 7, 1; st.shared.u32 [%r11], %r2;
    bar.sync 3;
  MET:
    xor.b32 %r5, %r3, 128; mov.u32 %r6, sums; add.u32 %r6, %r6, %r5; ld.shared.u32 %r7, [%r6]; add.u32 %r2, %r2, %r7;
    add.u32 %r1, %r1, 1;
    setp.ne.u32 %p5, %r39, 9; @%p5 bra LOOK; st.volatile.shared.u32 [%r10], %r1; bra SEEN;
  LOOK: ld.volatile.shared.u32 %r8, [%r10]; setp.lt.u32 %p6, %r8, %r1; @%p6 bra LOOK;
  SEEN:
    bar.sync 3;
    setp.lt.u32 %p7, %r1, 6; @%p7 bra ROUND;
    st.global.u32 [%rd39], %r2;)",
                  {{3, 1, 1}, {64, 1, 1}, 0}, 192);
}

// A warp works together in a loop that the whole block goes round equally often; some threads have ended before.
Work Uniform(SoftMachine& m) {
  return MakeBody(m, R"(
    .shared .align 4 .b8 box[256];
    setp.ge.u32 %p9, %r39, 61; @%p9 bra END;
    mov.u32 %r1, 0; mov.u32 %r2, %r36; mov.u32 %r10, box; shl.b32 %r3, %r39, 2; add.u32 %r3, %r3, %r10; mov.u32 %r20, %ntid.x;
  ROUND:
    activemask.b32 %r4; shfl.sync.bfly.b32 %r5, %r2, 1, 31, %r4; mad.lo.u32 %r2, %r2, 5, %r5;
    setp.gt.u32 %p1, %r2, 0x6fffffff; @!%p1 bra OTHER; add.u32 %r2, %r2, 77;
  OTHER:
    st.shared.u32 [%r3], %r2; bar.sync 0; ld.shared.u32 %r6, [%r10+8]; add.u32 %r2, %r2, %r6; bar.sync 0;
    add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, %r20; @%p2 bra ROUND;
    st.global.u32 [%rd39], %r2;
  END:)",
                  {{3, 1, 1}, {64, 1, 1}, 0}, 192);
}

// As above, but how often is read from memory, which nobody can know to be the same for all.
Work FromMemory(SoftMachine& m) {
  return MakeBody(m, R"(
    .shared .align 4 .b8 box[256]; mov.u64 %rd2, rounds;
    mov.u32 %r1, 0; mov.u32 %r2, %r36; mov.u32 %r10, box; shl.b32 %r3, %r39, 2; add.u32 %r3, %r3, %r10; ld.global.u32 %r20, [%rd2];
  ROUND:
    shfl.sync.bfly.b32 %r5, %r2, 1, 31, -1; mad.lo.u32 %r2, %r2, 5, %r5;
    st.shared.u32 [%r3], %r2; bar.sync 0; ld.shared.u32 %r6, [%r10+8]; add.u32 %r2, %r2, %r6; bar.sync 0;
    add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, %r20; @%p2 bra ROUND;
    st.global.u32 [%rd39], %r2;)",
                  {{3, 1, 1}, {64, 1, 1}, 0}, 192, ".global .align 4 .u32 rounds = 40;\n");
}

// A function that asks for its block, from inside a loop; copies to shared memory are on their way.
Work AskAgain(SoftMachine& m) {
  return MakeBody(m, R"(
    .shared .align 4 .b8 box[160]; mov.u32 %r1, 0; mov.u32 %r2, 1; mov.u32 %r10, box; shl.b32 %r3, %r39, 2; add.u32 %r10, %r10, %r3;
    mul.wide.u32 %rd2, %r39, 4; add.u64 %rd3, %rd1, %rd2;
  ROUND:
    { .param .b32 r; .param .b32 a; st.param.b32 [a], %r2; call.uni (r), mix, (a); ld.param.b32 %r2, [r]; }
    st.shared.u32 [%r10], %r2; ld.shared.u32 %r4, [%r10]; add.u32 %r2, %r2, %r4;
    add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 30; @%p2 bra ROUND;
    st.global.u32 [%rd39], %r2;)",
                  {{6, 1, 1}, {40, 1, 1}, 0}, 240, R"(
.func (.param .b32 res) mix(.param .b32 n)
{
  .reg .b32 %r<8>;
  ld.param.u32 %r1, [n]; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %nctaid.x; mad.lo.u32 %r1, %r1, %r3, %r2; add.u32 %r1, %r1, 1;
  st.param.b32 [res], %r1;
  ret;
}
)");
}

// The carry flag and predicated writes between backward branches; a table of branches leads back.
Work Tables(SoftMachine& m) {
  return MakeBody(m, R"(
    mov.u32 %r1, 0; mov.u32 %r2, %r36; mov.u32 %r3, 0;
    ways: .branchtargets ONE, TWO, THREE, OUT;
  ONE: add.u32 %r2, %r2, 5; bra NEXT;
  TWO: add.cc.u32 %r2, %r2, 0xf0000000; addc.u32 %r3, %r3, 1; bra NEXT;
  THREE: xor.b32 %r2, %r2, 0x0f0f; bra NEXT;
  NEXT:
    add.u32 %r1, %r1, 1; add.u32 %r4, %r1, %r2; rem.u32 %r4, %r4, 3; setp.gt.u32 %p1, %r1, 60; @%p1 mov.u32 %r4, 3;
    brx.idx %r4, ways;
  OUT:
    add.u32 %r2, %r2, %r3; st.global.u32 [%rd39], %r2;)",
                  {{2, 1, 1}, {70, 1, 1}, 0}, 140);
}

// Long enough that what each block does first does not count.
Work LargeMatMul(SoftMachine& m) {
  constexpr uint32_t kSize = 256;
  std::vector<float> values(kSize * kSize);
  for (size_t n = 0; n < values.size(); ++n) values[n] = static_cast<float>(n % 97) * 0.25f;
  EXPECT_EQ(m.Load(soft::ReadPtx("matmul")).status, CuStatus::kSuccess);
  const GpuVa a = m.Upload(values);
  Work work;
  work.out = m.Alloc(kSize * kSize * 4);
  work.words = kSize * kSize;
  work.grid = m.Launch("matmul", {{kSize / 16, kSize / 16, 1}, {16, 16, 1}, 0},
                       Params().Add(a).Add(a).Add(work.out).Add(kSize).Add(kSize));
  return work;
}

Work LongCollatz(SoftMachine& m) {
  constexpr uint32_t kCount = 20'000;
  EXPECT_EQ(m.Load(soft::ReadPtx("collatz")).status, CuStatus::kSuccess);
  Work work;
  work.out = m.Alloc(kCount * 4);
  work.words = kCount;
  work.grid = m.Launch("collatz", {{(kCount + 127) / 128, 1, 1}, {128, 1, 1}, 0}, Params().Add(work.out).Add(kCount));
  return work;
}

constexpr WorkRow kWorks[] = {
    {"large_matmul", LargeMatMul},
    {"long_collatz", LongCollatz},
    {"types", Types},
    {"meeting", Meeting},
    {"halves", Halves},
    {"uniform", Uniform},
    {"from_memory", FromMemory},
    {"ask_again", AskAgain},
    {"tables", Tables},
    {"index", Index},
    {"asking", Asking},
    {"look_back", LookBack},
    {"full_shared", FullShared},
    {"last_block", LastBlock},
};

}  // namespace

std::span<const WorkRow> RewriteWorks() { return kWorks; }

const WorkRow& AnyWork(std::string_view name) {
  for (const WorkRow& row : kWorks)
    if (row.name == name) return row;
  return soft::FindWork(name);
}

uint64_t AnswerOf(SoftMachine& m, const Work& work) {
  soft::Checksum sum;
  const auto words = m.Download<uint32_t>(work.out, work.words);
  sum.Add(std::as_bytes(std::span(words)));
  std::vector<std::byte> out(4096);
  bool to_stderr = false;
  std::string printed;
  while (const size_t bytes = m.gpu.TakePrinted(out, &to_stderr))
    printed.append(reinterpret_cast<const char*>(out.data()), bytes);
  std::vector<std::string> lines;
  std::stringstream text(printed);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  for (const std::string& line : lines) sum.Add(std::as_bytes(std::span(line)));
  return sum.value();
}

}  // namespace vgpud::rewrite
