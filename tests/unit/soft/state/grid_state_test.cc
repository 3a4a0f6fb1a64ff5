// SPDX-License-Identifier: Apache-2.0
// Running grids, written out at any instruction and read back elsewhere: they go on as if nothing had happened.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <random>

#include "tests/unit/soft/state/saved_context.h"
#include "tests/unit/soft/state/soft_works.h"
#include "tests/unit/soft/state/state_process.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;

class SoftGridState : public testing::TestWithParam<const WorkRow*> {};

// Through a chain of machines, each of another instruction set, cut at random.
TEST_P(SoftGridState, GoesOnWhereItWasOnAnyInstructionSet) {
  const WorkRow& row = *GetParam();
  uint64_t whole = 0;
  const uint64_t answer = Undisturbed(row, BestIsa(), &whole);
  const std::vector<Isa> isas = AvailableIsas();
  std::mt19937 random(std::hash<std::string>()(row.name) % 1000);
  for (int round = 0; round < 6; ++round) {
    auto m = std::make_unique<SoftMachine>(isas[random() % isas.size()]);
    Work work = row.make(*m);
    for (int cut = 0;; ++cut) {
      const uint64_t most = round == 0 ? 1 + random() % 40 : 1 + random() % (whole / 4 + 1);
      const bool last = cut == 12;
      const auto progress = RunFor(*m, *work.grid, last ? UINT64_MAX : most);
      const auto saved = SaveAll(*m, {work.grid.get()});
      ASSERT_TRUE(saved) << saved.error().text;
      auto next = std::make_unique<SoftMachine>(isas[random() % isas.size()]);
      auto restored = RestoreAll(*next, *saved);
      ASSERT_TRUE(restored) << row.name << " cut " << cut << ": " << restored.error().text;
      ASSERT_EQ(restored->size(), 1u);
      ASSERT_EQ((*restored)[0]->warp_instructions(), work.grid->warp_instructions());
      // What is read back is what was saved.
      const auto again = SaveAll(*next, {(*restored)[0].get()});
      ASSERT_TRUE(again) << again.error().text;
      ASSERT_EQ(again->size(), saved->size());
      work.grid = std::move((*restored)[0]);
      m = std::move(next);
      if (progress == GpuGrid::Progress::kDone) break;
    }
    EXPECT_EQ(work.grid->warp_instructions(), whole) << "other turns than without cuts";
    work.grid.reset();
    EXPECT_EQ(Answer(*m, work), answer);
  }
}

// One process runs a part and ends; another one, which has never seen the kernel, finishes it.
TEST_P(SoftGridState, GoesOnInAnotherProcess) {
  const WorkRow& row = *GetParam();
  uint64_t whole = 0;
  const uint64_t answer = Undisturbed(row, BestIsa(), &whole);
  const std::string file = testing::TempDir() + "context-" + row.name + "-" + std::to_string(::getpid());
  std::mt19937 random(11);
  const std::vector<Isa> isas = AvailableIsas();
  for (int round = 0; round < 4; ++round) {
    const std::string writer = NameOf(isas[random() % isas.size()]);
    const std::string reader = NameOf(isas[random() % isas.size()]);
    const std::string cut = std::to_string(random() % whole);
    StateHelper({"save", writer, "1", row.name, cut, file});
    EXPECT_EQ(StateHelper({"finish", reader, "1", row.name, file}),
              std::to_string(answer) + " " + std::to_string(whole) + "\n")
        << "cut after " << cut << " of " << whole << ", " << writer << " to " << reader;
  }
  std::filesystem::remove(file);
}

