// SPDX-License-Identifier: Apache-2.0
// Where images end, to the byte, and what several of them are joined to.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "guest-driver-shim/include/uapi/vgpu_abi.h"
#include "guest-driver-shim/libcuda/channel/image.h"

namespace vgpud::cuda {
namespace {

using Bytes = std::vector<std::byte>;

template <class T>
void Put(Bytes& image, size_t at, T value) {
  if (image.size() < at + sizeof value) image.resize(at + sizeof value);
  memcpy(&image[at], &value, sizeof value);
}
template <class T>
T Get(const Bytes& image, size_t at) {
  T value{};
  if (at + sizeof value <= image.size()) memcpy(&value, &image[at], sizeof value);
  return value;
}
// The length that is found, 0 when the image is refused.
uint64_t LengthOf(const void* image) {
  std::vector<ImageExtent> images;
  if (!FindImages(image, ReadOwnMemory, &images)) return 0;
  EXPECT_EQ(1u, images.size());
  EXPECT_EQ(image, images[0].start);
  return images[0].bytes;
}
Bytes Fatbin(uint16_t version, uint16_t header_bytes, uint64_t entry_bytes) {
  Bytes image;
  Put<uint32_t>(image, 0, 0xba55ed50);
  Put<uint16_t>(image, 4, version);
  Put<uint16_t>(image, 6, header_bytes);
  Put<uint64_t>(image, 8, entry_bytes);
  return image;
}

TEST(FindImages, AFatbinMayBeTwoGibibytes) {
  EXPECT_EQ(16u, LengthOf(Fatbin(1, 16, 0).data()));
  EXPECT_EQ(24u + 100, LengthOf(Fatbin(1, 24, 100).data()));
  EXPECT_EQ((uint64_t{1} << 31) + 16, LengthOf(Fatbin(1, 16, uint64_t{1} << 31).data()));
  EXPECT_EQ(0u, LengthOf(Fatbin(1, 16, (uint64_t{1} << 31) + 1).data()));
  EXPECT_EQ(0u, LengthOf(Fatbin(1, 15, 100).data()));
  EXPECT_EQ(0u, LengthOf(Fatbin(0, 16, 100).data()));
  EXPECT_EQ(0u, LengthOf(Fatbin(2, 16, 100).data()));
}

struct Elf {
  Elf64_Ehdr header{};
  Elf64_Phdr segment{};
  Elf64_Shdr section{};
  Elf() {
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof segment;
    header.e_shoff = sizeof header + sizeof segment;
    header.e_shentsize = sizeof section;
    section.sh_type = SHT_PROGBITS;
  }
};

TEST(FindImages, AnElfEndsWithTheLastOfHeaderTablesSectionsAndSegments) {
  Elf elf;
  EXPECT_EQ(sizeof elf.header + sizeof elf.segment, LengthOf(&elf)) << "where the empty tables are said to be";
  elf.header.e_phnum = 1;
  EXPECT_EQ(sizeof elf.header + sizeof elf.segment, LengthOf(&elf));
  elf.header.e_shnum = 1;
  EXPECT_EQ(sizeof elf, LengthOf(&elf));
  elf.segment.p_offset = 300, elf.segment.p_filesz = 5;
  EXPECT_EQ(305u, LengthOf(&elf));
  elf.section.sh_offset = 400, elf.section.sh_size = 7;
  EXPECT_EQ(407u, LengthOf(&elf));
  elf.section.sh_type = SHT_NOBITS;
  EXPECT_EQ(305u, LengthOf(&elf)) << "takes no room in the file";
  elf.section.sh_type = SHT_PROGBITS;
  elf.segment.p_filesz = 2000;
  EXPECT_EQ(2300u, LengthOf(&elf));
}

TEST(FindImages, EachSegmentAndSectionOfATableCounts) {
  struct {
    Elf64_Ehdr header{};
    Elf64_Phdr segments[3]{};
    Elf64_Shdr sections[3]{};
  } elf;
  elf.header = Elf().header;
  elf.header.e_phnum = elf.header.e_shnum = 3;
  elf.header.e_shoff = sizeof elf.header + sizeof elf.segments;
  EXPECT_EQ(sizeof elf, LengthOf(&elf));
  elf.segments[2].p_offset = 1000;
  EXPECT_EQ(1000u, LengthOf(&elf));
  elf.segments[1].p_offset = 1100;
  EXPECT_EQ(1100u, LengthOf(&elf));
  elf.sections[2].sh_offset = 1200;
  EXPECT_EQ(1200u, LengthOf(&elf));
  elf.sections[1].sh_offset = 1300;
  EXPECT_EQ(1300u, LengthOf(&elf));
  // What lies behind a table is none of its entries.
  elf.segments[1].p_offset = elf.sections[1].sh_offset = 0;
  elf.header.e_phnum = elf.header.e_shnum = 2;
  EXPECT_EQ(elf.header.e_shoff + 2 * sizeof(Elf64_Shdr), LengthOf(&elf));
}

TEST(FindImages, NoPartOfAnElfLiesBeyondTwoGibibytes) {
  constexpr uint64_t kMost = uint64_t{1} << 31;
  Elf elf;
  elf.header.e_phnum = elf.header.e_shnum = 1;
  const auto length = [&](uint64_t offset, uint64_t bytes) {
    elf.segment.p_offset = offset, elf.segment.p_filesz = bytes;
    return LengthOf(&elf);
  };
  EXPECT_EQ(kMost, length(kMost - 10, 10));
  EXPECT_EQ(kMost, length(kMost, 0));
  EXPECT_EQ(kMost, length(0, kMost));
  EXPECT_EQ(0u, length(kMost - 10, 11));
  EXPECT_EQ(0u, length(kMost + 1, 0));
  EXPECT_EQ(0u, length(0, kMost + 1));
  elf = {};
  elf.header.e_phnum = 1;
  elf.header.e_phentsize = sizeof elf.segment - 1;
  EXPECT_EQ(0u, LengthOf(&elf));
  elf.header.e_phnum = 0;
  EXPECT_NE(0u, LengthOf(&elf)) << "there are none";
  elf.header.e_shentsize = sizeof elf.section + 1;
  EXPECT_NE(0u, LengthOf(&elf));
  elf.header.e_shnum = 1;
  EXPECT_EQ(0u, LengthOf(&elf));
  elf = {};
  elf.header.e_ident[EI_CLASS] = ELFCLASS32;
  EXPECT_EQ(0u, LengthOf(&elf));
}

TEST(FindImages, TextEndsAtItsNulWhereverPagesBegin) {
  for (const size_t length : {1, 2, 4, 5, 4094, 4095, 4096, 4097, 8191, 8192, 8193}) {
    for (const size_t skip : {0, 1, 7, 4095}) {
      alignas(4096) static char room[5 * 4096];
      memset(room, 'x', sizeof room);
      room[skip + length] = '\0';
      EXPECT_EQ(length, LengthOf(room + skip)) << skip;
    }
  }
  EXPECT_EQ(0u, LengthOf(""));
  EXPECT_EQ(0u, LengthOf(nullptr));
  EXPECT_EQ(1u, LengthOf("P")) << "begins as a fatbin does";
  EXPECT_EQ(4u, LengthOf("PTX?"));
  EXPECT_EQ(4u, LengthOf("\x7fXYZ"));
}

Bytes Wrapper(uint32_t version, const void* data, const void* more) {
  Bytes wrapper;
  Put<uint32_t>(wrapper, 0, 0x466243b1);
  Put<uint32_t>(wrapper, 4, version);
  Put(wrapper, 8, data);
  Put(wrapper, 16, more);
  return wrapper;
}

TEST(FindImages, WrappersLeadToBinariesOnly) {
  const Bytes fatbin = Fatbin(1, 16, 8);
  const Elf elf;
  std::vector<ImageExtent> images;
  const auto found = [&](const Bytes& wrapper) { return FindImages(wrapper.data(), ReadOwnMemory, &images); };
  EXPECT_TRUE(found(Wrapper(1, &elf, nullptr)));
  EXPECT_EQ(&elf, images.at(0).start);
  EXPECT_FALSE(found(Wrapper(1, "text", nullptr)));
  EXPECT_FALSE(found(Wrapper(0, fatbin.data(), nullptr)));
  EXPECT_FALSE(found(Wrapper(3, fatbin.data(), nullptr)));
  EXPECT_FALSE(found(Wrapper(2, nullptr, nullptr)));
  EXPECT_TRUE(found(Wrapper(1, fatbin.data(), reinterpret_cast<const void*>(0x1000)))) << "version 1 has no list";
  const void* const empty[] = {nullptr};
  EXPECT_TRUE(found(Wrapper(2, fatbin.data(), empty))) << "an empty list is none";
  EXPECT_EQ(fatbin.data(), images.at(0).start);
}

TEST(FindImages, ListsAreBounded) {
  std::vector<ImageExtent> images;
  const Bytes whole = Fatbin(1, 16, 0), half = Fatbin(1, 16, (uint64_t{1} << 30) - 16);
  std::vector<const void*> list = {half.data(), half.data(), nullptr};
  const Bytes wrapper = Wrapper(2, whole.data(), list.data());
  EXPECT_TRUE(FindImages(wrapper.data(), ReadOwnMemory, &images)) << "2 GiB in all";
  list = {half.data(), half.data(), whole.data(), nullptr};
  const Bytes longer = Wrapper(2, whole.data(), list.data());
  EXPECT_FALSE(FindImages(longer.data(), ReadOwnMemory, &images));
  list.assign(size_t{1} << 16, whole.data());
  list.push_back(nullptr);
  const Bytes most = Wrapper(2, whole.data(), list.data());
  EXPECT_TRUE(FindImages(most.data(), ReadOwnMemory, &images));
  EXPECT_EQ(size_t{1} << 16, images.size());
  list.back() = whole.data();
  list.push_back(nullptr);
  const Bytes more = Wrapper(2, whole.data(), list.data());
  EXPECT_FALSE(FindImages(more.data(), ReadOwnMemory, &images));
}

Bytes Text(const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

// docs/fatbin.md: a header of 16 bytes, entries with a header of 64 and a payload of a multiple of 8.
TEST(JoinImages, MakesAFatbinOfFatbins) {
  Bytes given = Fatbin(1, 16, 8);
  given.resize(24, std::byte{0x5a});
  const Bytes joined = JoinImages({Text("twelve bytes"), given});
  const auto header = [&](size_t at, uint64_t bytes) {
    EXPECT_EQ(0xba55ed50u, Get<uint32_t>(joined, at));
    EXPECT_EQ(1u, Get<uint16_t>(joined, at + 4));
    EXPECT_EQ(16u, Get<uint16_t>(joined, at + 6));
    EXPECT_EQ(bytes, Get<uint64_t>(joined, at + 8));
  };
  const auto entry = [&](size_t at, uint16_t kind, uint64_t bytes) {
    EXPECT_EQ(kind, Get<uint16_t>(joined, at));
    EXPECT_EQ(0x0101u, Get<uint16_t>(joined, at + 2));
    EXPECT_EQ(64u, Get<uint32_t>(joined, at + 4));
    EXPECT_EQ(bytes, Get<uint64_t>(joined, at + 8));
    for (size_t i = 16; i < 64; i += 4) EXPECT_EQ(0u, Get<uint32_t>(joined, at + i)) << i;
  };
  // Text becomes a fatbin of its own: 16 + 64 + 16 bytes.
  ASSERT_EQ(16u + 64 + 96 + 64 + 24, joined.size());
  header(0, joined.size() - 16);
  entry(16, VGPU_FATBIN_KIND_PART, 96);
  header(80, 80);
  entry(96, 1, 16);
  EXPECT_EQ(0, memcmp("twelve bytes\0\0\0", &joined[160], 16));
  entry(176, VGPU_FATBIN_KIND_PART, 24);
  EXPECT_EQ(0, memcmp(given.data(), &joined[240], 24)) << "as it is";
  EXPECT_EQ(16u + 64 + 96, JoinImages({Text("sixteen bytes ok")}).size()) << "nothing to round up";
  EXPECT_EQ(16u + 64 + 104, JoinImages({Text("seventeen bytes !")}).size());
  EXPECT_EQ(16u + 64 + 88, JoinImages({Text("abc")}).size()) << "shorter than a magic number";
}

}  // namespace
}  // namespace vgpud::cuda
