// SPDX-License-Identifier: Apache-2.0
// The device runtime: printf, assert, malloc and free, cooperative grids.
#include <gmock/gmock.h>

#include <set>

#include "gpu/soft/memory/device_heap.h"
#include "gpu/soft/memory/print_buffer.h"
#include "gpu/soft/memory/print_format.h"
#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;

// Arguments as the compiler packs them, strings by made-up addresses.
class FakeSource : public PrintSource {
 public:
  template <class T>
  FakeSource& Add(T value) {
    bytes_.resize((bytes_.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T));
    const auto* at = reinterpret_cast<const char*>(&value);
    bytes_.append(at, sizeof value);
    return *this;
  }
  FakeSource& AddText(std::string text) {
    texts_.push_back(std::move(text));
    return Add(uint64_t{texts_.size()});
  }
  std::optional<uint64_t> Argument(uint64_t offset, uint32_t bytes) override {
    if (offset + bytes > bytes_.size()) return std::nullopt;
    uint64_t value = 0;
    std::memcpy(&value, bytes_.data() + offset, bytes);
    return value;
  }
  std::optional<std::string> Text(uint64_t address, size_t most) override {
    if (address == 0 || address > texts_.size()) return std::nullopt;
    return texts_[address - 1].substr(0, most);
  }

 private:
  std::string bytes_;
  std::vector<std::string> texts_;
};

std::string Formatted(const std::string& format, FakeSource source) {
  const auto printed = FormatPrint(format, source);
  return printed ? printed->text : "(unreadable)";
}

TEST(PrintFormat, EveryConversion) {
  EXPECT_EQ(Formatted("%d|%5i|%-5d|%05d|%+d", FakeSource().Add(-1).Add(42).Add(42).Add(42).Add(42)),
            "-1|   42|42   |00042|+42");
  EXPECT_EQ(Formatted("%u %x %X %#o", FakeSource().Add(-1).Add(255).Add(255).Add(8)), "4294967295 ff FF 010");
  EXPECT_EQ(Formatted("%c%c", FakeSource().Add(int{'o'}).Add(int{'k'})), "ok");
  EXPECT_EQ(Formatted("%f %.2lf %e %g %a", FakeSource().Add(0.5).Add(2.0 / 3).Add(1e10).Add(1e-5).Add(1.0)),
            "0.500000 0.67 1.000000e+10 1e-05 0x1p+0");
  EXPECT_EQ(Formatted("%s and %5s, %.2s", FakeSource().AddText("one").AddText("two").AddText("three")),
            "one and   two, th");
  EXPECT_EQ(Formatted("%p", FakeSource().Add(uint64_t{0x700000000010})), "0x700000000010");
  EXPECT_EQ(Formatted("100%% %", FakeSource()), "100% %");
}

// An int before a long: the long stands at the next multiple of eight.
TEST(PrintFormat, ArgumentsAreAligned) {
  EXPECT_EQ(
      Formatted("%d %ld %d %lld %hd %hhu %zu",
                FakeSource().Add(1).Add(int64_t{-2}).Add(3).Add(int64_t{1} << 40).Add(65537).Add(257).Add(uint64_t{9})),
      "1 -2 3 1099511627776 1 1 9");
}

TEST(PrintFormat, WidthsAndPrecisionsThatAreArguments) {
  EXPECT_EQ(
      Formatted("[%*d] [%-*d] [%.*f] [%*d]", FakeSource().Add(4).Add(7).Add(4).Add(7).Add(1).Add(2.25).Add(-4).Add(7)),
      "[   7] [7   ] [2.2] [7   ]");
}

TEST(PrintFormat, CountsItsArguments) {
  FakeSource source = FakeSource().Add(1).Add(2.0).AddText("x");
  EXPECT_EQ(FormatPrint("%d %f %s", source)->arguments, 3);
  EXPECT_EQ(FormatPrint("nothing", source)->arguments, 0);
}

TEST(PrintFormat, WhatIsNoConversionStandsAsItIs) {
  EXPECT_EQ(Formatted("%n %y", FakeSource()), "%n %y");
  EXPECT_EQ(Formatted("%-", FakeSource()), "%-");
}

TEST(PrintFormat, HugeWidthsAndEndlessTextsAreCut) {
  EXPECT_EQ(Formatted("%999999999d", FakeSource().Add(1)).size(), static_cast<size_t>(kMostWidth));
  EXPECT_EQ(Formatted("%.999999999f", FakeSource().Add(1.0)).size(), 2u + kMostWidth);
  std::string many;
  for (int n = 0; n < 100; ++n) many += "%4096d";
  FakeSource source;
  for (int n = 0; n < 100; ++n) source.Add(n);
  EXPECT_EQ(Formatted(many, source).size(), kMostPrinted);
}

