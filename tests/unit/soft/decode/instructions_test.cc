// SPDX-License-Identifier: Apache-2.0
// What instructions on memory become: the row that runs them, what it is told, and where others may look on.
#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

struct Case {
  const char* text;
  const char* row;
  uint8_t aux;
  uint8_t flags;
  int64_t imm;
};
constexpr uint8_t kGlobalSpace = static_cast<uint8_t>(MemSpace::kGlobal);
constexpr uint8_t kGenericSpace = static_cast<uint8_t>(MemSpace::kGeneric);
constexpr uint8_t kSharedSpace = static_cast<uint8_t>(MemSpace::kShared);

// aux of loads and stores: elements; of atomic operations and matrices: the space.
constexpr Case kCases[] = {
    {"ld.global.u32 %r1, [%rd1+8];", "@ld.global.u32.32", 1, 0, 8},
    {"ld.global.u32 %r1, [%rd1+-8];", "@ld.global.u32.32", 1, 0, -8},
    {"ld.global.u32 %rd2, [%rd1];", "@ld.global.u32.64", 1, 0, 0},
    {"ld.global.s32 %r1, [%rd1];", "@ld.global.u32.32", 1, 0, 0},
    {"ld.global.s32 %rd2, [%rd1];", "@ld.global.s32.64", 1, 0, 0},
    {"ld.global.s8 %r1, [%rd1];", "@ld.global.s8.32", 1, 0, 0},
    {"ld.global.s8 %rd2, [%rd1];", "@ld.global.s8.64", 1, 0, 0},
    {"ld.global.b8 %r1, [%rd1];", "@ld.global.u8.32", 1, 0, 0},
    {"ld.global.s16 %r1, [%rd1];", "@ld.global.s16.32", 1, 0, 0},
    {"ld.global.s64 %rd2, [%rd1];", "@ld.global.u64.64", 1, 0, 0},
    {"ld.global.f64 %fd1, [%rd1];", "@ld.global.u64.64", 1, 0, 0},
    {"ld.global.v2.s16 {%r1, %r2}, [%rd1];", "@ld.global.s16.32", 2, 0, 0},
    {"ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];", "@ld.global.u32.32", 4, 0, 0},
    {"ld.global.v2.u32 {%rd2, %rd3}, [%rd1];", "@ld.global.u32.32", 2, 0, 0},
    {"ld.const.u32 %r1, [%rd1];", "@ld.global.u32.32", 1, 0, 0},
    {"ld.u32 %r1, [%rd1];", "@ld.generic.u32.32", 1, 0, 0},
    {"ld.shared.u32 %r1, [%r2];", "@ld.shared.u32.32", 1, kAddress32, 0},
    {"ld.shared.u32 %r1, [%rd1];", "@ld.shared.u32.32", 1, 0, 0},
    {"ld.local.u32 %r1, [%r2];", "@ld.local.u32.32", 1, kAddress32, 0},
    {"ld.global.u32 %r1, [%r2];", "@ld.global.u32.32", 1, 0, 0},
    {"ld.param.u32 %r1, [%rd1];", "@ld.param.u32.32", 1, 0, 0},
    {"st.global.s8 [%rd1], %r1;", "@st.global.u8.32", 1, 0, 0},
    {"st.global.u32 [%rd1], %rd2;", "@st.global.u32.64", 1, 0, 0},
    {"st.global.v4.u8 [%rd1], {%r1, %r2, %r3, %r4};", "@st.global.u8.32", 4, 0, 0},
    {"st.shared.u64 [%r2+16], %rd2;", "@st.shared.u64.64", 1, kAddress32, 16},
    // What other blocks may look at is read and written whole.
    {"ld.volatile.global.u32 %r1, [%rd1];", "@sync_ld.global.u32.32", 1, kSync, 0},
    {"ld.relaxed.gpu.global.v2.u32 {%r1, %r2}, [%rd1];", "@sync_ld.global.u32.32", 2, kSync, 0},
    {"ld.acquire.sys.u64 %rd2, [%rd1];", "@sync_ld.generic.u64.64", 1, kSync, 0},
    {"ld.mmio.relaxed.sys.global.u32 %r1, [%rd1];", "@sync_ld.global.u32.32", 1, kSync, 0},
    {"st.release.gpu.global.u32 [%rd1], %r1;", "@sync_st.global.u32.32", 1, kSync, 0},
    {"st.volatile.u16 [%rd1], %r1;", "@sync_st.generic.u16.32", 1, kSync, 0},
    {"ld.weak.global.u32 %r1, [%rd1];", "@ld.global.u32.32", 1, 0, 0},
    // Memory of a block or of a thread is nobody else's.
    {"ld.volatile.shared.u32 %r1, [%r2];", "@ld.shared.u32.32", 1, kSync | kAddress32, 0},
    {"st.volatile.local.u32 [%rd1], %r1;", "@st.local.u32.32", 1, kSync, 0},
    {"atom.global.add.u32 %r1, [%rd1+4], 1;", "@atom.add.u32", kGlobalSpace, 0, 4},
    {"atom.add.u32 %r1, [%rd1], 1;", "@atom.add.u32", kGenericSpace, 0, 0},
    {"atom.shared.add.u32 %r1, [%r2], 1;", "@atom.add.u32", kSharedSpace, kAddress32, 0},
    {"red.shared.max.s64 [%rd1], 1;", "@atom.max.s64", kSharedSpace, 0, 0},
    {"cp.async.ca.shared.global [%r2+16], [%rd1], 8;", "@cp.async", 8, kAddress32, 16},
    {"cp.async.cg.shared.global [%rd2], [%rd1], 16;", "@cp.async", 16, 0, 0},
    {"mbarrier.init.shared.b64 [%r2+8], 1;", "@mbarrier.init", 2, kAddress32, 8},
    {"mbarrier.arrive.shared.b64 %rd2, [%rd1];", "@mbarrier.arrive", 2, 0, 0},
    {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2];", "@ldmatrix.x1", kSharedSpace, kAddress32, 0},
    {"ldmatrix.sync.aligned.m8n8.x2.trans.b16 {%r1, %r3}, [%rd1+32];", "@ldmatrix.trans.x2", kGenericSpace, 0, 32},
    {"wmma.load.a.sync.aligned.row.m8n8k32.shared.s4 {%r1}, [%r2];", "@wmma.load.a.m8n8k32.s4", kSharedSpace << 1,
     kAddress32, 0},
    {"wmma.load.b.sync.aligned.col.m8n8k32.s4 {%r1}, [%rd1];", "@wmma.load.b.m8n8k32.s4", kGenericSpace << 1 | 1, 0, 0},
    {"wmma.store.d.sync.aligned.col.m8n8k32.global.s32 [%rd1+4], {%r1, %r2};", "@wmma.store.d.m8n8k32.s32", 1, 0, 4},
};

