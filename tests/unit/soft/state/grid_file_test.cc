// SPDX-License-Identifier: Apache-2.0
// A running grid in a file, field by field (docs/saved-context.md): what each may say, and what it is refused with.
#include <gmock/gmock.h>

#include <map>

#include "gpu/soft/run/grid.h"
#include "tests/unit/soft/rig/soft_fixture.h"
#include "tests/unit/soft/rig/state_fields.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;
using Bytes = std::vector<std::byte>;

// Lanes below 16 of each warp count in a function, the others wait for them at a barrier.
constexpr const char* kPtx = R"(.version 7.8
.target sm_75
.address_size 64
.func unused() { .reg .b32 %a<9>; mov.u32 %a1, 1; ret; }
.func count(.param .b32 n) {
  .local .align 8 .b8 m[8]; .reg .b32 %a<9>; .reg .b64 %b<3>; .reg .pred %q<2>;
  mov.u64 %b1, m; ld.param.u32 %a1, [n]; mov.u32 %a2, 0;
  L: add.u32 %a2, %a2, 1; st.local.u32 [%b1], %a2; setp.lt.u32 %q1, %a2, %a1; @%q1 bra L;
  ret;
}
.visible .entry k(.param .u64 out) {
  .local .align 8 .b8 m[16]; .shared .align 4 .b8 s[64]; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [out]; mov.u64 %rd2, m; st.local.u32 [%rd2], 5; mov.u32 %r1, %tid.x; and.b32 %r1, %r1, 31;
  st.shared.u32 [s], %r1; setp.lt.u32 %p1, %r1, 16; @%p1 bra CALL;
  bar.sync 0; bra END;
  CALL: { .param .b32 p0; st.param.b32 [p0], 1000; call.uni count, (p0); }
  bar.sync 0;
  END: ret;
})";

constexpr uint64_t kNone = UINT64_MAX;