TEST(PrintFormat, MissingArgumentsAreAnError) {
  FakeSource none;
  EXPECT_FALSE(FormatPrint("%d", none));
  EXPECT_FALSE(FormatPrint("%*d", none));
  EXPECT_FALSE(FormatPrint("%s", FakeSource().Add(uint64_t{77})));
  EXPECT_EQ(Formatted("%s", FakeSource().Add(uint64_t{0})), "(null)");
}

std::string TakeAll(PrintBuffer& buffer, size_t piece, bool* to_stderr) {
  std::string text;
  std::vector<std::byte> out(piece);
  while (const size_t bytes = buffer.Take(out, to_stderr)) text.append(reinterpret_cast<char*>(out.data()), bytes);
  return text;
}

TEST(PrintBuffer, GivesBackInOrderAndInPieces) {
  PrintBuffer buffer;
  buffer.Append(false, "hello ");
  buffer.Append(false, "world");
  EXPECT_EQ(buffer.bytes(), 11u);
  bool to_stderr = true;
  EXPECT_EQ(TakeAll(buffer, 4, &to_stderr), "hello world");
  EXPECT_FALSE(to_stderr);
  EXPECT_EQ(buffer.bytes(), 0u);
}

TEST(PrintBuffer, OnePieceIsForOneOutput) {
  PrintBuffer buffer;
  buffer.Append(false, "out");
  buffer.Append(true, "err");
  std::vector<std::byte> out(64);
  bool to_stderr = true;
  EXPECT_EQ(buffer.Take(out, &to_stderr), 3u);
  EXPECT_FALSE(to_stderr);
  EXPECT_EQ(buffer.Take(out, &to_stderr), 3u);
  EXPECT_TRUE(to_stderr);
}

TEST(PrintBuffer, TheOldestGoesWhenItIsFull) {
  PrintBuffer buffer;
  buffer.SetCapacity(10000);
  for (int n = 0; n < 1000; ++n) buffer.Append(false, std::to_string(n) + "\n");
  bool to_stderr;
  const std::string text = TakeAll(buffer, 4096, &to_stderr);
  EXPECT_THAT(text, HasSubstr("999\n"));
  EXPECT_LT(text.size(), 10000u);
  EXPECT_NE(text.substr(0, 2), "0\n");
}

TEST(DeviceHeap, ReusesWhatIsFreedAndJoinsNeighbours) {
  DeviceHeap heap;
  heap.Give(GpuVa{0x10000}, 4096);
  std::vector<uint64_t> all;
  while (const uint64_t at = heap.Allocate(100)) all.push_back(at);
  EXPECT_EQ(all.size(), 4096u / 112);
  for (size_t n = 0; n < all.size(); n += 2) EXPECT_TRUE(heap.Free(all[n]));
  EXPECT_EQ(heap.Allocate(200), 0u);
  for (size_t n = 1; n < all.size(); n += 2) EXPECT_TRUE(heap.Free(all[n]));
  EXPECT_EQ(heap.Allocate(4096), 0x10000u);
}

TEST(DeviceHeap, RefusesWhatItNeverGave) {
  DeviceHeap heap;
  EXPECT_EQ(heap.Allocate(1), 0u);
  heap.Give(GpuVa{0x10000}, 4096);
  const uint64_t at = heap.Allocate(64);
  EXPECT_FALSE(heap.Free(at + 16));
  EXPECT_TRUE(heap.Free(at));
  EXPECT_FALSE(heap.Free(at));
  EXPECT_EQ(heap.Allocate(0), 0u);
  EXPECT_EQ(heap.Allocate(UINT64_MAX), 0u);
}

TEST(DeviceHeap, BoundsTheNumberOfAllocations) {
  DeviceHeap heap;
  heap.Give(GpuVa{0x10000}, uint64_t{1} << 30);
  size_t count = 0;
  while (heap.Allocate(1) != 0) ++count;
  EXPECT_EQ(count, DeviceHeap::kMostAllocations);
}

TEST(DeviceHeap, KeepsAlignments) {
  DeviceHeap heap;
  heap.Give(GpuVa{0x10010}, 8192);
  const uint64_t first = heap.Allocate(1);
  const uint64_t aligned = heap.Allocate(10, 1024);
  EXPECT_EQ(first % DeviceHeap::kAlignment, 0u);
  EXPECT_EQ(aligned % 1024, 0u);
  EXPECT_TRUE(heap.Free(aligned));
  EXPECT_TRUE(heap.Free(first));
  EXPECT_NE(heap.Allocate(8192), 0u);
}

