// SPDX-License-Identifier: Apache-2.0
// Which addresses a warp reaches: at the borders of each space, for every type, all lanes and some. The first lane that
// is outside or misaligned is told.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <random>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;

constexpr uint64_t kVram = 4 << 20;
constexpr uint64_t kTile = 1024;
constexpr uint32_t kSome = 0x7ffdb6d6;  // lanes that go on where not all do

struct Element {
  const char* type;  // of ld and st
  uint32_t count;    // of a vector
  uint32_t bytes;    // of an element
};
constexpr Element kElements[] = {{"u8", 1, 1},  {"u16", 1, 2}, {"u32", 1, 4}, {"u64", 1, 8},
                                 {"u32", 2, 4}, {"u32", 4, 4}, {"u64", 2, 8}, {"u16", 4, 2}};

// Lane l goes to first + l * step, lane `astray` to `extra` more.
struct Addresses {
  uint64_t first, step;
  uint32_t astray;
  uint64_t extra;
  uint64_t Of(uint32_t lane) const { return first + lane * step + (lane == astray ? extra : 0); }
};

struct Place {
  const char* space;   // as in ld.<space>
  const char* before;  // makes %rd5, the address
  const char* address;
  uint64_t begin, end;
  const char* says;  // before "load" and "store"
};

class SoftReach : public testing::TestWithParam<Isa> {
 protected:
  SoftReach() : m(GetParam(), kVram) {}

  void Check(const Place& place, const Element& e, bool store, bool some) {
    const uint32_t size = e.bytes * e.count;
    const std::string reg = e.bytes == 8 ? "%rd1" : "%r1";
    std::string values = reg + "0";
    for (uint32_t n = 1; n < e.count; ++n) values += fmt::format(", {}{}", reg, n);
    if (e.count > 1) values = "{" + values + "}";
    const std::string vector = e.count > 1 ? fmt::format(".v{}", e.count) : "";
    const std::string access =
        store ? fmt::format("st{}{}.{} [{}], {};", place.space, vector, e.type, place.address, values)
              : fmt::format("ld{}{}.{} {}, [{}];", place.space, vector, e.type, values, place.address);
    const std::string body = fmt::format(R"(
      ld.param.u64 %rd1, [first]; ld.param.u64 %rd2, [step]; ld.param.u32 %r3, [astray]; ld.param.u64 %rd3, [extra];
      mov.u32 %r5, tile; mov.u32 %r1, %tid.x; cvt.u64.u32 %rd4, %r1; mad.lo.u64 %rd5, %rd2, %rd4, %rd1;
      setp.eq.u32 %p1, %r1, %r3; @%p1 add.u64 %rd5, %rd5, %rd3; {}
      shr.u32 %r4, {}, %r1; and.b32 %r4, %r4, 1; setp.eq.u32 %p2, %r4, 0; @%p2 bra END;
      {}
      END:)",
                                         place.before, some ? kSome : 0xffffffff, access);
    const Outcome loaded = m.LoadBody(".param .u64 first, .param .u64 step, .param .u32 astray, .param .u64 extra",
                                      body, fmt::format(".shared .align 16 .b8 tile[{}];", kTile));
    ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text << body;
    std::mt19937_64 random(size * 2 + (store ? 1 : 0));
    const auto near = [&](uint64_t where) { return where + (random() % 9 - 4) * size; };
    std::vector<Addresses> all;
    for (const uint64_t first : {place.begin, place.end - 32 * size, place.end - 31 * size, place.end - 16 * size,
                                 place.end - 15 * size, place.end - 8 * size, place.end - 9 * size})
      all.push_back({first, size, 32, 0});
    all.push_back({place.begin - size, size, 32, 0});
    all.push_back({place.begin - size, size, 5, size});
    all.push_back({place.begin + size / 2, size, 32, 0});
    for (const uint64_t first : {place.end - size, place.end, place.begin, place.begin - size, place.end - 1})
      all.push_back({first, 0, 32, 0});
    for (const uint64_t first : {place.end - size, place.begin + 31 * size, place.begin + 30 * size})
      all.push_back({first, uint64_t{0} - size, 32, 0});
    for (uint32_t lane = 1; lane < 32; lane += 5) {
      all.push_back({place.begin, size, lane, 1});
      all.push_back({place.begin, size, lane, place.end - place.begin});
      all.push_back({place.begin + 256, 0, lane, size});
      all.push_back({place.begin + 256, size, lane, near(0)});
      all.push_back({near(place.end - 32 * size), size, lane, near(0)});
    }
    for (const Addresses& a : all) Launch(place, size, store, some, a);
  }

  void Launch(const Place& place, uint32_t size, bool store, bool some, const Addresses& a) {
    const Outcome ran =
        m.Run("k", {{1, 1, 1}, {32, 1, 1}, 0}, Params().Add(a.first).Add(a.step).Add(a.astray).Add(a.extra));
    const std::string what = fmt::format("{} {} bytes {} from {:#x} step {:#x} lane {} {:#x}", place.space, size,
                                         store ? "store" : "load", a.first, a.step, a.astray, a.extra);
    for (uint32_t lane = 0; lane < 32; ++lane) {
      if (some && (kSome >> lane & 1) == 0) continue;
      const uint64_t address = a.Of(lane);
      const bool inside = address >= place.begin && address < place.end && size <= place.end - address;
      if (inside && address % size == 0) continue;
      EXPECT_EQ(ran.status, inside ? CuStatus::kMisalignedAddress : CuStatus::kIllegalAddress) << what;
      EXPECT_THAT(ran.text, HasSubstr(fmt::format("thread ({},0,0)", lane))) << what;
      EXPECT_THAT(ran.text, HasSubstr(fmt::format("{} of {} bytes at ", store ? "store" : "load", size))) << what;
      EXPECT_THAT(ran.text, HasSubstr(place.says)) << what;
      return;
    }
    EXPECT_EQ(ran.status, CuStatus::kSuccess) << what << "\n" << ran.text;
  }
  void CheckAll(const Place& place) {
    for (const Element& e : kElements)
      for (const bool store : {false, true})
        for (const bool some : {false, true}) Check(place, e, store, some);
  }
  SoftMachine m;
};

