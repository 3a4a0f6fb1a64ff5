// SPDX-License-Identifier: Apache-2.0
// The stream of a saved context (docs/saved-context.md): numbers, texts, sparse memory, its end, and what it refuses.
#include "gpu/soft/state/state_stream.h"

#include <gmock/gmock.h>

#include "tests/unit/soft/rig/state_fields.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;
using Bytes = std::vector<std::byte>;

// All of the stream, its end included; `pieces`: as the sink got it.
Bytes Whole(const std::function<void(StateWriter&)>& write, std::vector<size_t>* pieces = nullptr) {
  Bytes bytes;
  const StateSink sink = [&](std::span<const std::byte> piece) -> GpuResult<void> {
    if (pieces != nullptr) pieces->push_back(piece.size());
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    return {};
  };
  StateWriter out(sink);
  write(out);
  EXPECT_TRUE(out.Finish());
  return bytes;
}

Bytes Pattern(size_t size) {
  Bytes bytes(size);
  for (size_t n = 0; n < size; ++n) bytes[n] = static_cast<std::byte>(n * 7 + n / 251 + 1);
  return bytes;
}

TEST(Checksum, IsThatOfTheFormat) {
  Checksum nothing;
  EXPECT_EQ(nothing.value(), 0x766770756473746bu);
  const Bytes bytes = StateFields().U64(1).U64(0x0123456789abcdef).U8(0xff).U8(2).bytes();
  Checksum whole;
  whole.Add(bytes);
  EXPECT_EQ(whole.value(), 0xb669fbbaccd798dbu);
  Checksum words;
  words.Add(1);
  words.Add(0x0123456789abcdef);
  words.Add(0x02ff);
  EXPECT_EQ(words.value(), whole.value()) << "the last word is filled up with zeros";
}

TEST(StateStream, NumbersAreLittleEndianAndTheEndIsAWholeWord) {
  const Bytes bytes = Whole([](StateWriter& out) {
    out.Put<uint8_t>(0x01);
    out.Put<uint16_t>(0x0302);
    out.Put<uint32_t>(0x07060504);
    out.Put<uint64_t>(0x0f0e0d0c0b0a0908);
  });
  ASSERT_EQ(bytes.size(), 24u);
  for (size_t n = 0; n < 15; ++n) EXPECT_EQ(bytes[n], static_cast<std::byte>(n + 1));
  EXPECT_EQ(bytes[15], std::byte{0});
  EXPECT_EQ(Whole([](StateWriter&) {}).size(), 8u);
  EXPECT_EQ(Whole([](StateWriter& out) { out.Put<uint64_t>(5); }).size(), 16u);
  const StateSource source = SourceOf(bytes);
  StateReader in(source);
  EXPECT_EQ(in.Get<uint8_t>(), 0x01);
  EXPECT_EQ(in.Get<uint16_t>(), 0x0302);
  EXPECT_EQ(in.Get<uint32_t>(), 0x07060504u);
  EXPECT_EQ(in.Get<uint64_t>(), 0x0f0e0d0c0b0a0908u);
  EXPECT_TRUE(in.Finish());
}

