// SPDX-License-Identifier: Apache-2.0
// Contexts without running grids, written out and read back.
#include <gmock/gmock.h>

#include <random>

#include "tests/unit/soft/state/saved_context.h"
#include "tests/unit/soft/state/soft_works.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;

class SoftState : public testing::TestWithParam<const WorkRow*> {};

// What a work has left in memory, heap and output is there again, on every instruction set.
TEST_P(SoftState, AFinishedContextGoesOn) {
  const WorkRow& row = *GetParam();
  SoftMachine m;
  Work work = row.make(m);
  ASSERT_EQ(m.Finish(*work.grid).status, CuStatus::kSuccess);
  work.grid.reset();
  const auto saved = SaveAll(m);
  ASSERT_TRUE(saved) << saved.error().text;
  const uint64_t answer = Answer(m, work);
  for (const Isa isa : AvailableIsas()) {
    SoftMachine other(isa);
    const auto restored = RestoreAll(other, *saved, 1000);
    ASSERT_TRUE(restored) << restored.error().text;
    EXPECT_EQ(Answer(other, work), answer) << NameOf(isa);
    // The next allocations lie where they would have.
    const GpuVa next[] = {*m.gpu.Alloc(700), *m.gpu.Alloc(5000)};
    for (const GpuVa va : next) EXPECT_EQ(*other.gpu.Alloc(va == next[0] ? 700 : 5000), va);
    for (const GpuVa va : next) ASSERT_TRUE(m.gpu.Free(va));
  }
}

Bytes SavedSmall(SoftMachine& m) {
  EXPECT_EQ(m.LoadBody(".param .u64 out", "", ".global .u32 g[4] = {1, 2, 3, 4};\n.const .u32 c = 7;").status,
            CuStatus::kSuccess);
  TextureDesc desc;
  desc.shape = TextureDesc::Shape::k1d;
  desc.width = 16;
  desc.format = 0x20;
  const GpuVa image = m.Upload(std::vector<float>(16, 1.5f));
  desc.levels.push_back({image, 0, 0});
  EXPECT_TRUE(m.gpu.CreateTexture(desc));
  EXPECT_TRUE(m.gpu.SetHeapBytes(4096));
  EXPECT_TRUE(m.gpu.MakeHeap());
  const auto saved = SaveAll(m);
  EXPECT_TRUE(saved) << (saved ? "" : saved.error().text);
  return saved ? *saved : Bytes{};
}