class SoftRuntime : public testing::Test {
 protected:
  // The kernels' output, only what is for `from_stderr`.
  std::string Printed(bool from_stderr = false) {
    std::string text;
    std::vector<std::byte> out(1000);
    bool to_stderr = false;
    while (const size_t bytes = m.gpu.TakePrinted(out, &to_stderr))
      if (to_stderr == from_stderr) text.append(reinterpret_cast<char*>(out.data()), bytes);
    return text;
  }
  SoftMachine m;
};

constexpr const char* kDeclareVprintf =
    ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
    ".global .align 1 .b8 text[] = {116, 37, 100, 32, 37, 115, 10, 0};\n"  // "t%d %s\n"
    ".global .align 1 .b8 word[] = {111, 107, 0};\n";                      // "ok"
constexpr const char* kCallVprintf = R"(
    .local .align 8 .b8 args[16];
    mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 2; @%p1 bra END;
    mov.u64 %rd1, args; cvta.local.u64 %rd2, %rd1;
    mov.u64 %rd3, word; cvta.global.u64 %rd3, %rd3;
    st.local.u32 [%rd1], %r1; st.local.u64 [%rd1+8], %rd3;
    mov.u64 %rd4, text; cvta.global.u64 %rd4, %rd4;
    { .param .b64 p0; .param .b64 p1; .param .b32 q; st.param.b64 [p0], %rd4; st.param.b64 [p1], %rd2;
      call.uni (q), vprintf, (p0, p1); ld.param.b32 %r2, [q]; }
    setp.eq.s32 %p2, %r2, 2; @%p2 bra END;
    trap;
    END:)";

TEST_F(SoftRuntime, PrintfWritesAndReturnsTheNumberOfArguments) {
  const Outcome loaded = m.LoadBody("", kCallVprintf, kDeclareVprintf);
  ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  const Outcome ran = m.Run("k", {{1, 1, 1}, {32, 1, 1}, 0}, Params());
  ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
  EXPECT_EQ(Printed(), "t0 ok\nt1 ok\nt2 ok\n");
  EXPECT_EQ(m.gpu.printed_bytes(), 0u);
}

TEST_F(SoftRuntime, PrintfOfAnAddressThatIsNotThereIsAFault) {
  std::string body = kCallVprintf;
  body.replace(body.find("mov.u64 %rd4, text; cvta.global.u64 %rd4, %rd4;"), 47, "mov.u64 %rd4, 4096;");
  ASSERT_EQ(m.LoadBody("", body, kDeclareVprintf).status, CuStatus::kSuccess);
  const Outcome ran = m.Run("k", {{1, 1, 1}, {32, 1, 1}, 0}, Params());
  EXPECT_EQ(ran.status, CuStatus::kIllegalAddress);
  EXPECT_THAT(ran.text, HasSubstr("printf was given 0x1000"));
}

TEST_F(SoftRuntime, AssertSaysWhichThreadOnStderr) {
  const Outcome loaded = m.LoadBody("", R"(
    mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 5; @%p1 bra END;
    mov.u64 %rd1, word; cvta.global.u64 %rd1, %rd1;
    { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
      st.param.b64 [a], %rd1; st.param.b64 [b], %rd1; st.param.b32 [c], 12; st.param.b64 [d], %rd1; st.param.b64 [e], 1;
      call.uni __assertfail, (a, b, c, d, e); }
    END:)",
                                    ".extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, "
                                    ".param .b64 d, .param .b64 e);\n"
                                    ".global .align 1 .b8 word[] = {111, 107, 0};\n");
  ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  const Outcome ran = m.Run("k", {{2, 1, 1}, {32, 1, 1}, 0}, Params());
  EXPECT_EQ(ran.status, CuStatus::kAssert);
  EXPECT_EQ(Printed(true), "ok:12: ok: block: [0,0,0], thread: [5,0,0] Assertion `ok` failed.\n");
}

// Each thread: p = malloc(bytes); out[t] = p; if p: *p = t; free when asked.
constexpr const char* kMallocParams = ".param .u64 out, .param .u64 bytes, .param .u32 release";
constexpr const char* kMallocBody = R"(
    ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [bytes]; ld.param.u32 %r9, [release];
    mov.u32 %r1, %tid.x;
    { .param .b64 p; .param .b64 q; st.param.b64 [p], %rd2; call.uni (q), malloc, (p); ld.param.b64 %rd3, [q]; }
    mul.wide.u32 %rd4, %r1, 8; add.u64 %rd4, %rd1, %rd4; st.global.u64 [%rd4], %rd3;
    setp.eq.u64 %p1, %rd3, 0; @%p1 bra END;
    st.u32 [%rd3], %r1;
    setp.eq.u32 %p2, %r9, 0; @%p2 bra END;
    { .param .b64 p; st.param.b64 [p], %rd3; call.uni free, (p); }
    END:)";
constexpr const char* kMallocDeclare =
    ".extern .func (.param .b64 r) malloc (.param .b64 n);\n.extern .func free (.param .b64 p);\n";