TEST(SoftGridStateFile, SeveralGridsOfSeveralModulesComeBackInTheirOrder) {
  SoftMachine m;
  Work first = FindWork("matmul").make(m);
  const std::unique_ptr<GpuModule> first_module = std::move(m.module);
  Work second = FindWork("collatz").make(m);
  RunFor(m, *first.grid, 5000);
  RunFor(m, *second.grid, 7000);
  GpuModule* const modules[] = {m.module.get(), first_module.get()};
  GpuGrid* const grids[] = {second.grid.get(), first.grid.get()};
  Bytes bytes;
  ASSERT_TRUE(m.gpu.Save(
      [&](std::span<const std::byte> piece) -> GpuResult<void> {
        bytes.insert(bytes.end(), piece.begin(), piece.end());
        return {};
      },
      modules, grids));
  SoftMachine other;
  std::span<const std::byte> rest = bytes;
  auto restored = other.gpu.Restore([&](std::span<std::byte> out) -> GpuResult<size_t> {
    const size_t part = std::min(out.size(), rest.size());
    std::copy_n(rest.begin(), part, out.begin());
    rest = rest.subspan(part);
    return part;
  });
  ASSERT_TRUE(restored) << restored.error().text;
  ASSERT_EQ(restored->modules.size(), 2u);
  EXPECT_NE(restored->modules[0]->Function("collatz"), nullptr);
  EXPECT_NE(restored->modules[1]->Function("matmul"), nullptr);
  ASSERT_EQ(restored->grids.size(), 2u);
  EXPECT_EQ(restored->grids[0]->warp_instructions(), 7000u);
  for (auto& grid : restored->grids) EXPECT_EQ(other.Finish(*grid).status, CuStatus::kSuccess);
  m.Finish(*first.grid);
  m.Finish(*second.grid);
  EXPECT_EQ(Answer(other, first), Answer(m, first));
  EXPECT_EQ(Answer(other, second), Answer(m, second));
}

// Blocks that several threads have taken over come back whatever the number of threads is there.
TEST(SoftGridStateFile, AGridOfSeveralThreadsGoesOnWithAnotherNumberOfThem) {
  for (const char* name : {"collatz", "cooperative", "locks"}) {
    const WorkRow& row = FindWork(name);
    uint64_t whole = 0;
    const uint64_t answer = Undisturbed(row, BestIsa(), &whole);
    uint32_t threads = 3;
    auto m = std::make_unique<SoftMachine>(BestIsa(), 64 << 20, threads);
    Work work = row.make(*m);
    // Beyond what one thread does alone at first.
    RunFor(*m, *work.grid, whole / 2);
    for (int cut = 0; cut < 6; ++cut) {
      RunFor(*m, *work.grid, 2500);
      const auto saved = SaveAll(*m, {work.grid.get()});
      ASSERT_TRUE(saved) << saved.error().text;
      threads = 1 + (threads + 1) % 4;
      auto next = std::make_unique<SoftMachine>(BestIsa(), 64 << 20, threads);
      auto restored = RestoreAll(*next, *saved);
      ASSERT_TRUE(restored) << name << ": " << restored.error().text;
      ASSERT_EQ((*restored)[0]->warp_instructions(), work.grid->warp_instructions());
      work.grid = std::move((*restored)[0]);
      m = std::move(next);
    }
    EXPECT_EQ(m->Finish(*work.grid).status, CuStatus::kSuccess);
    EXPECT_EQ(Answer(*m, work), answer) << name;
  }
}

TEST(SoftGridStateFile, AGridThatFailedIsNotSaved) {
  SoftMachine m;
  ASSERT_EQ(m.LoadBody("", "trap;").status, CuStatus::kSuccess);
  const auto grid = m.Launch("k", {{1, 1, 1}, {32, 1, 1}, 0}, Params());
  EXPECT_FALSE(grid->Run({&m.word, 0}, 100));
  const auto saved = SaveAll(m, {grid.get()});
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().status, CuStatus::kInvalidValue);
}

