// SPDX-License-Identifier: Apache-2.0
// Barriers of a block (PTX ISA, "bar"), warp by warp: who has arrived, who goes on, what a reduction delivers.
#include <gtest/gtest.h>

#include <cstring>
#include <string_view>

#include "gpu/soft/run/grid.h"

namespace vgpud::soft {
namespace {

using State = Split::State;

Handler RowOf(std::string_view name) {
  const OpRows rows = ControlRows();
  for (size_t n = 0; n < rows.count; ++n)
    if (rows.rows[n].name == name) return rows.rows[n].fn;
  ADD_FAILURE() << name;
  return nullptr;
}

// A block of three warps of 32 threads, whose code is one barrier after the other.
class Barriers : public testing::Test {
 protected:
  static constexpr uint32_t kResult = 0, kId = 128, kCount = 256, kPredicate = 384;
  Barriers() : code_(10), stacks_(3 * 4096) {
    cta.warps.resize(3);
    cta.live_threads = 96;
    for (size_t n = 0; n < 3; ++n) {
      Warp& w = cta.warps[n];
      w = Warp{};
      w.cta = &cta;
      w.stack = stacks_.data() + 4096 * n;
      w.base[kFrame] = w.stack;
      w.live = ~0u;
      w.mask = ~0u;
    }
  }
  // The instruction at `place`: without or with a result.
  void Make(size_t place, std::string_view name, bool reduces = false) {
    Inst& i = code_[place];
    i.fn = RowOf(name);
    const uint32_t plain[] = {kId, kCount, 0, 0};
    const uint32_t reducing[] = {kResult, kId, kCount, kPredicate};
    std::memcpy(i.offset, reduces ? reducing : plain, sizeof plain);
  }
  // Lanes `mask` of warp `n` come to the instruction at `place`; true: they go on at once.
  bool Come(size_t n, size_t place, uint32_t id, uint32_t threads = 0, uint32_t mask = ~0u, uint32_t predicate = 0) {
    Warp& w = cta.warps[n];
    w.mask = mask;
    w.limit = reinterpret_cast<const Inst*>(UINTPTR_MAX);
    for (uint32_t l = 0; l < kLanes; ++l) {
      std::memcpy(w.stack + kId + 4 * l, &id, 4);
      std::memcpy(w.stack + kCount + 4 * l, &threads, 4);
    }
    std::memcpy(w.stack + kPredicate, &predicate, 4);
    const Inst* const i = &code_[place];
    const Inst* const next = i->fn(w, i);
    EXPECT_EQ(next == i + 1, w.mask != 0);
    if (next == i + 1) return true;
    EXPECT_EQ(next, i);
    EXPECT_EQ(w.limit, nullptr);
    return false;
  }
  // Lanes of warp `n` that wait.
  uint32_t Waiting(size_t n) const {
    uint32_t lanes = 0;
    const Warp& w = cta.warps[n];
    for (uint32_t s = 0; s < w.split_count; ++s)
      if (w.splits[s].state == State::kBarrier) lanes |= w.splits[s].mask;
    return lanes;
  }
  // All lanes of warp `n` stand behind `place`, in one split.
  void ExpectOn(size_t n, size_t place, uint32_t lanes = ~0u) {
    ASSERT_EQ(cta.warps[n].split_count, 1u);
    const Split& split = cta.warps[n].splits[0];
    EXPECT_EQ(split.state, State::kRun);
    EXPECT_EQ(split.pc, &code_[place + 1]);
    EXPECT_EQ(split.mask, lanes);
  }
  uint32_t Word(size_t n, uint32_t lane) const {
    uint32_t word;
    std::memcpy(&word, cta.warps[n].stack + kResult + 4 * lane, 4);
    return word;
  }