TEST(SoftInstructions, HaveTheirRowAndWhatItIsTold) {
  const OpTable& table = OpTable::Of(BestIsa());
  for (const Case& c : kCases) {
    SoftMachine m;
    const Outcome loaded = m.LoadBody("", c.text);
    ASSERT_EQ(loaded.status, CuStatus::kSuccess) << c.text << "\n" << loaded.text;
    const OpRow* row = table.Find(c.row);
    ASSERT_NE(row, nullptr) << c.row;
    const Program& program = *static_cast<SoftModule&>(*m.module).program();
    int found = 0;
    for (const Inst& inst : program.code) {
      if (inst.fn != row->fn) continue;
      ++found;
      EXPECT_EQ(inst.aux, c.aux) << c.text;
      EXPECT_EQ(inst.flags, c.flags) << c.text;
      EXPECT_EQ(inst.imm, c.imm) << c.text;
    }
    EXPECT_EQ(found, 1) << c.text << " is no " << c.row;
  }
}

// What is wrapped is what would run alone, with its flags.
TEST(SoftInstructions, GuardsAndRoundingWrapWhatTheyRun) {
  struct Wrapped {
    const char* text;
    const char* row;
    bool wrapped;
    uint8_t aux;
    uint8_t flags;
  };
  const OpTable& table = OpTable::Of(BestIsa());
  for (const Wrapped& c : {Wrapped{"add.f32 %f1, %f2, %f3;", "add.f32", false, 0, 0},
                           {"add.ftz.sat.f32 %f1, %f2, %f3;", "add.f32", false, 0, kFtz | kSat},
                           {"add.rm.f32 %f1, %f2, %f3;", "add.f32", true, 1, 0},
                           {"add.rp.ftz.f32 %f1, %f2, %f3;", "add.f32", true, 2, kFtz},
                           {"add.rz.f32 %f1, %f2, %f3;", "add.f32", true, 3, 0},
                           {"@%p1 add.f32 %f1, %f2, %f3;", "add.f32", true, 0, 0},
                           {"@!%p1 add.f32 %f1, %f2, %f3;", "add.f32", true, 0, kGuardNegated},
                           {"@!%p1 ld.global.v2.u32 {%r1, %r2}, [%rd1];", "@ld.global.u32.32", true, 2, kGuardNegated},
                           {"@%p1 st.shared.u32 [%r1], %r2;", "@st.shared.u32.32", true, 1, kAddress32},
                           {"@%p1 add.rz.f32 %f1, %f2, %f3;", "add.f32", true, 3, 0}}) {
    SoftMachine m;
    ASSERT_EQ(m.LoadBody("", c.text).status, CuStatus::kSuccess) << c.text;
    const Handler runs = table.Find(c.row)->fn;
    int found = 0;
    for (const Inst& inst : static_cast<SoftModule&>(*m.module).program()->code) {
      if ((inst.inner != nullptr ? inst.inner : inst.fn) != runs) continue;
      ++found;
      EXPECT_EQ(inst.inner != nullptr, c.wrapped) << c.text;
      EXPECT_EQ(inst.aux, c.aux) << c.text;
      EXPECT_EQ(inst.flags, c.flags) << c.text;
    }
    EXPECT_EQ(found, 1) << c.text;
  }
}

}  // namespace
}  // namespace vgpud::soft