TEST_F(SoftRuntime, MallocGivesEachThreadItsOwnMemoryUntilTheHeapIsFull) {
  ASSERT_TRUE(m.gpu.SetHeapBytes(64 << 10));
  ASSERT_EQ(m.LoadBody(kMallocParams, kMallocBody, kMallocDeclare).status, CuStatus::kSuccess);
  EXPECT_TRUE(m.module->Function("k")->uses_heap);
  const GpuVa out = m.Alloc(64 * 8);
  const Outcome ran = m.Run("k", {{1, 1, 1}, {64, 1, 1}, 0}, Params().Add(out).Add(uint64_t{2048}).Add(0u));
  ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
  const auto all = m.Download<uint64_t>(out, 64);
  std::set<uint64_t> different(all.begin(), all.end());
  EXPECT_EQ(different.size(), 33u);  // 32 places and null
  EXPECT_EQ(all[63], 0u);
  for (uint32_t t = 0; t < 32; ++t) {
    uint32_t value = 0;
    std::memcpy(&value, m.gpu.HostPointer(GpuVa{all[t]}), 4);
    EXPECT_EQ(value, t);
  }
  EXPECT_FALSE(m.gpu.SetHeapBytes(1 << 20)) << "the heap exists";
}

TEST_F(SoftRuntime, FreedMemoryIsGivenOutAgain) {
  ASSERT_TRUE(m.gpu.SetHeapBytes(64 << 10));
  ASSERT_EQ(m.LoadBody(kMallocParams, kMallocBody, kMallocDeclare).status, CuStatus::kSuccess);
  const GpuVa out = m.Alloc(32 * 8);
  for (int round = 0; round < 3; ++round) {
    const Outcome ran = m.Run("k", {{8, 1, 1}, {32, 1, 1}, 0}, Params().Add(out).Add(uint64_t{2048}).Add(1u));
    ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
    for (const uint64_t at : m.Download<uint64_t>(out, 32)) EXPECT_NE(at, 0u);
  }
}

TEST_F(SoftRuntime, FreeOfSomethingElseIsAFault) {
  ASSERT_EQ(m.LoadBody("", "mov.u64 %rd1, 4096; { .param .b64 p; st.param.b64 [p], %rd1; call.uni free, (p); }",
                       kMallocDeclare)
                .status,
            CuStatus::kSuccess);
  const Outcome ran = m.Run("k", {{1, 1, 1}, {1, 1, 1}, 0}, Params());
  EXPECT_EQ(ran.status, CuStatus::kIllegalAddress);
  EXPECT_THAT(ran.text, HasSubstr("free of 0x1000"));
}

TEST_F(SoftRuntime, ACooperativeGridMeetsAtItsBarrier) {
  const Outcome loaded = m.LoadBody(".param .u64 out, .param .u32 rounds", kGridSync);
  ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  const GpuVa out = m.Alloc(64 * 4);
  const Outcome ran = m.Run("k", {{64, 1, 1}, {64, 1, 1}, 0, true}, Params().Add(out).Add(20u), 1000, 20'000'000);
  ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
  for (const uint32_t rounds : m.Download<uint32_t>(out, 64)) EXPECT_EQ(rounds, 20u);
  // A block that waits gives way: without that each round would cost a slice per block.
  EXPECT_LT(ran.instructions, 5'000'000u);
}

TEST_F(SoftRuntime, ACooperativeGridThatCannotBeResidentIsRefused) {
  ASSERT_EQ(m.LoadBody("", "").status, CuStatus::kSuccess);
  const auto grid = m.gpu.Launch(*m.module->Function("k"), {{1000, 1, 1}, {1024, 1, 1}, 0, true}, {}, 0);
  ASSERT_FALSE(grid);
  EXPECT_EQ(grid.error().status, CuStatus::kCooperativeLaunchTooLarge);
  EXPECT_THAT(grid.error().text, HasSubstr("at most 8 can be resident"));
}

// 400 KB of local memory for each of 1024 threads: 8 such blocks are more than the host keeps for a grid.
TEST_F(SoftRuntime, ACooperativeGridOfTooMuchStateIsRefused) {
  ASSERT_EQ(m.LoadBody("", ".local .b8 big[400000]; mov.u64 %rd1, big; st.local.u32 [%rd1], 1;").status,
            CuStatus::kSuccess);
  const auto grid = m.gpu.Launch(*m.module->Function("k"), {{8, 1, 1}, {1024, 1, 1}, 0, true}, {}, 0);
  ASSERT_FALSE(grid);
  EXPECT_EQ(grid.error().status, CuStatus::kCooperativeLaunchTooLarge);
}

}  // namespace
}  // namespace vgpud::soft
