// SPDX-License-Identifier: Apache-2.0
// A grid on several threads: what it computes, how its blocks wait for each other, and how all of them stop.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <random>
#include <set>
#include <thread>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;

// %r39 = tid, %r38 = ctaid, %rd1 = out.
constexpr const char* kStart = "ld.param.u64 %rd1, [out]; mov.u32 %r39, %tid.x; mov.u32 %r38, %ctaid.x;\n";

class SoftWorkers : public testing::TestWithParam<uint32_t> {
 protected:
  void Load(const std::string& body, const std::string& globals = "", const std::string& params = "") {
    const Outcome loaded = m.LoadBody(".param .u64 out" + params, kStart + body, globals);
    ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  }
  // Runs in pieces of random length, which end now by the budget and now by the stop word, that another thread changes
  // all the time.
  Outcome FinishInPieces(GpuGrid& grid, uint32_t seed) {
    std::mt19937 random(seed);
    std::atomic<uint32_t> word{0};
    std::atomic<bool> over{false};
    std::thread changer([&] {
      while (!over.load()) {
        for (int n = 0; n < 50; ++n) std::this_thread::yield();
        ++word;
      }
    });
    Outcome outcome;
    for (;;) {
      const uint64_t budget = uint64_t{1} << random() % 20;
      auto r = grid.Run({&word, word.load()}, budget);
      if (!r) outcome = {r.error().status, r.error().text, grid.warp_instructions()};
      if (!r || *r == GpuGrid::Progress::kDone) break;
    }
    over = true;
    changer.join();
    return outcome;
  }

  SoftMachine m{BestIsa(), 64 << 20, GetParam()};
};