class GridFile : public testing::Test {
 protected:
  GridFile() {
    Start(m_);
    EXPECT_TRUE(grid_->Run({&m_.word, 0}, 60));
    bytes_ = Written([&](StateWriter& out) { grid_->Save(out); });
    Walk();
  }
  void Start(SoftMachine& m) {
    const Outcome loaded = m.Load(kPtx);
    ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
    launched_.push_back(m.Launch("k", {{3, 1, 1}, {40, 1, 1}, 0}, Params().Add(m.Alloc(4096))));
    grid_ = dynamic_cast<Grid*>(launched_.back().get());
    ASSERT_NE(grid_, nullptr);
  }
  // Where each field is, with its size. The first grid of the test.
  void Walk() {
    at_ = 0;
    for (const char* name : {"next", "sets", "executed", "current"}) Field(name, 8);
    Field("warp", 4);
    Field("resident", 8);
    Field("id", 8);
    Field("cursor", 4);
    Field("slice", 8);
    for (int n = 0; n < 64; ++n) Field("barrier." + std::to_string(n), 4);
    Sparse(grid_->facts().layout.shared, nullptr);
    for (const char* warp : {"w0.", "w1."}) WalkWarp(warp);
    EXPECT_EQ((at_ + 7) / 8 * 8, bytes_.size());
  }
  void WalkWarp(const std::string& warp) {
    Field(warp + "live", 4);
    Field(warp + "at_cluster", 4);
    Field(warp + "has", 1);
    if (Value(warp + "has") != 0) {
      WalkSplit(warp + "now.");
      Field(warp + "limit", 4);
    }
    for (const char* name : {"force", "yielded", "seen"}) Field(warp + name, 1);
    for (const char* name : {"fairness", "polls", "poll"}) Field(warp + name, 4);
    Field(warp + "selections", 8);
    Field(warp + "slice", 8);
    Field(warp + "splits", 4);
    for (uint64_t n = 0; n < Value(warp + "splits"); ++n) WalkSplit(warp + std::to_string(n) + ".");
    Sparse(grid_->facts().layout.stack, warp == "w0." ? &stack_ : nullptr);
    Sparse(size_t{grid_->facts().function.local_total} * kLanes, nullptr);
  }
  void WalkSplit(const std::string& split) {
    for (const char* name : {"pc", "mask", "frame", "local"}) Field(split + name, 4);
    for (const char* name : {"state", "forced", "barrier"}) Field(split + name, 1);
    Field(split + "need", 4);
    Field(split + "last", 8);
  }
  void Field(const std::string& name, size_t size) {
    fields_[name] = {at_, size};
    at_ += size;
  }
  void Sparse(size_t bytes, std::map<uint64_t, size_t>* pages) {
    for (;;) {
      uint64_t page = kNone;
      std::memcpy(&page, &bytes_.at(at_), 8);
      at_ += 8;
      if (page == kNone) return;
      if (pages != nullptr) (*pages)[page] = at_;
      at_ += std::min<size_t>(4096, bytes - page * 4096);
    }
  }
  uint64_t Value(const std::string& name) const {
    uint64_t value = 0;
    const auto& [at, size] = fields_.at(name);
    std::memcpy(&value, &bytes_.at(at), size);
    return value;
  }
  struct Change {
    std::string field;
    uint64_t value;
  };
  // "": it is read.
  std::string With(const std::vector<Change>& changes) {
    Bytes bytes = bytes_;
    for (const Change& change : changes) {
      const auto& [at, size] = fields_.at(change.field);
      std::memcpy(&bytes[at], &change.value, size);
    }
    return Read(bytes);
  }
  // A word of the first warp's stack.
  std::string WithStack(uint64_t offset, uint32_t value) {
    Bytes bytes = bytes_;
    std::memcpy(&bytes[stack_.at(offset / 4096) + offset % 4096], &value, 4);
    return Read(bytes);
  }
  // `again`: what the grid that was read writes.
  std::string Read(const Bytes& bytes, Bytes* again = nullptr) {
    SoftMachine other;
    Grid* const kept = grid_;
    Start(other);
    const GpuError error = ErrorOfReading(bytes, [&](StateReader& in) { grid_->Load(in); });
    if (again != nullptr) *again = Written([&](StateWriter& out) { grid_->Save(out); });
    launched_.pop_back();
    grid_ = kept;
    return error.text;
  }

  SoftMachine m_;
  std::vector<std::unique_ptr<GpuGrid>> launched_;
  Grid* grid_ = nullptr;
  Bytes bytes_;
  size_t at_ = 0;
  std::map<std::string, std::pair<size_t, size_t>> fields_;
  std::map<uint64_t, size_t> stack_;  // page -> place in the file
};

TEST_F(GridFile, IsWhatTheGridIs) {
  EXPECT_EQ(Value("next"), 1u);
  EXPECT_EQ(Value("sets"), 1u);
  EXPECT_EQ(Value("executed"), 60u);
  EXPECT_EQ(Value("resident"), 1u);
  EXPECT_EQ(Value("warp"), 1u);
  EXPECT_EQ(Value("slice"), 65536u - 60);
  EXPECT_EQ(Value("barrier.0"), 16u) << "arrived";
  EXPECT_EQ(Value("w0.live"), 0xffffffffu);
  EXPECT_EQ(Value("w0.now.mask"), 0xffffu);
  EXPECT_GT(Value("w0.now.frame"), 0u);
  EXPECT_EQ(Value("w0.now.local"), 16u);
  EXPECT_EQ(Value("w0.splits"), 1u);
  EXPECT_EQ(Value("w0.0.mask"), 0xffff0000u);
  EXPECT_EQ(Value("w0.0.state"), 1u);
  EXPECT_EQ(Value("w0.slice"), 4096u - 60);
  EXPECT_EQ(Value("w1.live"), 0xffu);
  EXPECT_EQ(Value("w1.now.mask"), 0xffu);
  EXPECT_EQ(Value("w1.slice"), 4096u);
  EXPECT_EQ(Read(bytes_), "");
}