TEST_P(SoftReach, GlobalMemoryFromItsBeginToItsEnd) {
  const uint64_t begin = Raw(m.Alloc(kVram));
  CheckAll({".global", "", "%rd5", begin, begin + kVram, "global "});
}

// The page before is there and nobody's: nothing of it is reached together with what is behind it.
TEST_P(SoftReach, GlobalMemoryFromABorderBetweenPages) {
  const GpuVa before = m.Alloc(kVram / 2);
  const uint64_t begin = Raw(m.Alloc(kVram / 2));
  ASSERT_EQ(Raw(before) + kVram / 2, begin);
  ASSERT_TRUE(m.gpu.Free(before));
  CheckAll({".global", "", "%rd5", begin, begin + kVram / 2, "global "});
}

TEST_P(SoftReach, GenericAddressesOfGlobalMemory) {
  const uint64_t begin = Raw(m.Alloc(kVram));
  CheckAll({"", "", "%rd5", begin, begin + kVram, ""});
}

TEST_P(SoftReach, SharedMemory) {
  CheckAll({".shared", "cvt.u32.u64 %r5, %rd5;", "%r5", 0, kTile, "shared "});
  CheckAll({".shared", "", "%rd5", 0, kTile, "shared "});
  CheckAll({".shared", "", "%rd5+-16", 16, kTile + 16, "shared "});
}

TEST_P(SoftReach, SharedMemoryThroughItsWindow) { CheckAll({"", "cvta.shared.u64 %rd5, %rd5;", "%rd5", 0, kTile, ""}); }

TEST_P(SoftReach, LocalMemory) {
  const char* const make = ".local .align 16 .b8 mine[1024];";
  CheckAll({".local", make, "%rd5", 0, kTile, ""});
  const std::string narrow = std::string(make) + "cvt.u32.u64 %r5, %rd5;";
  CheckAll({".local", narrow.c_str(), "%r5", 0, kTile, ""});
  const std::string generic = std::string(make) + "cvta.local.u64 %rd5, %rd5;";
  CheckAll({"", generic.c_str(), "%rd5", 0, kTile, ""});
}