TEST(SoftStateFile, KeepsGlobalsTexturesOfFreedMemoryAndLimits) {
  SoftMachine m;
  const GpuVa before = m.Alloc(100'000);
  SavedSmall(m);
  const auto global = m.module->FindGlobal("g");
  const uint32_t changed = 77;
  ASSERT_TRUE(m.gpu.CopyIn(GpuVa{Raw(global->address) + 4}, std::as_bytes(std::span(&changed, 1))));
  ASSERT_TRUE(m.gpu.Free(before));
  m.gpu.SetPrintCapacity(12345);
  const auto saved = SaveAll(m);
  ASSERT_TRUE(saved);
  SoftMachine other;
  ASSERT_TRUE(RestoreAll(other, *saved));
  const auto same = other.module->FindGlobal("g");
  ASSERT_TRUE(same);
  EXPECT_EQ(same->address, global->address);
  EXPECT_THAT(other.Download<uint32_t>(same->address, 4), testing::ElementsAre(1, 77, 3, 4));
  EXPECT_THAT(other.Download<uint32_t>(other.module->FindGlobal("c")->address, 1), testing::ElementsAre(7));
  EXPECT_EQ(other.gpu.HeapBytesToMake(), 0u);
  EXPECT_FALSE(other.gpu.SetHeapBytes(1));
  EXPECT_EQ(*other.gpu.Alloc(100'000), before) << "freed memory is not free";
  other.module.reset();
  EXPECT_FALSE(other.gpu.Contains(same->address, 1)) << "the module does not own its globals";
}

TEST(SoftStateFile, SaveWantsEveryModuleOnce) {
  SoftMachine m;
  SavedSmall(m);
  const auto sink = [](std::span<const std::byte>) { return GpuResult<void>(); };
  GpuModule* const twice[] = {m.module.get(), m.module.get()};
  EXPECT_EQ(m.gpu.Save(sink, {}, {}).error().status, CuStatus::kInvalidValue);
  EXPECT_EQ(m.gpu.Save(sink, twice, {}).error().status, CuStatus::kInvalidValue);
  EXPECT_TRUE(m.gpu.Save(sink, std::span(twice).first(1), {}));
}

TEST(SoftStateFile, AnErrorOfTheSinkOrTheSourceIsTheAnswer) {
  SoftMachine m;
  SavedSmall(m);
  GpuModule* const modules[] = {m.module.get()};
  const auto full =
      m.gpu.Save([](std::span<const std::byte>) -> GpuResult<void> { return GpuFail(CuStatus::kUnknown, "disk full"); },
                 modules, {});
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().text, "disk full");
  SoftMachine other;
  const auto lost = other.gpu.Restore(
      [](std::span<std::byte>) -> GpuResult<size_t> { return GpuFail(CuStatus::kUnknown, "line cut"); });
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().text, "line cut");
}

TEST(SoftStateFile, OnlyAFreshContextIsReadInto) {
  SoftMachine m;
  const Bytes saved = SavedSmall(m);
  EXPECT_EQ(RestoreAll(m, saved).error().status, CuStatus::kInvalidValue);
}

TEST(SoftStateFile, EveryTruncationIsRefused) {
  SoftMachine m;
  const Bytes saved = SavedSmall(m);
  for (size_t length = 0; length < saved.size(); ++length) {
    SoftMachine other;
    const auto restored = RestoreAll(other, std::span(saved).first(length));
    ASSERT_FALSE(restored) << length << " of " << saved.size();
    ASSERT_EQ(restored.error().status, CuStatus::kInvalidImage) << restored.error().text;
  }
  Bytes longer = saved;
  longer.push_back(std::byte{0});
  SoftMachine other;
  EXPECT_THAT(RestoreAll(other, longer).error().text, HasSubstr("something follows"));
}

TEST(SoftStateFile, WhatIsNotOfThisKindIsRefusedWithItsReason) {
  SoftMachine m;
  const Bytes saved = SavedSmall(m);
  const auto changed = [&](size_t at, int value) {
    Bytes bytes = saved;
    bytes[at] = static_cast<std::byte>(value);
    Seal(bytes);
    SoftMachine other;
    const auto restored = RestoreAll(other, bytes);
    return restored ? GpuError{CuStatus::kSuccess, ""} : restored.error();
  };
  EXPECT_THAT(changed(0, 0).text, HasSubstr("no saved context"));
  EXPECT_THAT(changed(8, 9).text, HasSubstr("version 9, known is 7"));
  EXPECT_EQ(changed(8, 9).status, CuStatus::kNotSupported);
  EXPECT_THAT(changed(12, 80).text, HasSubstr("compute capability 8.0, this one has 7.5"));
  EXPECT_THAT(changed(29, 1).text, HasSubstr("this one has"));
  Bytes damaged = saved;
  damaged[damaged.size() - 100] ^= std::byte{1};
  SoftMachine other;
  EXPECT_FALSE(RestoreAll(other, damaged));
}

// The text of the module says something else than what was decoded from it.
TEST(SoftStateFile, CodeThatDecodesDifferentlyIsRefused) {
  SoftMachine m;
  Bytes bytes = SavedSmall(m);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const size_t at = text.find("%r<40>");
  ASSERT_NE(at, std::string_view::npos);
  const size_t ret = text.find("ret;\n}");
  ASSERT_NE(ret, std::string_view::npos);
  std::memcpy(bytes.data() + ret, "    \n", 4);
  Seal(bytes);
  SoftMachine other;
  const auto restored = RestoreAll(other, bytes);
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().status, CuStatus::kNotSupported);
  EXPECT_THAT(restored.error().text, HasSubstr("lays out the code"));
}

// Whatever the bytes are: an error, or a context whose every part can be used.
TEST(SoftStateFile, MutatedBytesAreAnErrorOrAContext) {
  SoftMachine m;
  const Bytes saved = SavedSmall(m);
  std::mt19937 random(7);
  int accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    Bytes bytes = saved;
    for (uint32_t n = random() % 4 + 1; n != 0; --n) {
      std::byte& b = bytes[random() % bytes.size()];
      b = random() % 2 == 0 ? static_cast<std::byte>(random()) : b ^ static_cast<std::byte>(1u << random() % 8);
    }
    Seal(bytes);
    SoftMachine other;
    const auto restored = RestoreAll(other, bytes);
    if (!restored) continue;
    ++accepted;
    const auto va = other.gpu.Alloc(600);
    if (va) {
      EXPECT_TRUE(other.gpu.Free(*va));
    }
    EXPECT_TRUE(SaveAll(other));
    other.module.reset();
  }
  EXPECT_GT(accepted, 10);
}

INSTANTIATE_TEST_SUITE_P(, SoftState, testing::ValuesIn([] {
                           std::vector<const WorkRow*> rows;
                           for (const WorkRow& row : Works()) rows.push_back(&row);
                           return rows;
                         }()),
                         [](const auto& p) { return std::string(p.param->name); });

}  // namespace
}  // namespace vgpud::soft