TEST_F(GridFile, CountsAndTurnsHaveLimits) {
  const uint64_t size = grid_->program().code.size();
  struct Case {
    std::vector<Change> changes;
    const char* text;
  };
  const Case cases[] = {
      {{{"next", 3}}, ""},
      {{{"next", 4}}, "bad number of started blocks (0x4)"},
      {{{"next", 0}}, "bad block (0x0)"},
      {{{"sets", 0}}, "bad number of sets of blocks (0x0)"},
      {{{"sets", 257}}, "bad number of sets of blocks (0x101)"},
      {{{"sets", 2}}, "it ends"},
      {{{"current", 1}}, "bad current block (0x1)"},
      {{{"warp", 0}}, ""},
      {{{"warp", 2}}, ""},
      {{{"warp", 3}}, "bad current warp (0x3)"},
      {{{"resident", 16}}, "it ends"},
      {{{"resident", 17}}, "bad number of resident blocks (0x11)"},
      {{{"resident", 0}}, "bad current block (0x0)"},
      {{{"resident", 0}, {"warp", 0}}, ""},
      {{{"resident", 0}, {"warp", 0}, {"current", 1}}, "bad current block (0x1)"},
      {{{"id", 1}}, "bad block (0x1)"},
      {{{"id", 1}, {"next", 2}}, ""},
      {{{"cursor", 1}}, ""},
      {{{"cursor", 2}}, "bad warp of a block (0x2)"},
      {{{"slice", 0}}, ""},
      {{{"slice", 65536}}, ""},
      {{{"slice", 65537}}, "bad slice of a block (0x10001)"},
      {{{"barrier.63", 0xffffffff}}, ""},
      {{{"w0.has", 2}}, "bad current split (0x2)"},
      {{{"w0.force", 2}}, "bad warp state (0x2)"},
      {{{"w0.yielded", 2}}, "bad warp state (0x2)"},
      {{{"w0.seen", 2}}, "bad warp state (0x2)"},
      {{{"w0.limit", 0}}, ""},
      {{{"w0.limit", size}}, ""},
      {{{"w0.limit", size + 1}}, ""},
      {{{"w0.limit", size + 2}}, "bad end of a split"},
      {{{"w0.poll", size}}, ""},
      {{{"w0.poll", size + 1}}, "bad program counter"},
      {{{"w0.fairness", 0xffffffff}, {"w0.polls", 0xffffffff}, {"w0.selections", kNone}}, ""},
      {{{"w0.slice", 0}}, "bad slice of a warp (0x0)"},
      {{{"w0.slice", 1}}, ""},
      {{{"w0.slice", 4096}}, ""},
      {{{"w0.slice", 4097}}, "bad slice of a warp (0x1001)"},
      {{{"w0.splits", 33}}, "bad number of splits (0x21)"},
      {{{"w1.splits", 33}}, "bad number of splits (0x21)"},
  };
  for (const Case& c : cases) {
    const std::string text = With(c.changes);
    const std::string what = c.changes[0].field + " = " + std::to_string(c.changes[0].value);
    if (*c.text == '\0') {
      EXPECT_EQ(text, "") << what;
    } else {
      EXPECT_THAT(text, HasSubstr(c.text)) << what;
    }
  }
}