INSTANTIATE_TEST_SUITE_P(, SoftReach, testing::ValuesIn(AvailableIsas()),
                         [](const auto& p) { return std::string(NameOf(p.param)); });

// Memory that is there, but of which a part is not given out: pages of 2 MiB.
TEST(SoftReachPages, MemoryThatNobodyAllocatedIsNotThere) {
  SoftMachine m(BestIsa(), 16 << 20);
  const uint64_t begin = Raw(m.Alloc(2 << 20));
  ASSERT_EQ(m.LoadBody(".param .u64 at", R"(
      ld.param.u64 %rd1, [at]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
      ld.global.u32 %r2, [%rd1];)")
                .status,
            CuStatus::kSuccess);
  const auto run = [&](uint64_t at, uint32_t threads) {
    return m.Run("k", {{1, 1, 1}, {threads, 1, 1}, 0}, Params().Add(at));
  };
  for (const uint32_t threads : {32u, 7u}) {
    EXPECT_EQ(run(begin + (2 << 20) - 4 * threads, threads).status, CuStatus::kSuccess);
    const Outcome behind = run(begin + (2 << 20) - 4 * (threads - 1), threads);
    EXPECT_EQ(behind.status, CuStatus::kIllegalAddress);
    EXPECT_THAT(behind.text, HasSubstr(fmt::format("thread ({},0,0)", threads - 1)));
    EXPECT_EQ(run(begin + (4 << 20), threads).status, CuStatus::kIllegalAddress);
    EXPECT_EQ(run(begin + (16 << 20) - 4, threads).status, CuStatus::kIllegalAddress);
  }
}

