// SPDX-License-Identifier: Apache-2.0
// Real PTX and fatbins, damaged at random (always the same way): the front end must answer with a sound module or a
// message, whatever comes. Meant to run under the sanitizers too.
#include <gtest/gtest.h>

#include "gpu/ptx/fatbin.h"
#include "gpu/ptx/link.h"
#include "gpu/ptx/parser.h"
#include "tests/unit/soft/rig/mutation_seeds.h"
#include "tests/unit/soft/rig/ptx_check.h"
#include "tests/unit/soft/rig/ptx_mutator.h"

namespace vgpud::ptx {
namespace {

constexpr int kTextMutations = 20'000;
constexpr int kImageMutations = 5'000;

std::vector<std::string> RealPtx() { return TextsIn(TEST_PTX_DIR); }

GpuResult<std::string> Select(const std::string& image) {
  auto texts = SelectPtx(std::as_bytes(std::span{image.data(), image.size()}), 75);
  if (!texts) return tl::unexpected(texts.error());
  return texts->front();
}

TEST(FrontEnd, RealPtxParses) {
  const auto texts = RealPtx();
  ASSERT_GE(texts.size(), 7u);
  for (const std::string& text : texts) {
    const auto module = ptx::Parse(text);
    ASSERT_TRUE(module) << module.error().text;
    EXPECT_EQ((*module)->version, 90u);
    EXPECT_EQ((*module)->target.sm, 75u);
    EXPECT_FALSE((*module)->functions.empty());
    for (const auto& function : (*module)->functions) EXPECT_FALSE(function->code.empty()) << function->name;
    EXPECT_EQ(ptx::BrokenInvariant(**module), "");
  }
}

TEST(FrontEnd, DamagedPtxGivesASoundModuleOrAMessage) {
  const auto texts = RealPtx();
  PtxMutator mutator(1);
  int parsed = 0;
  for (int i = 0; i < kTextMutations; ++i) {
    const std::string text = mutator.DamageBytes(texts[mutator.Below(texts.size())]);
    const auto module = ptx::Parse(text);
    if (module) {
      ++parsed;
      ASSERT_EQ(ptx::BrokenInvariant(**module), "") << "mutation " << i << "\n" << text;
    } else {
      ASSERT_TRUE(module.error().text.starts_with("PTX line ")) << "mutation " << i << ": " << module.error().text;
    }
  }
  // Both sides must have been tried.
  EXPECT_GT(parsed, kTextMutations / 20);
  EXPECT_LT(parsed, kTextMutations * 19 / 20);
}

TEST(FrontEnd, DamagedFatbinsGiveTextOrAMessage) {
  const auto texts = RealPtx();
  PtxMutator mutator(2);
  for (const uint64_t flags : {uint64_t{0}, kFatbinLz4, kFatbinZstd}) {
    FatbinBuilder builder;
    builder.Add(FatbinBuilder::kElf, 75, "code").Add(FatbinBuilder::kPtx, 60, texts[0], flags);
    const std::string image = builder.Add(FatbinBuilder::kPtx, 75, texts[1], flags).Build();
    ASSERT_EQ(Select(image).value(), texts[1]);
    for (int i = 0; i < kImageMutations; ++i) {
      const auto text = Select(mutator.DamageBytes(image));
      ASSERT_TRUE(text || !text.error().text.empty()) << "mutation " << i;
    }
  }
}

TEST(FrontEnd, DamagedProgramsOfSeveralPartsGiveASoundModuleOrAMessage) {
  const auto programs = ProgramsIn(TEST_SEED_DIR "/parts");
  ASSERT_GE(programs.size(), 3u);
  for (const auto& parts : programs) ASSERT_GE(parts.size(), 2u);
  PtxMutator mutator(3);
  int linked = 0;
  for (int i = 0; i < kTextMutations; ++i) {
    const auto& parts = programs[mutator.Below(programs.size())];
    const std::string image =
        mutator.Below(4) == 0 ? mutator.DamageHeaders(ImageOfParts(parts)) : ImageOfParts(mutator.DamageParts(parts));
    const auto texts = SelectPtx(std::as_bytes(std::span{image.data(), image.size()}), 75);
    if (!texts) {
      ASSERT_FALSE(texts.error().text.empty()) << "mutation " << i;
      continue;
    }
    const auto module = ptx::ParseParts(*texts);
    if (module) {
      ++linked;
      ASSERT_EQ(ptx::BrokenInvariant(**module), "") << "mutation " << i;
    } else {
      ASSERT_FALSE(module.error().text.empty()) << "mutation " << i;
    }
  }
  EXPECT_GT(linked, kTextMutations / 20);
  EXPECT_LT(linked, kTextMutations * 19 / 20);
}

}  // namespace
}  // namespace vgpud::ptx