TEST_F(GridFile, EveryLiveLaneIsInOneSplit) {
  const uint64_t at_barrier = Value("w0.0.pc");
  const uint64_t entry = Value("w1.now.pc");
  struct Case {
    std::vector<Change> changes;
    const char* text;
  };
  const Case cases[] = {
      {{{"w0.live", 0xfffffffe}}, "bad lanes of a warp (0xfffffffe)"},
      {{{"w0.now.mask", 0xfffe}}, "bad lanes of a warp"},
      {{{"w0.now.mask", 0xfffe}, {"w0.live", 0xfffffffe}}, ""},
      {{{"w0.now.mask", 0x1ffff}}, "bad lanes of a warp"},
      {{{"w0.0.mask", 0xffff8000}}, "bad lanes of a warp"},
      {{{"w0.now.mask", 0}}, "bad lanes of a split (0x0)"},
      {{{"w0.0.mask", 0}}, "bad lanes of a split (0x0)"},
      {{{"w1.live", 0x1ff}, {"w1.now.mask", 0x1ff}}, "bad lanes of a warp (0x1ff)"},
      {{{"w1.live", 0x7f}, {"w1.now.mask", 0x7f}}, ""},
      {{{"w0.0.state", 4}}, "bad state of a split (0x4)"},
      {{{"w0.0.state", 3}}, "bad place of a barrier of a cluster"},
      {{{"w0.at_cluster", 0xffffffff}}, ""},
      {{{"w1.at_cluster", 0xffffffff}}, "bad lanes at the barrier of a cluster"},
      {{{"w0.0.state", 2}, {"w0.0.need", 0xffffffff}}, ""},
      {{{"w0.0.state", 0}}, ""},
      {{{"w0.0.forced", 1}}, ""},
      {{{"w0.0.forced", 2}}, "bad state of a split (0x2)"},
      {{{"w0.0.barrier", 15}}, ""},
      {{{"w0.0.barrier", 16}}, "bad barrier (0x10)"},
      {{{"w0.0.pc", entry}}, "bad place of a barrier"},
      {{{"w0.0.pc", entry}, {"w0.0.state", 0}}, ""},
      {{{"w1.now.state", 1}}, "bad place of a barrier"},
      {{{"w1.now.state", 1}, {"w1.now.pc", at_barrier}}, ""},
      {{{"w0.0.last", kNone}}, ""},
  };
  for (const Case& c : cases) {
    const std::string text = With(c.changes);
    const std::string what = c.changes[0].field + " = " + std::to_string(c.changes[0].value);
    if (*c.text == '\0') {
      EXPECT_EQ(text, "") << what;
    } else {
      EXPECT_THAT(text, HasSubstr(c.text)) << what;
    }
  }
}

TEST_F(GridFile, WhatIsReadIsWrittenTheSame) {
  const uint64_t size = grid_->program().code.size();
  const std::vector<Change> all[] = {
      {},
      {{"executed", 12345}, {"warp", 0}, {"cursor", 1}, {"slice", 77}, {"next", 3}, {"id", 2}},
      {{"w0.poll", 1}, {"w0.polls", 31}, {"w0.fairness", 9}, {"w0.selections", 1234}, {"w0.slice", 55}},
      {{"w0.poll", size}, {"w0.limit", size}, {"w1.poll", 7}, {"w1.limit", 1}, {"w1.slice", 3}},
      {{"w0.limit", 0}, {"w0.force", 1}, {"w1.yielded", 1}, {"w1.seen", 1}},
      {{"w0.0.forced", 1}, {"w0.0.barrier", 9}, {"w0.0.need", 17}, {"w0.0.last", 99}, {"w0.0.local", 0}},
      {{"barrier.0", 1}, {"barrier.1", 64}, {"barrier.2", 3}, {"barrier.3", 4}, {"barrier.62", 5}, {"barrier.63", 6}},
  };
  for (size_t n = 0; n < std::size(all); ++n) {
    Bytes bytes = bytes_, again;
    for (const Change& change : all[n]) {
      const auto& [at, bytes_of_field] = fields_.at(change.field);
      std::memcpy(&bytes[at], &change.value, bytes_of_field);
    }
    EXPECT_EQ(Read(bytes, &again), "") << n;
    EXPECT_EQ(again, bytes) << n;
  }
}

