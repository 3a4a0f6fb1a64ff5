// SPDX-License-Identifier: Apache-2.0
// Damaged PTX and fatbins through the whole loader: what it takes is decoded and each kernel runs for a while. There
// may be errors and faults, nothing else; meant for the sanitizers. Time is bounded by counts: texts have their sizes,
// kernels a budget of warp instructions.
//
// VGPUD_MUTATIONS=N (default 3000): how many of each kind; VGPUD_MUTATION_SEED=S: the first seed, each case has its own
// and a failure names it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <iterator>

#include "tests/unit/soft/rig/mutation_seeds.h"
#include "tests/unit/soft/rig/ptx_mutator.h"
#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

constexpr uint64_t kMaxInstructions = 3000;  // of one kernel
constexpr uint64_t kVram = 8 << 20;
// There is nothing that it refuses for its target.
constexpr const ComputeCapability& kHighest = std::end(kComputeCapabilities)[-1];
constexpr uint32_t kImageOneIn = 8;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::vector<std::string> Seeds() {
  std::vector<std::string> texts = TextsIn(TEST_PTX_DIR);
  for (std::string& text : TextsIn(TEST_SEED_DIR)) texts.push_back(std::move(text));
  return texts;
}
std::vector<std::vector<std::string>> SeedPrograms() { return ProgramsIn(TEST_SEED_DIR "/parts"); }

std::vector<const FunctionInfo*> KernelsOf(const GpuModule& module) {
  std::vector<const FunctionInfo*> kernels;
  for (const auto& f : static_cast<const SoftModule&>(module).program()->functions)
    if (f->is_kernel) kernels.push_back(&f->info);
  return kernels;
}

std::string Damaged(const std::vector<std::string>& texts, PtxMutator& mutator) {
  const std::string& text = texts[mutator.Below(texts.size())];
  if (mutator.Below(kImageOneIn) == 0) {
    constexpr uint64_t kFlags[] = {0, kFatbinLz4, kFatbinZstd};
    const bool text_first = mutator.Below(2) == 0;
    FatbinBuilder builder;
    builder.Add(FatbinBuilder::kElf, 75, "code");
    builder.Add(FatbinBuilder::kPtx, 75, text_first ? mutator.DamageWords(text) : text, kFlags[mutator.Below(3)]);
    return text_first ? builder.Build() : mutator.DamageBytes(builder.Build());
  }
  return mutator.Below(3) == 0 ? mutator.DamageBytes(text) : mutator.DamageWords(text);
}

std::string DamagedProgram(const std::vector<std::vector<std::string>>& programs, PtxMutator& mutator) {
  const auto& parts = programs[mutator.Below(programs.size())];
  constexpr uint64_t kFlags[] = {0, 0, kFatbinLz4, kFatbinZstd};
  const uint64_t flags = kFlags[mutator.Below(4)];
  switch (mutator.Below(6)) {
    case 0:
      return mutator.DamageHeaders(ImageOfParts(parts, flags));
    case 1:
      return mutator.DamageBytes(ImageOfParts(parts, flags));
    default:
      return ImageOfParts(mutator.DamageParts(parts), flags);
  }
}

// What became of the cases.
struct Tally {
  uint64_t refused = 0;
  uint64_t loaded = 0;
  uint64_t launched = 0;
  uint64_t finished = 0;
  uint64_t faulted = 0;
  uint64_t cut = 0;  // by the budget
};

class Case {
 public:
  explicit Case(PtxMutator& mutator) : mutator_(mutator) {}
  void Try(const std::string& image, Tally& tally) {
    const auto loaded = m_.Load(image);
    if (loaded.status != CuStatus::kSuccess) {
      ++tally.refused;
      ASSERT_FALSE(loaded.text.empty());
      return;
    }
    ++tally.loaded;
    data_ = m_.Alloc(64 << 10);
    TextureDesc picture;
    picture.width = picture.height = 16;
    picture.format = 3;  // CU_AD_FORMAT_UNSIGNED_INT32
    picture.levels = {{data_, 64, 0}};
    picture.surface = mutator_.Below(2) == 0;
    if (auto handle = m_.gpu.CreateTexture(picture)) picture_ = *handle;
    for (const FunctionInfo* f : KernelsOf(*m_.module)) RunOne(*f, tally);
  }