struct FaultCase {
  const char* body;
  CuStatus status;  // kSuccess: the last address that is there
  const char* text;
};
// Instructions on more than one element of a lane. %rd1: 4 MiB, all there is; `tile`: 1024 bytes; %r9: tid * 16.
constexpr FaultCase kOther[] = {
    {"atom.shared.add.u32 %r1, [1020], 1;", CuStatus::kSuccess, ""},
    {"atom.shared.add.u32 %r1, [1024], 1;", CuStatus::kIllegalAddress, "of 4 bytes at 0x400"},
    {"atom.shared.add.u64 %rd2, [1016], 1;", CuStatus::kSuccess, ""},
    {"atom.shared.add.u64 %rd2, [1020], 1;", CuStatus::kIllegalAddress, "of 8 bytes at 0x3fc"},
    {"atom.shared.add.u64 %rd2, [1012], 1;", CuStatus::kMisalignedAddress, "of 8 bytes at 0x3f4"},
    {"atom.global.add.u64 %rd2, [%rd1+4194296], 1;", CuStatus::kSuccess, ""},
    {"atom.global.add.u64 %rd2, [%rd1+4194304], 1;", CuStatus::kIllegalAddress, "of 8 bytes at"},
    {"atom.add.u32 %r1, [%rd1+4194300], 1;", CuStatus::kSuccess, ""},
    {"cvta.shared.u64 %rd2, 1020; atom.add.u32 %r1, [%rd2], 1;", CuStatus::kSuccess, ""},
    {"cvta.shared.u64 %rd2, 1024; atom.add.u32 %r1, [%rd2], 1;", CuStatus::kIllegalAddress, "of 4 bytes at 0x6e"},
    {"cvta.local.u64 %rd2, 16777212; atom.add.u32 %r1, [%rd2], 1;", CuStatus::kInvalidAddressSpace,
     "0x6d0000fffffc is in a space"},
    {"cvta.local.u64 %rd2, 16777216; atom.add.u32 %r1, [%rd2], 1;", CuStatus::kIllegalAddress, "0x6d0001000000"},
    {"cvta.param.u64 %rd2, 0; atom.add.u32 %r1, [%rd2], 1;", CuStatus::kInvalidAddressSpace, "0x6c0000000000"},
    {"cvta.param.u64 %rd2, 0; ld.u64 %rd3, [%rd2];", CuStatus::kSuccess, ""},
    {"cvta.param.u64 %rd2, 8; ld.u64 %rd3, [%rd2];", CuStatus::kIllegalAddress, "load of 8 bytes at 0x6c"},
    {"cvta.param.u64 %rd2, 4; ld.u32 %r3, [%rd2];", CuStatus::kSuccess, ""},
    {"cvta.param.u64 %rd2, 0; st.u32 [%rd2], %r3;", CuStatus::kIllegalAddress, "store of 4 bytes at 0x6c"},
    {"mov.b64 %rd2, out; ld.param.u32 %r3, [%rd2+4];", CuStatus::kSuccess, ""},
    {"mov.b64 %rd2, out; ld.param.u32 %r3, [%rd2+8];", CuStatus::kIllegalAddress, "load of 4 bytes at 0x8"},
    {"cp.async.ca.shared.global [1020], [%rd1], 4;", CuStatus::kSuccess, ""},
    {"cp.async.ca.shared.global [1024], [%rd1], 4;", CuStatus::kIllegalAddress,
     "asynchronous copy to shared memory of 4 bytes at 0x400"},
    {"cp.async.ca.shared.global [4], [%rd1], 8;", CuStatus::kMisalignedAddress, "of 8 bytes at 0x4"},
    {"cp.async.cg.shared.global [16], [%rd1+4194288], 16;", CuStatus::kSuccess, ""},
    {"cp.async.cg.shared.global [16], [%rd1+4194304], 16;", CuStatus::kIllegalAddress,
     "asynchronous copy of 16 bytes at"},
    {"cp.async.cg.shared.global [16], [%rd1+4194304], 16, 0;", CuStatus::kSuccess, ""},
    {"cp.async.cg.shared.global [16], [%rd1+4194300], 16, 4;", CuStatus::kMisalignedAddress,
     "asynchronous copy of 16 bytes at"},
    {"cp.async.ca.shared.global [16], [%rd1+2], 4;", CuStatus::kMisalignedAddress, "copy of 4 bytes"},
    {"mbarrier.init.shared.b64 [1016], 1;", CuStatus::kSuccess, ""},
    {"mbarrier.init.shared.b64 [1024], 1;", CuStatus::kIllegalAddress, "mbarrier of 8 bytes at 0x400"},
    {"mbarrier.init.shared.b64 [4], 1;", CuStatus::kMisalignedAddress, "mbarrier of 8 bytes at 0x4"},
    {"mbarrier.test_wait.shared.b64 %p1, [1024], %rd2;", CuStatus::kIllegalAddress, "mbarrier of 8 bytes"},
    {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r9+896];", CuStatus::kSuccess, ""},
    {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r9+912];", CuStatus::kIllegalAddress,
     "load of a matrix's row of 16 bytes at 0x400"},
    {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r9+8];", CuStatus::kMisalignedAddress, "of 16 bytes at 0x8"},
    {"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1,%r2,%r3,%r4}, [%r9+512];", CuStatus::kSuccess, ""},
    {"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1,%r2,%r3,%r4}, [%r9+528];", CuStatus::kIllegalAddress,
     "thread (31,0,0)"},
    {"wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%rd1+4193280];",
     CuStatus::kSuccess, ""},
    {"wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%rd1+4193284];",
     CuStatus::kIllegalAddress, "load of a matrix's row of 64 bytes"},
    {"wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%rd1+2];",
     CuStatus::kMisalignedAddress, "load of a matrix's row of 64 bytes"},
    {"wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%rd1+4193216], 17;",
     CuStatus::kSuccess, ""},
    {"wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%rd1+4193224], 17;",
     CuStatus::kIllegalAddress, "of 64 bytes"},
    {"wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1+4193280], {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8};",
     CuStatus::kSuccess, ""},
    {"wmma.store.d.sync.aligned.col.m16n16k16.global.f32 [%rd1+4193284], {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8};",
     CuStatus::kIllegalAddress, "store of a matrix's row of 64 bytes"},
    {"wmma.load.a.sync.aligned.row.m8n8k32.global.s4 {%r1}, [%rd1+4194176];", CuStatus::kSuccess, ""},
    {"wmma.load.a.sync.aligned.row.m8n8k32.global.s4 {%r1}, [%rd1+4194180];", CuStatus::kIllegalAddress,
     "load of a matrix's row of 16 bytes"},
    {"wmma.load.a.sync.aligned.row.m8n8k32.global.s4 {%r1}, [%rd1+1];", CuStatus::kMisalignedAddress,
     "load of a matrix's row of 16 bytes"},
    {"wmma.load.a.sync.aligned.row.m8n8k32.global.s4 {%r1}, [%rd1+4194064], 64;", CuStatus::kSuccess, ""},
    {"wmma.load.a.sync.aligned.row.m8n8k32.global.s4 {%r1}, [%rd1+4194068], 64;", CuStatus::kIllegalAddress,
     "of 16 bytes"},
    {"wmma.load.a.sync.aligned.row.m8n8k32.shared.s4 {%r1}, [896];", CuStatus::kSuccess, ""},
    {"wmma.load.b.sync.aligned.col.m8n8k32.shared.s4 {%r1}, [900];", CuStatus::kIllegalAddress, "at 0x3f4"},
    {"cvta.shared.u64 %rd2, 896; wmma.load.a.sync.aligned.row.m8n8k32.s4 {%r1}, [%rd2];", CuStatus::kSuccess, ""},
    {"wmma.load.a.sync.aligned.row.m16n16k16.shared.u8 {%r1,%r2}, [768];", CuStatus::kSuccess, ""},
    {"wmma.load.a.sync.aligned.row.m16n16k16.shared.u8 {%r1,%r2}, [769];", CuStatus::kIllegalAddress, "of 16 bytes"},
    {"cvta.shared.u64 %rd2, 768; wmma.load.a.sync.aligned.row.m16n16k16.u8 {%r1,%r2}, [%rd2];", CuStatus::kSuccess, ""},
    {"cvta.param.u64 %rd2, 16777216; atom.add.u32 %r1, [%rd2], 1;", CuStatus::kIllegalAddress, "0x6c0001000000"},
    {"wmma.store.d.sync.aligned.row.m8n8k32.global.s32 [%rd1+4194048], {%r1,%r2};", CuStatus::kSuccess, ""},
    {"wmma.store.d.sync.aligned.row.m8n8k32.global.s32 [%rd1+4194052], {%r1,%r2};", CuStatus::kIllegalAddress,
     "store of a matrix's row of 32 bytes"},
};
class SoftReachOther : public testing::TestWithParam<Isa> {};

