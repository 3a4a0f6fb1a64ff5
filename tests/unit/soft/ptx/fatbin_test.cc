// SPDX-License-Identifier: Apache-2.0
#include "gpu/ptx/fatbin.h"

#include <gtest/gtest.h>

#include "tests/unit/soft/rig/fatbin_builder.h"

namespace vgpud::ptx {
namespace {

constexpr std::string_view kPtx75 =
    ".version 9.0\n.target sm_75\n.address_size 64\n// a text long enough to compress "
    "compress compress compress compress\n";
constexpr std::string_view kPtx60 = ".version 9.0\n.target sm_60\n.address_size 64\n";
constexpr std::string_view kPtx90 = ".version 9.0\n.target sm_90\n.address_size 64\n";
constexpr uint64_t kArchSpecific = 0x100000;

GpuResult<std::string> Select(std::string_view image, uint32_t sm = 75) {
  auto texts = SelectPtx(std::as_bytes(std::span{image.data(), image.size()}), sm);
  if (!texts) return tl::unexpected(texts.error());
  EXPECT_EQ(texts->size(), 1u);
  return texts->front();
}

void ExpectInvalid(std::string_view image, std::string_view words) {
  const auto text = Select(image);
  ASSERT_FALSE(text) << words;
  EXPECT_EQ(text.error().status, CuStatus::kInvalidImage) << text.error().text;
  EXPECT_NE(text.error().text.find(words), std::string::npos) << text.error().text;
}

template <class T>
std::string Patched(std::string image, size_t offset, T value) {
  std::memcpy(image.data() + offset, &value, sizeof value);
  return image;
}

struct FormCase {
  const char* name;
  uint64_t flags;
};
class FatbinFormTest : public testing::TestWithParam<FormCase> {};

TEST_P(FatbinFormTest, GivesTheTextBack) {
  const std::string image = FatbinBuilder{}.Add(FatbinBuilder::kPtx, 75, kPtx75, GetParam().flags).Build();
  const auto text = Select(image);
  ASSERT_TRUE(text) << text.error().text;
  EXPECT_EQ(*text, kPtx75);
}

TEST_P(FatbinFormTest, CutOffAnywhereIsAnErrorNeverACrash) {
  const std::string image = FatbinBuilder{}.Add(FatbinBuilder::kPtx, 75, kPtx75, GetParam().flags).Build();
  for (size_t length = 0; length < image.size(); ++length) {
    const std::string cut = image.substr(0, length);
    const auto text = Select(cut);
    ASSERT_FALSE(text) << length;
    ASSERT_EQ(text.error().status, CuStatus::kInvalidImage) << length;
  }
}

TEST_P(FatbinFormTest, AnyHeaderByteMayBeWrong) {
  const std::string image = FatbinBuilder{}.Add(FatbinBuilder::kPtx, 75, kPtx75, GetParam().flags).Build();
  for (size_t offset = 0; offset < 16 + 64; ++offset)
    for (const int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      const auto text = Select(Patched(image, offset, static_cast<uint8_t>(value)));
      EXPECT_TRUE(text || !text.error().text.empty());
    }
}

INSTANTIATE_TEST_SUITE_P(, FatbinFormTest,
                         testing::Values(FormCase{"plain", 0}, FormCase{"lz4", kFatbinLz4},
                                         FormCase{"zstd", kFatbinZstd}),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(Fatbin, TakesTheHighestThatIsNotAboveTheDevice) {
  const std::string image = FatbinBuilder{}
                                .Add(FatbinBuilder::kElf, 75, "machine code")
                                .Add(FatbinBuilder::kPtx, 60, kPtx60)
                                .Add(FatbinBuilder::kPtx, 75, kPtx75, kFatbinZstd)
                                .Add(FatbinBuilder::kPtx, 90, kPtx90, kFatbinLz4)
                                .Build();
  EXPECT_EQ(Select(image, 75).value(), kPtx75);
  EXPECT_EQ(Select(image, 70).value(), kPtx60);
  EXPECT_EQ(Select(image, 120).value(), kPtx90);
}

TEST(Fatbin, ArchitectureSpecificPtxIsForThatArchitectureOnly) {
  const std::string image =
      FatbinBuilder{}.Add(FatbinBuilder::kPtx, 75, kPtx75).Add(FatbinBuilder::kPtx, 90, kPtx90, 0).Build();
  const size_t second_flags = 16 + 64 + (kPtx75.size() + 7) / 8 * 8 + 40;
  const std::string specific = Patched(image, second_flags, uint64_t{0x11 | kArchSpecific});
  EXPECT_EQ(Select(specific, 100).value(), kPtx75);
  EXPECT_EQ(Select(specific, 90).value(), kPtx90);
}

// What a flag word says, for devices of several compute capabilities ("" = no PTX for it).
TEST(Fatbin, FlagsSayWhereAnEntryRuns) {
  struct Case {
    uint64_t flags;
    uint32_t entry, device;
    bool runs;
  };
  constexpr uint64_t kFamilySpecific = 0x200000;
  for (const Case& c : {Case{0, 75, 74, false},
                        {0, 75, 75, true},
                        {0, 75, 120, true},
                        {kArchSpecific, 90, 89, false},
                        {kArchSpecific, 90, 90, true},
                        {kArchSpecific, 90, 91, false},
                        {kFamilySpecific, 100, 99, false},
                        {kFamilySpecific, 100, 100, true},
                        {kFamilySpecific, 100, 103, true},
                        {kFamilySpecific, 103, 100, false},
                        {kFamilySpecific, 100, 110, false},
                        {kFamilySpecific, 100, 90, false}}) {
    const std::string image =
        Patched(FatbinBuilder{}.Add(FatbinBuilder::kPtx, c.entry, kPtx75).Build(), 16 + 40, uint64_t{0x11 | c.flags});
    const auto text = Select(image, c.device);
    EXPECT_EQ(text.has_value(), c.runs) << c.flags << " sm_" << c.entry << " on " << c.device;
    EXPECT_TRUE(text || text.error().status == CuStatus::kNoBinaryForGpu);
  }
}

// Of one capability the plain text: it needs nothing that only that capability has.
TEST(Fatbin, PlainPtxComesBeforeSpecificOfTheSameCapability) {
  for (const uint64_t flags : {kArchSpecific, uint64_t{0x200000}}) {
    const std::string image =
        FatbinBuilder{}.Add(FatbinBuilder::kPtx, 90, kPtx90).Add(FatbinBuilder::kPtx, 90, kPtx75).Build();
    EXPECT_EQ(Select(Patched(image, 16 + 40, uint64_t{0x11} | flags), 90).value(), kPtx75);
    const size_t second_flags = 16 + 64 + (kPtx90.size() + 7) / 8 * 8 + 40;
    EXPECT_EQ(Select(Patched(image, second_flags, uint64_t{0x11} | flags), 90).value(), kPtx90);
  }
  const std::string lower =
      FatbinBuilder{}.Add(FatbinBuilder::kPtx, 80, kPtx75).Add(FatbinBuilder::kPtx, 90, kPtx90).Build();
  const size_t second_flags = 16 + 64 + (kPtx75.size() + 7) / 8 * 8 + 40;
  EXPECT_EQ(Select(Patched(lower, second_flags, uint64_t{0x11} | kArchSpecific), 90).value(), kPtx90);
}

TEST(Fatbin, OfEqualEntriesTheFirstIsTaken) {
  const std::string image =
      FatbinBuilder{}.Add(FatbinBuilder::kPtx, 70, kPtx60).Add(FatbinBuilder::kPtx, 70, kPtx75).Build();
  EXPECT_EQ(Select(image).value(), kPtx60);
}

TEST(Fatbin, SixteenEntriesAreListed) {
  const auto listed = [](int count) {
    FatbinBuilder builder;
    for (int n = 0; n < count; ++n) builder.Add(FatbinBuilder::kElf, 80 + static_cast<uint32_t>(n), "code");
    return Select(builder.Build()).error().text;
  };
  EXPECT_EQ(listed(1),
            "no PTX for sm_75 or below, the image has: cubin for sm_80; build with default flags or -arch=compute_75");
  EXPECT_NE(listed(16).find("cubin for sm_95; build"), std::string::npos) << listed(16);
  EXPECT_NE(listed(17).find("cubin for sm_95 and 1 more; build"), std::string::npos) << listed(17);
  EXPECT_NE(listed(20).find("cubin for sm_95 and 4 more; build"), std::string::npos) << listed(20);
  EXPECT_NE(listed(0).find("the image has: nothing;"), std::string::npos) << listed(0);
  EXPECT_NE(Select(Patched(FatbinBuilder{}.Add(FatbinBuilder::kPtx, 60, kPtx60).Build(), 16, uint16_t{16}))
                .error()
                .text.find("the image has: other for sm_60;"),
            std::string::npos);
}

// Each entry may have 64 MiB of text, all that are read together 256 MiB.
TEST(Fatbin, TextsHaveALimitForOneAndForAll) {
  const auto part = [](uint64_t bytes) {
    const std::string text(bytes, ' ');
    return FatbinBuilder{}.Add(FatbinBuilder::kPtx, 75, text, kFatbinZstd).Build();
  };
  const auto parts = [](const std::string& one, int count, const std::string& last) {
    FatbinBuilder builder;
    for (int n = 0; n < count; ++n) builder.Add(FatbinBuilder::kPart, 0, one);
    if (!last.empty()) builder.Add(FatbinBuilder::kPart, 0, last);
    return builder.Build();
  };
  const std::string largest = part(64u << 20);
  ASSERT_TRUE(Select(largest));
  EXPECT_EQ(Select(largest)->size(), 64u << 20);
  ExpectInvalid(part((64u << 20) + 1), "67108865 bytes of code, the limit is 67108864 for one entry and 268435456 for");
  const std::string most = parts(largest, 4, "");
  const auto texts = SelectPtx(std::as_bytes(std::span{most.data(), most.size()}), 75);
  ASSERT_TRUE(texts) << texts.error().text;
  EXPECT_EQ(texts->size(), 4u);
  ExpectInvalid(parts(largest, 4, part(1)), "the limit is");
}

TEST(Fatbin, ReadsSeveralOneBehindTheOther) {
  const std::string image = FatbinBuilder{}.Add(FatbinBuilder::kPtx, 60, kPtx60).Build() + std::string(4, '\0') +
                            FatbinBuilder{}.Add(FatbinBuilder::kPtx, 75, kPtx75).Build();
  // The first is a multiple of 8 long: four zeros are not its padding, and not a second header either.
  EXPECT_FALSE(Select(image));
  const std::string good = FatbinBuilder{}.Add(FatbinBuilder::kPtx, 60, kPtx60).Build() +
                           FatbinBuilder{}.Add(FatbinBuilder::kPtx, 75, kPtx75).Build() + std::string(4, '\0');
  EXPECT_EQ(Select(good).value(), kPtx75);
}

// One whose length is no multiple of 8 is padded with zeros to the next.
TEST(Fatbin, ReadsSeveralWithPaddingBetweenThem) {
  std::string first = FatbinBuilder{}.Add(FatbinBuilder::kPtx, 60, kPtx60).Build();
  const auto entries = static_cast<uint64_t>(first.size()) - 16 + 4;
  std::memcpy(first.data() + 8, &entries, sizeof entries);  // and the payload is 4 longer
  uint64_t payload = 0;
  std::memcpy(&payload, first.data() + 16 + 8, sizeof payload);
  payload += 4;
  std::memcpy(first.data() + 16 + 8, &payload, sizeof payload);
  const std::string second = FatbinBuilder{}.Add(FatbinBuilder::kPtx, 75, kPtx75).Build();
  EXPECT_EQ(Select(first + std::string(8, '\0') + second).value(), kPtx75);
  EXPECT_EQ(Select(first + std::string(4, '\0') + second).value(), kPtx75) << "none";
  EXPECT_FALSE(Select(first + std::string(7, '\0') + second));
}

TEST(Fatbin, GivesOneTextOfEachPartThatHasPtx) {
  const std::string code = FatbinBuilder{}.Add(FatbinBuilder::kElf, 75, "code").Build();
  const std::string old = FatbinBuilder{}.Add(FatbinBuilder::kPtx, 60, kPtx60).Build();
  const std::string both =
      FatbinBuilder{}.Add(FatbinBuilder::kPtx, 75, kPtx75).Add(FatbinBuilder::kPtx, 90, kPtx90).Build();
  const auto parts = [](const auto&... part) {
    FatbinBuilder builder;
    (builder.Add(FatbinBuilder::kPart, 0, part), ...);
    return builder.Build();
  };
  const std::string image = parts(old, code, both);
  const auto texts = SelectPtx(std::as_bytes(std::span{image.data(), image.size()}), 75);
  ASSERT_TRUE(texts) << texts.error().text;
  EXPECT_EQ(*texts, (std::vector<std::string>{std::string(kPtx60), std::string(kPtx75)}));
  EXPECT_EQ(Select(parts(code, code)).error().status, CuStatus::kNoBinaryForGpu);
  EXPECT_EQ(Select(parts(old.substr(0, old.size() - 8))).error().status, CuStatus::kInvalidImage);
}

TEST(Fatbin, ReadsEntriesWithLongerHeaders) {
  const std::string image = FatbinBuilder{}.Add(FatbinBuilder::kPtx, 75, kPtx75, kFatbinZstd, 136).Build();
  EXPECT_EQ(Select(image).value(), kPtx75);
}

TEST(Fatbin, NoPtxForTheDeviceListsWhatIsThere) {
  const std::string image =
      FatbinBuilder{}.Add(FatbinBuilder::kElf, 80, "code").Add(FatbinBuilder::kPtx, 90, kPtx90).Build();
  const auto text = Select(image);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().status, CuStatus::kNoBinaryForGpu);
  EXPECT_NE(text.error().text.find("cubin for sm_80, PTX for sm_90"), std::string::npos) << text.error().text;
  EXPECT_EQ(Select(FatbinBuilder{}.Build()).error().status, CuStatus::kNoBinaryForGpu);
  EXPECT_EQ(Select("\x7f"
                   "ELF....")
                .error()
                .status,
            CuStatus::kNoBinaryForGpu);
}

TEST(Fatbin, PtxTextIsTakenAsItIs) {
  EXPECT_EQ(Select(kPtx75).value(), kPtx75);
  EXPECT_EQ(Select(std::string(kPtx75) + '\0' + "rest").value(), kPtx75);
}

TEST(Fatbin, WhatItIsNot) {
  ExpectInvalid("", "0 bytes");
  ExpectInvalid("abc", "an image of 3 bytes is neither");
  ExpectInvalid("abcd", "which begins with .version: starts with 0x64636261");
  for (const char* wrong : {".target sm_75\n.version 9.0\n", "x .version 9.0\n", "// no end .version 9.0",
                            "/* .version 9.0 *", "    ", "/ .version 9.0\n"})
    ExpectInvalid(wrong, "which begins with .version");
  for (const char* right :
       {".version 9.0\n.target sm_75\n", " \n// a comment\n/* another */ // and a third\n\t.version 9.0\n"})
    EXPECT_EQ(Select(right).value(), right);
  ExpectInvalid("hello, world", "neither a fatbin nor PTX");
  ExpectInvalid(std::string("\xB1\x43\x62\x46\1\0\0\0", 8), "wrapper");
  ExpectInvalid(std::string("\x01\x5A\xE5\x1E\1\0\0\0", 8), "old form");
}

TEST(Fatbin, SizesAreNotTrusted) {
  const std::string zstd = FatbinBuilder{}.Add(FatbinBuilder::kPtx, 75, kPtx75, kFatbinZstd).Build();
  constexpr size_t kEntry = 16;
  ExpectInvalid(Patched(zstd, 4, uint16_t{2}), "version 2");
  ExpectInvalid(Patched(zstd, 6, uint16_t{8}), "header size");
  ExpectInvalid(Patched(zstd, 6, uint16_t{0xffff}), "cut off");
  ExpectInvalid(Patched(zstd, 8, ~uint64_t{0}), "bytes of entries");
  ExpectInvalid(Patched(zstd, kEntry + 4, uint32_t{0}), "entry header");
  ExpectInvalid(Patched(zstd, kEntry + 4, ~uint32_t{0}), "entry header");
  ExpectInvalid(Patched(zstd, kEntry + 8, ~uint64_t{0}), "entry of");
  ExpectInvalid(Patched(zstd, kEntry + 8, ~uint64_t{0} - 70), "entry of");
  ExpectInvalid(Patched(zstd, kEntry + 16, uint32_t{0}), "compressed bytes");
  ExpectInvalid(Patched(zstd, kEntry + 16, ~uint32_t{0}), "compressed bytes");
  ExpectInvalid(Patched(zstd, kEntry + 40, uint64_t{0xA000}), "both");
  ExpectInvalid(Patched(zstd, kEntry + 56, uint64_t{257} << 20), "the limit is");
  ExpectInvalid(Patched(zstd, kEntry + 56, uint64_t{65} << 20), "the limit is");
  ExpectInvalid(Patched(zstd, kEntry + 56, uint64_t{kPtx75.size() - 1}), "doesn't decompress");
  ExpectInvalid(Patched(zstd, kEntry + 56, uint64_t{kPtx75.size() + 1}), "doesn't decompress");
  const std::string lz4 = FatbinBuilder{}.Add(FatbinBuilder::kPtx, 75, kPtx75, kFatbinLz4).Build();
  ExpectInvalid(Patched(lz4, kEntry + 56, uint64_t{kPtx75.size() + 1}), "doesn't decompress");
}

}  // namespace
}  // namespace vgpud::ptx