TEST_F(GridFile, CallsLeadBackToTheKernel) {
  const Program& program = grid_->program();
  const uint64_t frame = Value("w0.now.frame");
  const uint64_t in_count = Value("w0.now.pc");
  const uint64_t entry = Value("w1.now.pc");
  const uint64_t unused = program.functions[*program.FindFunction("unused")]->entry;
  const CodeFunction& count = *program.functions[*program.FindFunction("count")];
  const uint64_t stack = grid_->facts().layout.stack;
  const uint64_t last_frame = (stack - count.frame_bytes) / 64 * 64;
  struct Case {
    std::vector<Change> changes;
    const char* text;
  };
  const Case cases[] = {
      {{{"w0.now.pc", program.code.size()}}, "bad program counter"},
      {{{"w0.now.frame", frame + 1}}, "bad depth of a call"},
      {{{"w0.now.frame", frame + 32}}, "bad depth of a call"},
      {{{"w0.now.frame", last_frame + 64}}, "bad depth of a call"},
      {{{"w0.now.frame", 0}}, "bad function of a call"},
      {{{"w0.now.local", 15}}, "bad frame of a caller"},
      {{{"w0.now.local", 17}}, "bad depth of a call"},
      {{{"w0.now.pc", unused}}, "bad function of a call"},
      {{{"w0.now.pc", count.entry}}, ""},
      {{{"w1.now.pc", in_count}}, "bad function of a call"},
      {{{"w0.0.local", 16}}, "bad frame of a kernel (0x0)"},
      {{{"w0.0.local", 17}}, "bad depth of a call"},
      {{{"w1.now.local", 4}}, "bad frame of a kernel"},
      {{{"w1.now.frame", 64}}, "bad"},
      {{{"w0.now.pc", entry}}, "bad"},
  };
  for (const Case& c : cases) {
    const std::string text = With(c.changes);
    const std::string what = c.changes[0].field + " = " + std::to_string(c.changes[0].value);
    if (*c.text == '\0') {
      EXPECT_EQ(text, "") << what;
    } else {
      EXPECT_THAT(text, HasSubstr(c.text)) << what;
    }
  }
}

TEST_F(GridFile, EachLaneReturnsBehindACallOfItsFunction) {
  const uint64_t frame = Value("w0.now.frame");
  const auto call = [&](uint32_t lane) { return frame + 4 * lane; };
  const auto previous_frame = [&](uint32_t lane) { return frame + 128 + 4 * lane; };
  const auto previous_local = [&](uint32_t lane) { return frame + 256 + 4 * lane; };
  const auto size = static_cast<uint32_t>(grid_->program().code.size());
  const auto entry = static_cast<uint32_t>(Value("w1.now.pc"));
  for (const uint32_t lane : {0u, 7u, 15u}) {
    for (const uint32_t pc : {0u, entry, entry + 1, size, size + 1, 0xffffffffu})
      EXPECT_THAT(WithStack(call(lane), pc), HasSubstr("bad return address")) << lane << ", " << pc;
    EXPECT_THAT(WithStack(previous_frame(lane), 64), HasSubstr("bad frame of a caller"));
    EXPECT_THAT(WithStack(previous_local(lane), 4), HasSubstr("bad frame of a caller"));
  }
  for (const uint64_t place : {call(16), previous_frame(16), previous_local(31)})
    EXPECT_EQ(WithStack(place, 0xffffffff), "") << "of a lane that is elsewhere";
}

// Blocks of 1024 threads with 256 KiB each.
TEST(GridFileOfLargeBlocks, TheirStateTakesAtMost4GiB) {
  SoftMachine m;
  ASSERT_EQ(m.LoadBody("", ".local .align 4 .b8 mem[262144]; mov.u64 %rd1, mem; st.local.u32 [%rd1], 1;").status,
            CuStatus::kSuccess);
  const auto read = [&](uint64_t resident) {
    const auto grid = m.Launch("k", {{40, 1, 1}, {1024, 1, 1}, 0}, Params());
    const auto fields = StateFields().U64(16).U64(1).U64(0).U64(0).U32(0).U64(resident);
    return ErrorOfReading(fields.bytes(), [&](StateReader& in) { dynamic_cast<Grid&>(*grid).Load(in); }).text;
  };
  EXPECT_THAT(read(15), HasSubstr("it ends"));
  EXPECT_THAT(read(16), HasSubstr("bad number of resident blocks (0x10)"));
}

}  // namespace
}  // namespace vgpud::soft