TEST_P(SoftReachOther, CopiesBarriersMatricesAndAtomicsToo) {
  for (const FaultCase& c : kOther) {
    SoftMachine m(GetParam(), kVram);
    const Outcome loaded = m.LoadBody(".param .u64 out",
                                      std::string("ld.param.u64 %rd1, [out]; mov.u32 %r8, tile; mov.u32 %r9, %tid.x; "
                                                  "mul.lo.u32 %r9, %r9, 16; mov.u64 %rd2, 0;\n") +
                                          c.body,
                                      ".shared .align 16 .b8 tile[1024];");
    ASSERT_EQ(loaded.status, CuStatus::kSuccess) << c.body << "\n" << loaded.text;
    const Outcome ran = m.Run("k", {{1, 1, 1}, {32, 1, 1}, 0}, Params().Add(m.Alloc(kVram)));
    EXPECT_EQ(ran.status, c.status) << c.body << "\n" << ran.text;
    EXPECT_THAT(ran.text, HasSubstr(c.text)) << c.body;
  }
}

INSTANTIATE_TEST_SUITE_P(, SoftReachOther, testing::ValuesIn(AvailableIsas()),
                         [](const auto& p) { return std::string(NameOf(p.param)); });

}  // namespace
}  // namespace vgpud::soft
