// SPDX-License-Identifier: Apache-2.0
#include "vfio/channel/channel_header.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "guest-driver-shim/include/uapi/vgpu_abi.h"

namespace vgpud::vfio {
namespace {

constexpr uint64_t kFileBytes = 0x4000;

// A header that lies in `pieces` of a file: (offset, bytes), the last one long enough.
class ChannelHeaderTest : public testing::Test {
 protected:
  Area In(std::initializer_list<std::pair<uint64_t, uint64_t>> pieces, bool writable = true) const {
    Area area;
    for (const auto& [offset, bytes] : pieces) area.pieces.push_back({file, offset, bytes, writable, {}});
    return area;
  }
  uint32_t Word(uint64_t at) const {
    uint32_t word = 0;
    EXPECT_EQ(4, ::pread(file->get(), &word, 4, static_cast<off_t>(at)));
    return word;
  }
  void Put(uint64_t at, uint32_t word) const { EXPECT_EQ(4, ::pwrite(file->get(), &word, 4, static_cast<off_t>(at))); }
  std::string Text(uint64_t at) const {
    char text[512] = {};
    EXPECT_EQ(512, ::pread(file->get(), text, 512, static_cast<off_t>(at)));
    return text;
  }
  SharedFd file = std::make_shared<const UniqueFd>(*MakeSealedMemfd("area", kFileBytes));
};

TEST_F(ChannelHeaderTest, ALostChannelSaysSoWithAnErrorAndItsReason) {
  const Area area = In({{0x1000, 0x2000}});
  EXPECT_EQ(0u, StickyError(area));
  MarkHeaderLost(area);
  EXPECT_EQ(VGPU_CHANNEL_LOST, Word(0x108c));
  EXPECT_EQ(719u, Word(0x1098)) << "CUDA_ERROR_LAUNCH_FAILED";
  EXPECT_EQ(0u, Word(0x109c)) << "no more than that";
  EXPECT_EQ("the executor of this CUDA process ended unexpectedly (killed or crashed); see vgpud's log", Text(0x10c0));
  EXPECT_EQ(719u, StickyError(area));
}

TEST_F(ChannelHeaderTest, WhatTheExecutorHasSaidItselfStays) {
  const Area area = In({{0x1000, 0x2000}});
  Put(0x1098, 700);
  EXPECT_EQ(700u, StickyError(area));
  MarkHeaderLost(area);
  EXPECT_EQ(VGPU_CHANNEL_LOST, Word(0x108c));
  EXPECT_EQ(700u, Word(0x1098));
  EXPECT_EQ("", Text(0x10c0));
}

// As a client of the host could lay it out: each part goes where it belongs, or nowhere.
TEST_F(ChannelHeaderTest, AnAreaInPiecesIsWrittenPieceByPiece) {
  const Area area = In({{0x2000, 0x8c}, {0x1000, 0x0c}, {0x3000, 0x1000}});
  Put(0x2098, 0);
  MarkHeaderLost(area);
  EXPECT_EQ(VGPU_CHANNEL_LOST, Word(0x1000)) << "0x8c is where the second piece begins";
  EXPECT_EQ(0u, Word(0x208c));
  EXPECT_EQ(719u, Word(0x3000)) << "0x98 is where the third piece begins";
  EXPECT_EQ("the executor", Text(0x3028).substr(0, 12));
}

TEST_F(ChannelHeaderTest, WhatWouldEndInAnotherPieceIsNotWritten) {
  const Area across = In({{0x1000, 0x8e}, {0x2000, 0x1000}});
  MarkHeaderLost(across);
  EXPECT_EQ(0u, Word(0x108c));
  EXPECT_EQ(0u, Word(0x2000));
  const Area exactly = In({{0x3000, 0x90}});
  MarkHeaderLost(exactly);
  EXPECT_EQ(VGPU_CHANNEL_LOST, Word(0x308c));
}

TEST_F(ChannelHeaderTest, WhatMayOnlyBeReadIsNotWritten) {
  MarkHeaderLost(In({{0x1000, 0x1000}}, false));
  EXPECT_EQ(0u, Word(0x108c));
  EXPECT_EQ(0u, Word(0x1098));
}

TEST_F(ChannelHeaderTest, AHeaderThatIsGoneHasNoError) {
  EXPECT_EQ(0u, StickyError({}));
  MarkHeaderLost({});
  const Area area = In({{kFileBytes, 0x1000}});  // behind the end of its file
  EXPECT_EQ(0u, StickyError(area));
  MarkHeaderLost(area);
  EXPECT_EQ(0u, StickyError(area));
  Put(kFileBytes - 4, 5);
  EXPECT_EQ(0u, StickyError(In({{kFileBytes - 0x9a, 0x9a}}))) << "half of it is there";
}

}  // namespace
}  // namespace vgpud::vfio