// A kernel that measures time sees it go on, whatever the clock of the reading host says.
TEST(SoftGridStateFile, TheClockGoesOn) {
  SoftMachine m;
  ASSERT_EQ(m.LoadBody(".param .u64 out", R"(
    ld.param.u64 %rd1, [out]; mov.u64 %rd2, %clock64; bar.sync 0; bar.sync 0; mov.u64 %rd3, %clock64;
    st.global.v2.u64 [%rd1], {%rd2, %rd3};)")
                .status,
            CuStatus::kSuccess);
  const GpuVa out = m.Alloc(16);
  const auto grid = m.Launch("k", {{1, 1, 1}, {32, 1, 1}, 0}, Params().Add(out));
  RunFor(m, *grid, 3);
  auto saved = SaveAll(m, {grid.get()});
  ASSERT_TRUE(saved);
  // As if the saving host had been up for ten days longer than this one.
  uint64_t clock = 0;
  std::memcpy(&clock, saved->data() + 16, sizeof clock);
  clock += uint64_t{10} * 24 * 3600 * 1'000'000'000;
  std::memcpy(saved->data() + 16, &clock, sizeof clock);
  Seal(*saved);
  SoftMachine other;
  auto restored = RestoreAll(other, *saved);
  ASSERT_TRUE(restored) << restored.error().text;
  ASSERT_EQ(other.Finish(*(*restored)[0]).status, CuStatus::kSuccess);
  EXPECT_GE(other.Download<uint64_t>(out, 2)[1], clock);
}

Bytes SavedInTheMiddle(const WorkRow& row, uint64_t part) {
  uint64_t whole = 0;
  Undisturbed(row, Isa::kSse4, &whole);
  SoftMachine m(Isa::kSse4);
  const Work work = row.make(m);
  RunFor(m, *work.grid, whole * part / 8);
  const auto saved = SaveAll(m, {work.grid.get()});
  EXPECT_TRUE(saved) << (saved ? "" : saved.error().text);
  return saved ? *saved : Bytes{};
}

TEST(SoftGridStateFile, TruncationsAreRefused) {
  const Bytes saved = SavedInTheMiddle(FindWork("recursion"), 4);
  for (size_t length = 0; length < saved.size(); length += length % 41 + 1) {
    SoftMachine other(Isa::kSse4);
    const auto restored = RestoreAll(other, std::span(saved).first(length));
    ASSERT_FALSE(restored) << length << " of " << saved.size();
  }
}

// Whatever a file says: it is refused, or what it describes runs, to its end, into a fault, or on and on, without
// touching what is not its own (the sanitizers look).
class SoftGridStateHostile : public testing::TestWithParam<const char*> {};

// A sanitizer makes each round some fifty times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kRounds = 25;
#else
constexpr int kRounds = 500;
#endif

TEST_P(SoftGridStateHostile, MutatedBytesAreRefusedOrRunInsideTheirContext) {
  std::mt19937 random(5);
  int refused = 0;
  int ran = 0;
  for (const uint64_t part : {1, 3, 6}) {
    const Bytes saved = SavedInTheMiddle(FindWork(GetParam()), part);
    for (int round = 0; round < kRounds; ++round) {
      Bytes bytes = saved;
      MutateState(bytes, 0, bytes.size() - 8, random);
      SoftMachine other(Isa::kSse4);
      auto restored = RestoreAll(other, bytes);
      if (!restored) {
        ++refused;
        continue;
      }
      ++ran;
      RunDamaged(other, *restored);
      restored->clear();
      other.module.reset();
    }
  }
  EXPECT_GT(refused, kRounds / 50 - 1);
  EXPECT_GT(ran, kRounds / 50);
}

INSTANTIATE_TEST_SUITE_P(, SoftGridStateHostile,
                         testing::Values("recursion", "functions", "barriers", "textures", "collatz", "cooperative",
                                         "malloc", "family", "family_of_blocks"),
                         [](const auto& p) { return std::string(p.param); });

INSTANTIATE_TEST_SUITE_P(, SoftGridState, testing::ValuesIn([] {
                           std::vector<const WorkRow*> rows;
                           for (const WorkRow& row : Works()) rows.push_back(&row);
                           return rows;
                         }()),
                         [](const auto& p) { return std::string(p.param->name); });

}  // namespace
}  // namespace vgpud::soft