TEST_P(SoftWorkers, SmallGridsWakeNobody) {
  ASSERT_EQ(m.Load(ReadPtx("vectoradd")).status, CuStatus::kSuccess);
  const GpuVa data = m.Alloc(4 * 40'000);
  const auto add = [&](uint32_t count) {
    return m.Run("vectoradd", {{(count + 255) / 256, 1, 1}, {256, 1, 1}, 0},
                 Params().Add(data).Add(data).Add(data).Add(count));
  };
  EXPECT_EQ(add(5'000).status, CuStatus::kSuccess);
  EXPECT_EQ(m.gpu.workers().started(), 0u);
  EXPECT_EQ(add(40'000).status, CuStatus::kSuccess);
  EXPECT_EQ(m.gpu.workers().started(), GetParam() - 1);
}

TEST_P(SoftWorkers, MatMulIsBitExactHoweverItIsCut) {
  constexpr uint32_t kSize = 96;
  std::vector<float> a(kSize * kSize);
  for (size_t n = 0; n < a.size(); ++n) a[n] = std::sin(static_cast<float>(n));
  std::vector<float> expected(kSize * kSize);
  for (uint32_t y = 0; y < kSize; ++y)
    for (uint32_t x = 0; x < kSize; ++x)
      for (uint32_t k = 0; k < kSize; ++k)
        expected[y * kSize + x] = std::fma(a[y * kSize + k], a[k * kSize + x], expected[y * kSize + x]);
  ASSERT_EQ(m.Load(ReadPtx("matmul")).status, CuStatus::kSuccess);
  const GpuVa da = m.Upload(a);
  uint64_t instructions = 0;
  for (const uint32_t seed : {1, 2, 3, 4}) {
    const GpuVa dc = m.Alloc(kSize * kSize * 4);
    const auto grid = m.Launch("matmul", {{kSize / 16, kSize / 16, 1}, {16, 16, 1}, 0},
                               Params().Add(da).Add(da).Add(dc).Add(kSize).Add(kSize));
    const Outcome ran = FinishInPieces(*grid, seed);
    ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
    ASSERT_EQ(m.Download<float>(dc, kSize * kSize), expected) << seed;
    if (instructions == 0) instructions = grid->warp_instructions();
    EXPECT_EQ(grid->warp_instructions(), instructions);
  }
}

// Every thread adds to one of 64 words, of all blocks and of its block.
TEST_P(SoftWorkers, AtomicsOfAllBlocksAddUp) {
  Load(R"(
    and.b32 %r1, %r39, 63; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2;
    cvt.u64.u32 %rd3, %r38; mul.lo.u64 %rd3, %rd3, 4; add.u64 %rd3, %rd3, %rd1; add.u64 %rd3, %rd3, 1024;
    mov.u32 %r2, 0; mov.f32 %f1, 0f3F800000; mov.u32 %r3, tile;
    setp.ne.u32 %p2, %r39, 0; @%p2 bra READY; st.shared.u32 [%r3], 0;
  READY:
    bar.sync 0;
  AGAIN:
    red.global.add.u32 [%rd2], 1; atom.global.add.f32 %f2, [%rd1+256], %f1; red.global.max.s32 [%rd1+260], %r38;
    atom.shared.add.u32 %r4, [%r3], 1;
    add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 50; @%p1 bra AGAIN;
    bar.sync 0;
    ld.shared.u32 %r5, [%r3]; st.global.u32 [%rd3], %r5;)",
       ".shared .align 4 .b8 tile[4];");
  for (const uint32_t seed : {1, 2}) {
    const GpuVa out = m.Alloc(8192);
    const auto grid = m.Launch("k", {{100, 1, 1}, {64, 1, 1}, 0}, Params().Add(out));
    const Outcome ran = FinishInPieces(*grid, seed);
    ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
    const auto words = m.Download<uint32_t>(out, 256 + 100);
    for (uint32_t n = 0; n < 64; ++n) ASSERT_EQ(words[n], 100u * 50) << n;
    EXPECT_EQ(m.Download<float>(out, 65)[64], 100.0f * 64 * 50);
    EXPECT_EQ(words[65], 99u);
    for (uint32_t n = 0; n < 100; ++n) ASSERT_EQ(words[256 + n], 64u * 50) << n;
  }
}

// Decoupled look-back: a block waits for the sum of the one before, which it finds beside its flag.
TEST_P(SoftWorkers, BlocksWaitForLowerOnes) {
  Load(R"(
    mov.u32 %r2, 0;
  BUSY:
    add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 100; @%p1 bra BUSY;
    setp.ne.u32 %p1, %r39, 0; @%p1 bra END;
    mul.wide.u32 %rd2, %r38, 16; add.u64 %rd2, %rd1, %rd2; mov.u64 %rd4, 0;
    setp.eq.u32 %p2, %r38, 0; @%p2 bra SUM;
  LOOK:
    ld.relaxed.gpu.global.v2.u64 {%rd3, %rd4}, [%rd2+-16]; setp.eq.u64 %p3, %rd3, 0; @%p3 bra LOOK;
  SUM:
    cvt.u64.u32 %rd5, %r38; add.u64 %rd4, %rd4, %rd5; mov.u64 %rd6, 1;
    st.relaxed.gpu.global.v2.u64 [%rd2], {%rd6, %rd4};
  END:)");
  for (const uint32_t seed : {1, 2, 3}) {
    const GpuVa out = m.Alloc(400 * 16);
    const auto grid = m.Launch("k", {{400, 1, 1}, {64, 1, 1}, 0}, Params().Add(out));
    const Outcome ran = FinishInPieces(*grid, seed);
    ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
    const auto sums = m.Download<uint64_t>(out, 800);
    for (uint64_t n = 0; n < 400; ++n) ASSERT_EQ(sums[2 * n + 1], n * (n + 1) / 2) << n;
  }
}

// One block writes pairs {n, ~n}, through a global and a generic address, the others must never see half of one.
TEST_P(SoftWorkers, PairsAreNeverTorn) {
  Load(R"(
    setp.ne.u32 %p1, %r38, 0; mov.u64 %rd2, 0; mov.u32 %r2, 0; @%p1 bra READ;
  WRITE:
    add.u64 %rd2, %rd2, 1; not.b64 %rd3, %rd2; st.relaxed.gpu.global.v2.u64 [%rd1], {%rd2, %rd3};
    add.u32 %r2, %r2, 1; not.b32 %r3, %r2; st.volatile.v2.u32 [%rd1+16], {%r2, %r3};
    setp.lt.u32 %p2, %r2, 20000; @%p2 bra WRITE;
    bra END;
  READ:
    ld.relaxed.gpu.v2.u64 {%rd4, %rd5}, [%rd1]; not.b64 %rd6, %rd5; setp.ne.u64 %p3, %rd4, %rd6; @%p3 trap;
    ld.volatile.global.v2.u32 {%r4, %r5}, [%rd1+16]; not.b32 %r6, %r5; setp.ne.u32 %p4, %r4, %r6; @%p4 trap;
    setp.lt.u32 %p5, %r4, 20000; @%p5 bra READ;
  END:)");
  const GpuVa out = m.Upload(std::vector<uint32_t>{0, 0, ~0u, ~0u, 0, ~0u});
  const Outcome ran = m.Run("k", {{4, 1, 1}, {1, 1, 1}, 0}, Params().Add(out));
  ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
}

TEST_P(SoftWorkers, ACooperativeGridMeetsAtItsBarrier) {
  const Outcome loaded = m.LoadBody(".param .u64 out, .param .u32 rounds", kGridSync);
  ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  for (const uint32_t seed : {1, 2}) {
    const GpuVa out = m.Alloc(64 * 4);
    const auto grid = m.Launch("k", {{64, 1, 1}, {64, 1, 1}, 0, true}, Params().Add(out).Add(30u));
    const Outcome ran = FinishInPieces(*grid, seed);
    ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
    for (const uint32_t rounds : m.Download<uint32_t>(out, 64)) EXPECT_EQ(rounds, 30u);
  }
}

// A word that is no atomic, under a spin lock. Blocks of one thread, then blocks in which two warps want the lock.
TEST_P(SoftWorkers, ASpinLockKeepsBlocksApart) {
  Load(R"(
    and.b32 %r1, %r39, 31; setp.ne.u32 %p1, %r1, 0; @%p1 bra END; mov.u32 %r2, 0;
  TRY:
    atom.acquire.gpu.global.cas.b32 %r3, [%rd1], 0, 1; setp.ne.u32 %p2, %r3, 0; @%p2 bra TRY;
    ld.global.u32 %r4, [%rd1+64]; add.u32 %r4, %r4, 1; st.global.u32 [%rd1+64], %r4;
    atom.release.gpu.global.exch.b32 %r3, [%rd1], 0;
    add.u32 %r2, %r2, 1; setp.lt.u32 %p3, %r2, 500; @%p3 bra TRY;
  END:)");
  for (const uint32_t threads : {1, 64}) {
    const GpuVa out = m.Alloc(128);
    const auto grid = m.Launch("k", {{12, 1, 1}, {threads, 1, 1}, 0}, Params().Add(out));
    const Outcome ran = FinishInPieces(*grid, threads);
    ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
    EXPECT_EQ(m.Download<uint32_t>(out, 17)[16], 12u * 500 * (threads == 64 ? 2 : 1));
  }
}

// What a block wrote before its fence is there for the last one, which adds it all up.
TEST_P(SoftWorkers, TheLastBlockSeesWhatAllHaveWritten) {
  Load(R"(
    mul.wide.u32 %rd2, %r38, 4; add.u64 %rd2, %rd1, %rd2; mov.u32 %r2, 0;
  BUSY:
    add.u32 %r2, %r2, 1; st.global.u32 [%rd2+64], %r2; setp.lt.u32 %p1, %r2, 200; @%p1 bra BUSY;
    membar.gl; atom.global.add.u32 %r3, [%rd1], 1;
    setp.ne.u32 %p2, %r3, 199; @%p2 bra END;
    membar.gl; mov.u32 %r4, 0; mov.u32 %r5, 0; add.u64 %rd3, %rd1, 64;
  ADD:
    ld.global.u32 %r6, [%rd3]; add.u32 %r4, %r4, %r6; add.u64 %rd3, %rd3, 4; add.u32 %r5, %r5, 1;
    setp.lt.u32 %p3, %r5, 200; @%p3 bra ADD;
    st.global.u32 [%rd1+4], %r4;
  END:)");
  const GpuVa out = m.Alloc(1024);
  const auto grid = m.Launch("k", {{200, 1, 1}, {1, 1, 1}, 0}, Params().Add(out));
  const Outcome ran = FinishInPieces(*grid, 7);
  ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
  EXPECT_EQ(m.Download<uint32_t>(out, 2)[1], 200u * 200);
}

// All other blocks would go on for ever.
TEST_P(SoftWorkers, AFaultStopsAll) {
  Load(R"(
    mov.u32 %r2, 0;
  LOOP:
    add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 20000; @%p1 bra LOOP;
    setp.ne.u32 %p2, %r38, 5; @%p2 bra LOOP;
    st.global.u32 [%rd1+-4], %r2;)");
  const auto grid = m.Launch("k", {{9, 1, 1}, {32, 1, 1}, 0}, Params().Add(uint64_t{16}));
  const Outcome ran = m.Finish(*grid);
  EXPECT_EQ(ran.status, CuStatus::kIllegalAddress);
  EXPECT_THAT(ran.text, HasSubstr("block (5,0,0)"));
  const Outcome again = m.Finish(*grid);
  EXPECT_EQ(again.text, ran.text);
  EXPECT_EQ(again.instructions, ran.instructions);
}

TEST_P(SoftWorkers, OfManyFaultsOneIsReported) {
  Load(R"(
    mov.u32 %r2, 0;
  LOOP:
    add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 10000; @%p1 bra LOOP;
    st.global.u32 [%rd1+-4], %r2;)");
  const auto grid = m.Launch("k", {{64, 1, 1}, {32, 1, 1}, 0}, Params().Add(uint64_t{16}));
  const Outcome ran = m.Finish(*grid);
  EXPECT_EQ(ran.status, CuStatus::kIllegalAddress);
  EXPECT_EQ(m.Finish(*grid).text, ran.text);
}

// Blocks load the stop word and store what they saw with the very next instruction; one of them changes it. A thread
// that has seen the change must not run that next instruction.
TEST_P(SoftWorkers, NobodyRunsAnInstructionAfterTheStop) {
  Load(R"(
    ld.param.u32 %r10, [rounds]; mov.u32 %r2, 0; mul.wide.u32 %rd2, %r38, 4; add.u64 %rd2, %rd1, %rd2;
  LOOP:
    ld.volatile.global.u32 %r3, [%rd1];
    st.global.u32 [%rd2+64], %r3;
    add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r10; @%p1 bra LOOP;
    atom.global.exch.b32 %r4, [%rd1], 1;
    st.global.u32 [%rd2+64], 2;
    bra LOOP;)",
       "", ", .param .u32 rounds");
  for (uint32_t round = 0; round < 10; ++round) {
    const GpuVa out = m.Alloc(4096);
    auto* word = reinterpret_cast<std::atomic<uint32_t>*>(m.gpu.HostPointer(out));
    const auto grid = m.Launch("k", {{6, 1, 1}, {1, 1, 1}, 0}, Params().Add(out).Add(3000 + 4999 * round));
    const auto r = grid->Run({word, 0}, UINT64_MAX);
    ASSERT_TRUE(r);
    ASSERT_EQ(*r, GpuGrid::Progress::kStopped);
    const auto seen = m.Download<uint32_t>(out, 16 + 6);
    EXPECT_EQ(seen[0], 1u);
    for (uint32_t n = 16; n < seen.size(); ++n) ASSERT_EQ(seen[n], 0u) << n - 16;
    ASSERT_TRUE(m.gpu.Free(out));
  }
}

TEST_P(SoftWorkers, BudgetsBoundEachThread) {
  Load("LOOP: bra LOOP;");
  const auto grid = m.Launch("k", {{6, 1, 1}, {32, 1, 1}, 0}, Params().Add(uint64_t{0}));
  uint64_t before = 0;
  for (const uint64_t budget : {20'000, 1, 7, 2000, 100'000, 1}) {
    const auto r = grid->Run({&m.word, 0}, budget);
    ASSERT_TRUE(r);
    EXPECT_EQ(*r, GpuGrid::Progress::kYield);
    const uint64_t ran = grid->warp_instructions() - before;
    before += ran;
    EXPECT_GE(ran, budget);
    EXPECT_LE(ran, budget < 2048 ? budget : budget * GetParam());
  }
}

TEST_P(SoftWorkers, EveryBlockPrintsAndAllocates) {
  const Outcome loaded = m.LoadBody("", R"(
    .local .align 8 .b8 pack[8];
    mov.u32 %r39, %tid.x; mov.u32 %r38, %ctaid.x; mov.u32 %r37, %ntid.x; mad.lo.u32 %r1, %r38, %r37, %r39;
    mov.u32 %r9, 0;
  AGAIN:
    mov.u64 %rd2, 48;
    { .param .b64 p; .param .b64 q; st.param.b64 [p], %rd2; call.uni (q), malloc, (p); ld.param.b64 %rd3, [q]; }
    setp.eq.u64 %p1, %rd3, 0; @%p1 trap;
    st.u32 [%rd3], %r1; st.u32 [%rd3+44], %r1;
    bar.sync 0;
    ld.u32 %r2, [%rd3]; ld.u32 %r3, [%rd3+44]; setp.ne.u32 %p2, %r2, %r1; @%p2 trap; setp.ne.u32 %p3, %r3, %r1;
    @%p3 trap;
    { .param .b64 p; st.param.b64 [p], %rd3; call.uni free, (p); }
    add.u32 %r9, %r9, 1; setp.lt.u32 %p4, %r9, 3; @%p4 bra AGAIN;
    setp.ne.u32 %p5, %r39, 0; @%p5 bra END;
    st.local.u32 [pack], %r38; cvta.local.u64 %rd4, pack; mov.u64 %rd5, text; cvta.global.u64 %rd5, %rd5;
    { .param .b64 p0; .param .b64 p1; .param .b32 q; st.param.b64 [p0], %rd5; st.param.b64 [p1], %rd4;
      call.uni (q), vprintf, (p0, p1); ld.param.b32 %r4, [q]; }
  END:)",
                                    ".extern .func (.param .b64 r) malloc (.param .b64 n);\n"
                                    ".extern .func free (.param .b64 p);\n"
                                    ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
                                    ".global .align 1 .b8 text[4] = {37, 117, 10, 0};\n");  // "%u\n"
  ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  const auto grid = m.Launch("k", {{300, 1, 1}, {64, 1, 1}, 0}, Params());
  ASSERT_NE(grid, nullptr);
  const Outcome ran = FinishInPieces(*grid, 3);
  ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
  std::string printed;
  std::vector<std::byte> part(4096);
  bool to_stderr = false;
  while (const size_t bytes = m.gpu.TakePrinted(part, &to_stderr))
    printed.append(reinterpret_cast<const char*>(part.data()), bytes);
  std::set<std::string> lines;
  std::istringstream stream(printed);
  for (std::string line; std::getline(stream, line);) lines.insert(line);
  EXPECT_EQ(lines.size(), 300u);
  EXPECT_TRUE(lines.contains("299"));
}

INSTANTIATE_TEST_SUITE_P(, SoftWorkers, testing::Values(1, 2, 3),
                         [](const auto& p) { return std::to_string(p.param) + "Threads"; });

}  // namespace
}  // namespace vgpud::soft