  Cta cta;
  std::vector<Inst> code_;
  std::vector<std::byte> stacks_;
};

TEST_F(Barriers, AllLiveThreadsComeBeforeAnyGoesOn) {
  for (const uint32_t id : {0, 1, 15}) {
    for (Warp& w : cta.warps) w.split_count = 0;
    Make(3, "bar.sync");
    EXPECT_FALSE(Come(0, 3, id));
    EXPECT_FALSE(Come(1, 3, id));
    EXPECT_EQ(Waiting(0), ~0u);
    EXPECT_EQ(cta.barriers[id].arrived, 64u);
    EXPECT_FALSE(Come(2, 3, id));
    for (size_t n = 0; n < 3; ++n) ExpectOn(n, 3);
    EXPECT_EQ(cta.barriers[id].arrived, 0u) << "it can be used again";
  }
}

TEST_F(Barriers, LanesThatCameInPiecesGoOnTogether) {
  Make(3, "barrier.sync");
  Come(0, 3, 0, 0, 0x0000ffff);
  Come(0, 3, 0, 0, 0xff000000);
  Come(1, 3, 0);
  Come(2, 3, 0);
  EXPECT_EQ(Waiting(0), 0xff00ffffu);
  EXPECT_EQ(cta.warps[0].split_count, 2u);
  Come(0, 3, 0, 0, 0x00ff0000);
  ExpectOn(0, 3);
}

TEST_F(Barriers, PiecesOfDifferentCallsStayApart) {
  Make(3, "bar.sync");
  cta.live_threads = 32;
  cta.warps[0].local = 8;
  Come(0, 3, 0, 0, 0xf);
  cta.warps[0].local = 0;
  Come(0, 3, 0, 0, 0xf0);
  Come(0, 3, 0, 0, 0xffffff00);
  EXPECT_EQ(Waiting(0), 0u);
  EXPECT_EQ(cta.warps[0].split_count, 2u);
}

TEST_F(Barriers, PiecesThatWaitAtTheSamePlaceForDifferentBarriersStayApart) {
  Make(3, "bar.sync");
  Come(0, 3, 1, 64, 0xf);
  Come(0, 3, 2, 64, 0xf0);
  Come(1, 3, 0, 64);
  Come(2, 3, 0, 64);
  ExpectOn(1, 3);
  EXPECT_EQ(cta.warps[0].split_count, 2u);
  EXPECT_EQ(Waiting(0), 0xffu);
}

TEST_F(Barriers, OthersAtAnotherBarrierStay) {
  Make(3, "bar.sync");
  Make(5, "bar.sync");
  Come(0, 5, 1, 64);
  Come(1, 3, 0, 64);
  Come(2, 3, 0, 64);
  EXPECT_EQ(Waiting(0), ~0u);
  ExpectOn(1, 3);
  ExpectOn(2, 3);
  EXPECT_EQ(cta.barriers[1].arrived, 32u);
}

TEST_F(Barriers, WithACountAWarpStandsFor32Threads) {
  Make(3, "bar.sync");
  cta.warps[0].live = 0xff;
  Come(0, 3, 0, 64, 0xff);
  EXPECT_EQ(cta.barriers[0].arrived, 32u);
  EXPECT_EQ(cta.barriers[0].expected, 64u);
  Come(1, 3, 0, 64, 0xf);
  EXPECT_EQ(cta.barriers[0].arrived, 36u) << "a part of one for as many as there are";
  Come(1, 3, 0, 64, 0xfffffff0);
  EXPECT_EQ(Waiting(0), 0u);
  EXPECT_EQ(Waiting(1), 0u);
  EXPECT_EQ(cta.barriers[0].expected, 0u);
}

TEST_F(Barriers, WithoutACountThreadsAreCountedNotWarps) {
  Make(3, "bar.sync");
  cta.warps[0].live = 0xff;
  cta.live_threads = 72;
  Come(0, 3, 0, 0, 0xff);
  EXPECT_EQ(cta.barriers[0].arrived, 8u);
  Come(1, 3, 0);
  EXPECT_NE(Waiting(0), 0u);
  Come(2, 3, 0);
  EXPECT_EQ(Waiting(0), 0u);
}

TEST_F(Barriers, WhoOnlyArrivesGoesOnAtOnce) {
  Make(3, "bar.sync");
  Make(4, "bar.arrive");
  Make(5, "barrier.arrive");
  EXPECT_TRUE(Come(0, 4, 2, 96));
  EXPECT_FALSE(Come(1, 3, 2, 96));
  EXPECT_EQ(Waiting(1), ~0u);
  EXPECT_TRUE(Come(2, 5, 2, 96));
  ExpectOn(1, 3);
  EXPECT_EQ(cta.barriers[2].arrived, 0u);
}

TEST_F(Barriers, ThreadsThatExitAreNotWaitedFor) {
  Make(3, "bar.sync");
  Come(0, 3, 0);
  Come(1, 3, 0);
  Warp& last = cta.warps[2];
  last.mask = 0x0000ffff;
  EXPECT_EQ(OpExit(last, &code_[0]), &code_[0]);
  EXPECT_EQ(last.live, 0xffff0000u);
  EXPECT_EQ(last.mask, 0u);
  EXPECT_EQ(last.limit, nullptr);
  EXPECT_EQ(cta.live_threads, 80u);
  EXPECT_EQ(Waiting(0), ~0u);
  last.mask = 0xffff0000;
  OpExit(last, &code_[0]);
  EXPECT_EQ(cta.live_threads, 64u);
  ExpectOn(0, 3);
  ExpectOn(1, 3);
}

TEST_F(Barriers, AReductionCountsThePredicatesOfThoseThatCame) {
  struct Case {
    const char* name;
    uint32_t predicates[3];
    uint32_t popc;
    bool all, any;
  };
  const Case cases[] = {{"none", {0, 0, 0}, 0, false, false},
                        {"one", {0, 1u << 31, 0}, 1, false, true},
                        {"some", {0xff, 0xf0f, 3}, 18, false, true},
                        {"all but one", {~0u, ~0u, ~1u}, 95, false, true},
                        {"all", {~0u, ~0u, ~0u}, 96, true, true}};
  for (const char* family : {"bar", "barrier"})
    for (const Case& c : cases) {
      const std::string prefix = std::string(family) + ".red.";
      for (Warp& w : cta.warps) w.split_count = 0;
      Make(3, prefix + "popc.u32", true);
      for (size_t n = 0; n < 3; ++n) Come(n, 3, 1, 0, ~0u, c.predicates[n]);
      for (size_t n = 0; n < 3; ++n) {
        ExpectOn(n, 3);
        for (uint32_t l = 0; l < kLanes; ++l) EXPECT_EQ(Word(n, l), c.popc) << c.name;
      }
      for (const auto& [kind, value] : {std::pair("and.pred", c.all), {"or.pred", c.any}}) {
        for (Warp& w : cta.warps) w.split_count = 0;
        Make(3, prefix + kind, true);
        // Threads of the other half of the first warp have exited: their bits stay what they are.
        cta.warps[0].live = 0xffff;
        cta.live_threads = 80;
        const uint32_t before = 0xaaaa5555;
        std::memcpy(cta.warps[0].stack, &before, 4);
        for (size_t n = 0; n < 3; ++n) Come(n, 3, 1, 0, n == 0 ? 0xffff : ~0u, n == 0 && !c.all ? 0 : c.predicates[n]);
        const bool any = kind[0] == 'o' && !c.all ? (c.predicates[1] | c.predicates[2]) != 0 : value;
        EXPECT_EQ(Word(0, 0), any ? 0xaaaaffffu : 0xaaaa0000u) << c.name << kind;
        EXPECT_EQ(Word(1, 0), any ? ~0u : 0u) << c.name << kind;
        cta.warps[0].live = ~0u;
        cta.live_threads = 96;
      }
    }
}

TEST_F(Barriers, OnlyWhatWaitsIsAPlaceToWait) {
  const std::pair<const char*, bool> rows[] = {
      {"bar.sync", true},         {"barrier.sync", true},     {"bar.arrive", false},     {"barrier.arrive", false},
      {"bar.red.popc.u32", true}, {"bar.red.and.pred", true}, {"bar.red.or.pred", true}, {"exit", false},
      {"membar.gl", false},       {"nanosleep.u32", false}};
  for (const auto& [name, waits] : rows) {
    Make(0, name);
    EXPECT_EQ(WaitsAtBarrier(&code_[0]), waits) << name;
  }
}

TEST_F(Barriers, NanosleepGivesTheTurnAwayAndHintsDoNothing) {
  Warp& w = cta.warps[0];
  for (const char* name : {"pmevent", "griddepcontrol.launch_dependents", "griddepcontrol.wait", "prefetch",
                           "prefetchu", "discard", "applypriority"}) {
    Make(2, name);
    w.limit = &code_[9];
    EXPECT_EQ(code_[2].fn(w, &code_[2]), &code_[3]) << name;
    EXPECT_EQ(w.limit, &code_[9]);
    EXPECT_FALSE(w.yielded || w.sync_seen);
    EXPECT_EQ(w.mask, ~0u);
  }
  for (const char* name : {"membar.cta", "membar.gl", "membar.sys", "fence"}) {
    Make(2, name);
    w.last_poll = nullptr;
    EXPECT_EQ(code_[2].fn(w, &code_[2]), &code_[3]) << name;
    EXPECT_EQ(w.last_poll, &code_[2]) << "a loop around it may wait for somebody";
  }
  Make(2, "nanosleep.u32");
  EXPECT_EQ(code_[2].fn(w, &code_[2]), &code_[3]);
  EXPECT_TRUE(w.yielded && w.sync_seen);
  EXPECT_EQ(w.limit, nullptr);
}

}  // namespace
}  // namespace vgpud::soft
