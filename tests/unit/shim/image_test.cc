// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/channel/image.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <string>
#include <vector>

namespace vgpud::cuda {
namespace {

// Memory that ends: the image stands at its end, reading beyond it fails.
class Memory {
 public:
  explicit Memory(const std::vector<std::byte>& image) : image_(image) {}
  const void* start() const { return image_.data(); }
  bool Read(void* to, const void* from, uint64_t bytes) const {
    const auto* at = static_cast<const std::byte*>(from);
    if (at < image_.data() || at > image_.data() + image_.size()) return false;
    if (bytes > static_cast<uint64_t>(image_.data() + image_.size() - at)) return false;
    memcpy(to, at, bytes);
    return true;
  }
  bool Find(ImageExtent* out) const {
    std::vector<ImageExtent> images;
    const auto read = [this](void* to, const void* from, uint64_t n) { return Read(to, from, n); };
    if (!FindImages(start(), read, &images) || images.size() != 1) return false;
    *out = images[0];
    return true;
  }

 private:
  const std::vector<std::byte>& image_;
};

template <class T>
void Put(std::vector<std::byte>& image, size_t at, T value) {
  if (image.size() < at + sizeof value) image.resize(at + sizeof value);
  memcpy(&image[at], &value, sizeof value);
}

std::vector<std::byte> Fatbin(uint64_t entry_bytes) {
  std::vector<std::byte> image;
  Put<uint32_t>(image, 0, 0xba55ed50);
  Put<uint16_t>(image, 4, 1);
  Put<uint16_t>(image, 6, 16);
  Put<uint64_t>(image, 8, entry_bytes);
  image.resize(16 + 100);
  return image;
}

std::vector<std::byte> Elf(uint64_t section_bytes) {
  std::vector<std::byte> image(sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Shdr));
  Elf64_Ehdr header{};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shoff = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 2;
  Elf64_Shdr section{};
  section.sh_type = SHT_PROGBITS;
  section.sh_offset = image.size();
  section.sh_size = section_bytes;
  memcpy(image.data(), &header, sizeof header);
  memcpy(image.data() + sizeof header + sizeof section, &section, sizeof section);
  return image;
}

TEST(FindImages, AddsHeaderAndEntriesOfAFatbin) {
  const auto image = Fatbin(100);
  ImageExtent extent;
  ASSERT_TRUE(Memory(image).Find(&extent));
  EXPECT_EQ(image.data(), extent.start);
  EXPECT_EQ(116u, extent.bytes);
}

TEST(FindImages, FollowsWrappersOfBothVersions) {
  const auto fatbin = Fatbin(100);
  for (const uint32_t version : {1u, 2u}) {
    std::vector<std::byte> wrapper;
    Put<uint32_t>(wrapper, 0, 0x466243b1);
    Put<uint32_t>(wrapper, 4, version);
    Put<const void*>(wrapper, 8, fatbin.data());
    Put<uint64_t>(wrapper, 16, 0);
    std::vector<ImageExtent> images;
    ASSERT_TRUE(FindImages(wrapper.data(), ReadOwnMemory, &images));
    ASSERT_EQ(1u, images.size());
    EXPECT_EQ(fatbin.data(), images[0].start);
    EXPECT_EQ(116u, images[0].bytes);
  }
}

TEST(FindImages, TakesTheListOfWhatWasLinkedInsteadOfTheResult) {
  const auto linked = Fatbin(100), first = Fatbin(40), second = Fatbin(60);
  std::vector<std::byte> list, wrapper;
  Put<const void*>(list, 0, first.data());
  Put<const void*>(list, 8, second.data());
  Put<uint64_t>(list, 16, 0);
  Put<uint32_t>(wrapper, 0, 0x466243b1);
  Put<uint32_t>(wrapper, 4, 2);
  Put<const void*>(wrapper, 8, linked.data());
  Put<const void*>(wrapper, 16, list.data());
  std::vector<ImageExtent> images;
  ASSERT_TRUE(FindImages(wrapper.data(), ReadOwnMemory, &images));
  ASSERT_EQ(2u, images.size());
  EXPECT_EQ(first.data(), images[0].start);
  EXPECT_EQ(56u, images[0].bytes);
  EXPECT_EQ(second.data(), images[1].start);
  EXPECT_EQ(76u, images[1].bytes);
  Put<const void*>(list, 8, wrapper.data());
  EXPECT_FALSE(FindImages(wrapper.data(), ReadOwnMemory, &images)) << "an entry that is no fatbin";
  Put<uint64_t>(list, 8, 0x1000);
  EXPECT_FALSE(FindImages(wrapper.data(), ReadOwnMemory, &images)) << "an entry to unmapped memory";
}

TEST(FindImages, TakesTheFarthestPartOfAnElf) {
  const auto image = Elf(5000);
  ImageExtent extent;
  ASSERT_TRUE(Memory(image).Find(&extent));
  EXPECT_EQ(image.size() + 5000, extent.bytes);
}

TEST(FindImages, MeasuresText) {
  std::vector<std::byte> image(9000, std::byte{'x'});
  image.push_back(std::byte{0});
  std::vector<ImageExtent> images;
  ASSERT_TRUE(FindImages(image.data(), ReadOwnMemory, &images));
  ASSERT_EQ(1u, images.size());
  EXPECT_EQ(9000u, images[0].bytes);
}

struct Damage {
  const char* name;
  std::vector<std::byte> image;
};
TEST(FindImages, RefusesDamagedHeaders) {
  std::vector<Damage> cases = {
      {"fatbin size overflows", Fatbin(~uint64_t{0})},
      {"fatbin size absurd", Fatbin(kMaxImageBytes + 1)},
      {"elf section overflows", Elf(~uint64_t{0} - 10)},
      {"elf section absurd", Elf(kMaxImageBytes)},
      {"empty text", {std::byte{0}}},
  };
  auto fatbin = Fatbin(100);
  Put<uint16_t>(fatbin, 4, 2);
  cases.push_back({"fatbin version", fatbin});
  fatbin = Fatbin(100);
  Put<uint16_t>(fatbin, 6, 8);
  cases.push_back({"fatbin header too short", fatbin});
  fatbin.resize(10);
  cases.push_back({"fatbin cut off", fatbin});
  auto elf = Elf(10);
  Put<uint16_t>(elf, offsetof(Elf64_Ehdr, e_shnum), 0xffff);
  cases.push_back({"elf section table outside", elf});
  elf = Elf(10);
  Put<uint16_t>(elf, offsetof(Elf64_Ehdr, e_shentsize), 3);
  cases.push_back({"elf section size", elf});
  elf = Elf(10);
  Put<uint64_t>(elf, offsetof(Elf64_Ehdr, e_shoff), ~uint64_t{0} - 4);
  cases.push_back({"elf table overflows", elf});
  std::vector<std::byte> wrapper;
  Put<uint32_t>(wrapper, 0, 0x466243b1);
  Put<uint32_t>(wrapper, 4, 3);
  Put<uint64_t>(wrapper, 8, 0);
  Put<uint64_t>(wrapper, 16, 0);
  cases.push_back({"wrapper version", wrapper});
  Put<uint32_t>(wrapper, 4, 1);
  cases.push_back({"wrapper to nowhere", wrapper});
  Put<uint64_t>(wrapper, 8, 0x1000);
  cases.push_back({"wrapper to unmapped memory", wrapper});
  for (const Damage& damage : cases) {
    ImageExtent extent;
    EXPECT_FALSE(Memory(damage.image).Find(&extent)) << damage.name;
  }
}

// Every single damaged byte of the headers: an answer, never a read outside.
TEST(FindImages, SurvivesEveryFlippedByte) {
  for (const auto& good : {Fatbin(100), Elf(40)}) {
    for (size_t i = 0; i < good.size(); ++i) {
      for (const unsigned flip : {0x01u, 0x80u, 0xffu}) {
        auto image = good;
        image[i] ^= static_cast<std::byte>(flip);
        ImageExtent extent;
        if (Memory(image).Find(&extent)) {
          EXPECT_LE(extent.bytes, kMaxImageBytes + 0x10000);
        }
      }
    }
  }
}

TEST(ReadOwnMemory, RefusesUnmappedMemoryWithoutFaulting) {
  char to[16];
  void* page = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, page);
  munmap(static_cast<char*>(page) + 4096, 4096);
  EXPECT_TRUE(ReadOwnMemory(to, static_cast<char*>(page) + 4080, 16));
  EXPECT_FALSE(ReadOwnMemory(to, static_cast<char*>(page) + 4088, 16));
  munmap(page, 4096);
}

}  // namespace
}  // namespace vgpud::cuda