 private:
  void RunOne(const FunctionInfo& f, Tally& tally) {
    std::vector<std::byte> params(f.param_bytes);
    const uint64_t values[] = {Raw(data_), Raw(data_) + (32 << 10), picture_, 3, UINT64_MAX};
    for (const ParamInfo& p : f.params) {
      const uint64_t value = p.bytes == 8 ? values[mutator_.Below(8) == 0 ? mutator_.Below(5) : 0] : 40;
      if (p.bytes == 0) continue;  // `.b8 x[0]`: then there may be no buffer
      std::memcpy(params.data() + p.offset, &value, std::min<size_t>(p.bytes, sizeof value));
    }
    if (f.uses_heap && !m_.gpu.MakeHeap()) return;
    LaunchShape shape{{2, 1, 1}, {mutator_.Below(2) == 0 ? 64u : 40u, 1, 1}, 1024};
    shape.cooperative = mutator_.Below(8) == 0;
    auto grid = m_.gpu.Launch(f, shape, params, 48 << 10);
    if (!grid) return;
    ++tally.launched;
    const Outcome outcome = m_.Finish(**grid, 1 + mutator_.Below(1000), kMaxInstructions);
    if (outcome.status == CuStatus::kSuccess) {
      ++tally.finished;
    } else if (outcome.instructions >= kMaxInstructions && outcome.status == CuStatus::kLaunchTimeout) {
      ++tally.cut;
    } else {
      ++tally.faulted;
      EXPECT_FALSE(outcome.text.empty());
    }
  }

  PtxMutator& mutator_;
  SoftMachine m_{BestIsa(), kVram, 1, kHighest};
  GpuVa data_{};
  uint64_t picture_ = 0;
};

uint64_t CpuNs() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

// `damaged`: an image.
void TryAll(const std::function<std::string(PtxMutator&)>& damaged) {
  const uint64_t first = FromEnvironment("VGPUD_MUTATION_SEED", 1);
  const uint64_t count = FromEnvironment("VGPUD_MUTATIONS", 3000);
  const uint64_t every = std::max<uint64_t>(count / 20, 10'000);
  const char* keep = std::getenv("VGPUD_MUTATION_KEEP");
  Tally tally;
  uint64_t slowest_ns = 0;
  uint64_t slowest = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const uint64_t begin = CpuNs();
    PtxMutator mutator(static_cast<uint32_t>(seed));
    const std::string image = damaged(mutator);
    if (keep != nullptr) std::ofstream(keep) << image;
    Case(mutator).Try(image, tally);
    if (testing::Test::HasFailure()) FAIL() << "with VGPUD_MUTATION_SEED=" << seed << " VGPUD_MUTATIONS=1";
    if (const uint64_t took = CpuNs() - begin; took > slowest_ns) {
      slowest_ns = took;
      slowest = seed;
    }
    if ((seed - first + 1) % every == 0 || seed + 1 == first + count)
      printf(
          "%lu cases: %lu refused, %lu loaded, %lu kernels run (%lu to the end, %lu faults, %lu cut), slowest seed "
          "%lu: %.0f ms\n",
          seed - first + 1, tally.refused, tally.loaded, tally.launched, tally.finished, tally.faulted, tally.cut,
          slowest, static_cast<double>(slowest_ns) / 1e6);
  }
  // All ways out must have been taken, or the test tests little.
  if (count < 1000) return;
  for (const uint64_t n : {tally.refused, tally.loaded, tally.finished, tally.faulted, tally.cut})
    EXPECT_GT(n, count / 500);
}

TEST(LoadMutation, DamagedModulesGiveErrorsOrRunInsideTheirMemory) {
  const auto texts = Seeds();
  ASSERT_GE(texts.size(), 11u);
  TryAll([&](PtxMutator& mutator) { return Damaged(texts, mutator); });
}

TEST(LoadMutation, DamagedProgramsOfSeveralPartsGiveErrorsOrRunInsideTheirMemory) {
  const auto programs = SeedPrograms();
  ASSERT_GE(programs.size(), 3u);
  TryAll([&](PtxMutator& mutator) { return DamagedProgram(programs, mutator); });
}

TEST(LoadMutation, WhatIsNotDamagedLoads) {
  std::vector<std::string> images = Seeds();
  for (const auto& parts : SeedPrograms())
    for (const uint64_t flags : {uint64_t{0}, kFatbinLz4, kFatbinZstd}) images.push_back(ImageOfParts(parts, flags));
  for (const std::string& text : images) {
    SoftMachine m(BestIsa(), 64 << 20, 1, kHighest);
    const Outcome loaded = m.Load(text);
    ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
    for (const FunctionInfo* f : KernelsOf(*m.module)) {
      std::vector<std::byte> params(f->param_bytes);
      EXPECT_TRUE(m.gpu.MakeHeap());
      auto grid = m.gpu.Launch(*f, {{1, 1, 1}, {64, 1, 1}, 0}, params, 48 << 10);
      EXPECT_TRUE(grid) << grid.error().text;
    }
  }
}

}  // namespace
}  // namespace vgpud::soft