TEST(StateStream, ComesBackInPiecesOfAnySize) {
  for (const size_t size : {0, 1, 7, 8, 9, 65527, 65528, 65535, 65536, 65537, 131064, 131072, 200'001}) {
    const Bytes content = Pattern(size);
    std::vector<size_t> pieces;
    const Bytes bytes = Whole([&](StateWriter& out) { out.PutBytes(content); }, &pieces);
    EXPECT_EQ(bytes.size(), (size + 7) / 8 * 8 + 8) << size;
    for (size_t n = 0; n < pieces.size(); ++n) EXPECT_LE(pieces[n], kStatePiece);
    for (size_t n = 0; n < size / kStatePiece; ++n) EXPECT_EQ(pieces[n], kStatePiece) << size;
    for (const size_t piece : {size_t{1}, size_t{7}, size_t{4096}, kStatePiece, SIZE_MAX}) {
      if (piece == 1 && size > 70'000) continue;
      const StateSource source = SourceOf(bytes, piece);
      StateReader in(source);
      Bytes read(size);
      in.GetBytes(read);
      EXPECT_EQ(read, content);
      const auto end = in.Finish();
      EXPECT_TRUE(end) << size << " in pieces of " << piece << ": " << (end ? "" : end.error().text);
    }
  }
}

TEST(StateStream, EveryDamagedByteIsFound) {
  const Bytes good = Whole([](StateWriter& out) { out.PutBytes(Pattern(27)); });
  ASSERT_EQ(good.size(), 40u);
  for (size_t at = 0; at < good.size(); ++at) {
    Bytes bytes = good;
    bytes[at] ^= std::byte{0x10};
    const GpuError error = ErrorOfReading(bytes, [](StateReader& in) {
      Bytes read(27);
      in.GetBytes(read);
      EXPECT_FALSE(in.Finish());
    });
    EXPECT_EQ(error.status, CuStatus::kInvalidImage);
    EXPECT_THAT(error.text, HasSubstr(at >= 27 && at < 32 ? "bad filling (0x1)" : "the checksum is wrong")) << at;
  }
}

TEST(StateStream, WhatFollowsTheEndIsRefused) {
  // The end of the stream at the end of what is read at once, and elsewhere.
  for (const size_t size : {size_t{16}, kStatePiece - 8, kStatePiece}) {
    Bytes bytes = Whole([&](StateWriter& out) { out.PutBytes(Pattern(size)); });
    bytes.push_back(std::byte{0});
    const GpuError error = ErrorOfReading(bytes, [&](StateReader& in) {
      Bytes read(size);
      in.GetBytes(read);
      EXPECT_FALSE(in.Finish());
    });
    EXPECT_THAT(error.text, HasSubstr("something follows")) << size;
  }
}

TEST(StateStream, AnErrorOfTheSourceAtTheVeryEndIsTheAnswer) {
  const Bytes bytes = Whole([](StateWriter& out) { out.PutBytes(Pattern(kStatePiece - 8)); });
  ASSERT_EQ(bytes.size(), kStatePiece);
  size_t asked = 0;
  const StateSource source = [&](std::span<std::byte> out) -> GpuResult<size_t> {
    if (++asked == 2) return GpuFail(CuStatus::kUnknown, "line cut");
    std::copy_n(bytes.begin(), out.size(), out.begin());
    return out.size();
  };
  StateReader in(source);
  Bytes read(kStatePiece - 8);
  in.GetBytes(read);
  const auto end = in.Finish();
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().text, "line cut");
}

TEST(StateStream, ASourceThatGivesMoreThanItWasAskedForIsBelievedNoFurther) {
  const StateSource source = [](std::span<std::byte> out) -> GpuResult<size_t> { return out.size() + 1000; };
  StateReader in(source);
  Bytes read(3 * kStatePiece);
  in.GetBytes(read);
  EXPECT_TRUE(in.ok());
}

TEST(StateStream, NumbersHaveLimitsAndErrorsSayWhere) {
  const Bytes bytes = StateFields().U64(0).U32(100).U32(101).U32(3).bytes();
  const StateSource source = SourceOf(bytes);
  StateReader in(source);
  in.Get<uint64_t>();
  EXPECT_EQ(in.GetUpTo<uint32_t>(100, "thing"), 100u);
  EXPECT_TRUE(in.ok());
  EXPECT_EQ(in.GetUpTo<uint32_t>(100, "thing"), 0u);
  ASSERT_FALSE(in.ok());
  EXPECT_EQ(in.error().value().text, "saved context: before byte 16: bad thing (0x65)");
  EXPECT_EQ(in.Get<uint32_t>(), 0u) << "nothing is read after an error";
  in.Bad("another", 1);
  in.Fail({CuStatus::kUnknown, "third"});
  EXPECT_THAT(in.error().value().text, HasSubstr("bad thing")) << "the first error counts";
  Bytes far(kStatePiece + 8);
  far.resize(kStatePiece + 16, std::byte{9});
  const GpuError error = ErrorOfReading(far, [](StateReader& late) {
    Bytes skipped(kStatePiece + 8);
    late.GetBytes(skipped);
    late.GetUpTo<uint8_t>(8, "byte");
  });
  EXPECT_EQ(error.text, "saved context: before byte 65545: bad byte (0x9)");
}

TEST(StateStream, ATruthIsZeroOrOne) {
  const Bytes bytes = StateFields().U8(0).U8(1).U8(2).bytes();
  const StateSource source = SourceOf(bytes);
  StateReader in(source);
  EXPECT_FALSE(in.GetBool("flag"));
  EXPECT_TRUE(in.GetBool("flag"));
  EXPECT_TRUE(in.ok());
  EXPECT_FALSE(in.GetBool("flag"));
  EXPECT_FALSE(in.ok());
}

TEST(StateStream, WhatIsMissingIsZerosAndAnError) {
  const Bytes bytes = Pattern(10);
  const StateSource source = SourceOf(bytes);
  StateReader in(source);
  Bytes read(20, std::byte{0xaa});
  in.GetBytes(read);
  EXPECT_THAT(in.error().value().text, HasSubstr("it ends after 10 bytes, in the middle"));
  EXPECT_EQ(Bytes(read.begin(), read.begin() + 10), bytes);
  EXPECT_EQ(Bytes(read.begin() + 10, read.end()), Bytes(10));
}

TEST(StateStream, TextsHaveALimitAndMayBeLong) {
  const std::string lengths[] = {"", "x", std::string(100, 'y'), std::string(2 * kStatePiece + 5, 'z')};
  const Bytes bytes = Whole([&](StateWriter& out) {
    for (const std::string& text : lengths) out.PutText(text);
  });
  const StateSource source = SourceOf(bytes);
  StateReader in(source);
  for (const std::string& text : lengths) EXPECT_EQ(in.GetText(text.size(), "text"), text);
  EXPECT_TRUE(in.Finish());
  const auto refused = ErrorOfReading(StateFields().Text("four").bytes(),
                                      [](StateReader& one) { EXPECT_EQ(one.GetText(3, "length of a name"), ""); });
  EXPECT_THAT(refused.text, HasSubstr("bad length of a name (0x4)"));
  const auto lie = ErrorOfReading(StateFields().U64(uint64_t{1} << 40).U64(7).bytes(),
                                  [](StateReader& one) { EXPECT_EQ(one.GetText(UINT64_MAX, "text"), ""); });
  EXPECT_THAT(lie.text, HasSubstr("it ends after 16 bytes"));
}

struct SparseCase {
  size_t bytes;
  std::vector<size_t> set;  // where a byte is not zero
  size_t written;           // of the stream: 8 per page and the end, and the pages
};

TEST(StateStream, SparseMemoryIsItsPagesThatAreNotZero) {
  const SparseCase cases[] = {
      {0, {}, 8},
      {1, {}, 8},
      {1, {0}, 8 + 1 + 8},
      {4095, {4094}, 8 + 4095 + 8},
      {4096, {0}, 8 + 4096 + 8},
      {4096, {1}, 8 + 4096 + 8},
      {4096, {4095}, 8 + 4096 + 8},
      {4097, {4096}, 8 + 1 + 8},
      {3 * 4096, {}, 8},
      {3 * 4096, {4096}, 8 + 4096 + 8},
      {3 * 4096, {4095, 8192}, 2 * (8 + 4096) + 8},
      {3 * 4096 + 10, {12288 + 9, 5}, 8 + 4096 + 8 + 10 + 8},
  };
  for (const SparseCase& c : cases) {
    Bytes memory(c.bytes);
    for (const size_t at : c.set) memory[at] = std::byte{0x5a};
    Bytes bytes = Whole([&](StateWriter& out) { out.PutSparse(memory); });
    EXPECT_EQ(bytes.size(), (c.written + 7) / 8 * 8 + 8) << c.bytes;
    Bytes read(c.bytes);
    const StateSource source = SourceOf(bytes);
    StateReader in(source);
    in.GetSparse(read, "page");
    EXPECT_TRUE(in.Finish());
    EXPECT_EQ(read, memory);
  }
}

TEST(StateStream, PagesOfSparseMemoryComeInOrderAndInside) {
  const auto read = [](const std::vector<uint64_t>& pages, size_t size) {
    StateFields fields;
    for (const uint64_t page : pages) {
      fields.U64(page);
      for (size_t n = 0; n < 4096 / 8; ++n) fields.U64(page + 1);
    }
    fields.U64(UINT64_MAX);
    return ErrorOfReading(fields.bytes(),
                          [&](StateReader& in) {
                            Bytes memory(size);
                            in.GetSparse(memory, "page");
                          })
        .text;
  };
  EXPECT_EQ(read({0, 1, 2}, 3 * 4096), "");
  EXPECT_EQ(read({1}, 3 * 4096), "");
  EXPECT_EQ(read({0, 2}, 3 * 4096), "");
  EXPECT_THAT(read({1, 1}, 3 * 4096), HasSubstr("bad page (0x1)"));
  EXPECT_THAT(read({2, 0}, 3 * 4096), HasSubstr("bad page (0x0)"));
  EXPECT_THAT(read({3}, 3 * 4096), HasSubstr("bad page (0x3)"));
  EXPECT_THAT(read({3}, 2 * 4096 + 1), HasSubstr("bad page (0x3)"));
  EXPECT_THAT(read({0}, 0), HasSubstr("bad page (0x0)"));
}

TEST(StateStream, AfterAnErrorOfTheSinkNothingIsSent) {
  for (const int good : {0, 1, 2, 3}) {
    int sent = 0;
    const StateSink sink = [&](std::span<const std::byte>) -> GpuResult<void> {
      if (sent++ == good) return GpuFail(CuStatus::kUnknown, "full " + std::to_string(good));
      return {};
    };
    StateWriter out(sink);
    out.PutBytes(Pattern(2 * kStatePiece + 100));
    out.Fail({CuStatus::kInvalidValue, "late"});
    const auto end = out.Finish();
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().text, good < 2 ? "full " + std::to_string(good) : "late");
    EXPECT_EQ(sent, good < 2 ? good + 1 : 2);
  }
  int sent = 0;
  const StateSink last = [&](std::span<const std::byte>) -> GpuResult<void> {
    if (++sent == 2) return GpuFail(CuStatus::kUnknown, "full");
    return {};
  };
  StateWriter out(last);
  out.Put<uint64_t>(1);
  EXPECT_EQ(out.Finish().error().text, "full") << "at the checksum";
}

}  // namespace
}  // namespace vgpud::soft
