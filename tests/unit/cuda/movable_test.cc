// SPDX-License-Identifier: Apache-2.0
// Allocations that leave the card and come back, against the made-up driver (fake_memory.h), whose card can be small.
#include "gpu/cuda/memory/movable.h"

#include "base/sanitizer.h"
#include "guest-driver-shim/include/uapi/vgpu_abi.h"
#include "tests/unit/cuda/cuda_fixture.h"

namespace vgpud::driver {
namespace {

using Back = Evictable::Back;
constexpr uint64_t kMiB = uint64_t{1} << 20;

class MovableTest : public CudaGpuTest {
 protected:
  void SetUp() override {
    if (!kFixedAddresses) GTEST_SKIP() << "ThreadSanitizer leaves no addresses for it";
    CudaGpuTest::SetUp();
    Card::Choice choice{Library(), {}};
    choice.oversubscribe = true;
    card_ = *Card::Open(choice);
    movable_gpu_ = std::make_unique<CudaGpu>(*card_, prints_);
    movable_ = movable_gpu_->capabilities().evictable;
    ASSERT_NE(nullptr, movable_);
    Notes();
  }
  void TearDown() override { movable_gpu_.reset(); }
  CudaGpu& gpu() { return *movable_gpu_; }
  GpuVa Alloc(uint64_t bytes) {
    const auto address = gpu().Alloc(bytes);
    EXPECT_TRUE(address) << address.error().text;
    return address ? *address : GpuVa{0};
  }
  void Write(GpuVa at, uint32_t value) { ASSERT_TRUE(gpu().WriteWord(at, 4, value)); }
  uint32_t Read(GpuVa at) {
    const auto word = gpu().ReadWord(at, 4);
    EXPECT_TRUE(word) << word.error().text;
    return word ? static_cast<uint32_t>(*word) : 0;
  }
  Back BringBack() {
    const auto back = movable_->BringBack(go_on_, &returned_);
    EXPECT_TRUE(back) << back.error().text;
    return back ? *back : Back::kNoRoom;
  }
  uint64_t Evict() {
    const auto bytes = movable_->Evict();
    EXPECT_TRUE(bytes) << bytes.error().text;
    return bytes ? *bytes : 0;
  }

  std::unique_ptr<Card> card_;
  driver::Printed prints_;
  std::unique_ptr<CudaGpu> movable_gpu_;
  Evictable* movable_ = nullptr;
  uint64_t returned_ = 0;
};

GpuVa Behind(GpuVa address, uint64_t bytes) { return GpuVa{Raw(address) + bytes}; }

TEST_F(MovableTest, OnlyWhereTheDaemonWantsItAndForLargeAllocations) {
  EXPECT_EQ(nullptr, gpu_->capabilities().evictable);
  Alloc(kMiB - 1);
  EXPECT_EQ(0u, movable_->on_card());
  EXPECT_EQ("", Notes());
  const GpuVa large = Alloc(3 * kMiB);
  EXPECT_EQ(4 * kMiB, movable_->on_card()) << "whole pages";
  EXPECT_GE(Raw(large), Movable::first_address());
  EXPECT_EQ(gpu().AllocationBytes(3 * kMiB), *gpu().Free(large));
  EXPECT_EQ(0u, movable_->on_card());
  EXPECT_FALSE(gpu().Contains(large, 1));
}

TEST_F(MovableTest, ItComesBackToItsAddressWithWhatItHad) {
  const GpuVa a = Alloc(5 * kMiB), b = Alloc(2 * kMiB);
  Write(a, 11);
  Write(Behind(a, 5 * kMiB - 4), 12);
  Write(Behind(b, 8), 13);
  EXPECT_EQ(8 * kMiB, Evict());
  EXPECT_EQ(0u, movable_->on_card());
  EXPECT_EQ(8 * kMiB, movable_->off_card());
  EXPECT_EQ(Back::kAll, BringBack());
  EXPECT_EQ(8 * kMiB, returned_);
  EXPECT_EQ(0u, movable_->off_card());
  EXPECT_EQ(11u, Read(a));
  EXPECT_EQ(12u, Read(Behind(a, 5 * kMiB - 4)));
  EXPECT_EQ(13u, Read(Behind(b, 8)));
}

// What the driver gets back is what its next owner sees.
TEST_F(MovableTest, WhatLeavesTheCardIsOverwrittenThere) {
  Write(Alloc(2 * kMiB), 11);
  Notes();
  Evict();
  EXPECT_EQ("unmap 2097152\nrelease\n", Notes());
}

TEST_F(MovableTest, ACardThatIsFullGivesAnAddressAndTheMemoryLater) {
  const Told told("card_mib=6");
  const GpuVa a = Alloc(4 * kMiB);
  const GpuVa b = Alloc(4 * kMiB);
  EXPECT_EQ(4 * kMiB, movable_->on_card());
  EXPECT_EQ(4 * kMiB, movable_->off_card());
  Write(a, 1);
  Write(b, 2);
  EXPECT_EQ(2u, Read(b)) << "without the card";
  Notes();
  EXPECT_EQ(Back::kNoRoom, BringBack());
  EXPECT_EQ("", Notes());
  ASSERT_TRUE(gpu().Free(a));
  EXPECT_EQ(Back::kAll, BringBack());
  EXPECT_EQ(2u, Read(b));
  EXPECT_EQ(0u, movable_->off_card());
}

// Two contexts with a part of the card each would wait for each other.
TEST_F(MovableTest, AllComesBackOrNothing) {
  Alloc(2 * kMiB);
  Alloc(2 * kMiB);
  Evict();
  Notes();
  {
    const Told told("card_mib=2");
    EXPECT_EQ(Back::kNoRoom, BringBack());
  }
  EXPECT_EQ("create 2097152\nmap 2097152\nunmap 2097152\nrelease\n", Notes());
  EXPECT_EQ(0u, movable_->on_card());
  EXPECT_EQ(Back::kAll, BringBack());
}

TEST_F(MovableTest, ATurnThatEndsIsHeardAndTheRestFollows) {
  const GpuVa a = Alloc(16 * kMiB);
  Write(Behind(a, 15 * kMiB), 5);
  Evict();
  uint64_t bytes = 0;
  EXPECT_EQ(Back::kStopped, *movable_->BringBack(stopped_, &bytes));
  EXPECT_EQ(4 * kMiB, bytes) << "one piece";
  EXPECT_EQ(16 * kMiB, movable_->off_card()) << "nothing may run yet";
  EXPECT_EQ(16 * kMiB, movable_->on_card()) << "and it has its place";
  Write(a, 6);
  EXPECT_EQ(6u, Read(a));
  EXPECT_EQ(Back::kAll, BringBack());
  EXPECT_EQ(5u, Read(Behind(a, 15 * kMiB)));
  EXPECT_EQ(6u, Read(a)) << "written to what had come back already";
}

TEST_F(MovableTest, ATurnThatEndsBetweenBlocksIsHeard) {
  const GpuVa a = Alloc(2 * kMiB), b = Alloc(2 * kMiB), c = Alloc(2 * kMiB);
  Write(a, 1);
  Write(c, 3);
  Evict();
  uint64_t bytes = 0;
  for (uint64_t made = 1; made <= 2; ++made) {
    EXPECT_EQ(Back::kStopped, *movable_->BringBack(stopped_, &bytes));
    EXPECT_EQ(made * 2 * kMiB, movable_->on_card()) << "one at a time, and it stays";
    EXPECT_EQ(6 * kMiB, movable_->off_card()) << "nothing may run yet";
  }
  EXPECT_EQ(0u, bytes);
  Write(b, 2);
  EXPECT_EQ(Back::kAll, BringBack());
  EXPECT_EQ(6 * kMiB, returned_);
  EXPECT_EQ(1u, Read(a));
  EXPECT_EQ(2u, Read(b)) << "written while it had its place and nothing else had";
  EXPECT_EQ(3u, Read(c));
}

TEST_F(MovableTest, WhatHasItsPlaceIsGivenBackWhenTheCardIsFull) {
  const GpuVa a = Alloc(2 * kMiB), b = Alloc(2 * kMiB);
  const Told told("card_mib=4");
  const GpuVa c = Alloc(2 * kMiB);  // never was on the card
  Write(a, 1);
  Evict();
  uint64_t bytes = 0;
  EXPECT_EQ(Back::kStopped, *movable_->BringBack(stopped_, &bytes));
  EXPECT_EQ(Back::kStopped, *movable_->BringBack(stopped_, &bytes));
  EXPECT_EQ(4 * kMiB, movable_->on_card());
  Write(b, 2);
  EXPECT_EQ(Back::kStopped, *movable_->BringBack(stopped_, &bytes)) << "giving back takes time, too";
  EXPECT_EQ(2 * kMiB, movable_->on_card());
  EXPECT_EQ(Back::kNoRoom, *movable_->BringBack(stopped_, &bytes));
  EXPECT_EQ(0u, movable_->on_card());
  EXPECT_EQ(6 * kMiB, movable_->off_card());
  ASSERT_TRUE(gpu().Free(c));
  EXPECT_EQ(Back::kAll, BringBack());
  EXPECT_EQ(1u, Read(a));
  EXPECT_EQ(2u, Read(b));
}

// It was never on the card before, so the host has nothing of it yet.
TEST_F(MovableTest, WhatIsWrittenToAPlaceThatIsGivenBackIsKept) {
  GpuVa b{0};
  {
    const Told told("card_mib=2");
    Alloc(2 * kMiB);
    b = Alloc(2 * kMiB);
    Alloc(2 * kMiB);
    Evict();
  }
  const Told told("card_mib=4");
  uint64_t bytes = 0;
  EXPECT_EQ(Back::kStopped, *movable_->BringBack(stopped_, &bytes));
  EXPECT_EQ(Back::kStopped, *movable_->BringBack(stopped_, &bytes));
  Write(b, 2);
  EXPECT_EQ(Back::kNoRoom, BringBack());
  EXPECT_EQ(0u, movable_->on_card());
  EXPECT_EQ(2u, Read(b));
}

TEST_F(MovableTest, WhatHasItsPlaceCanLeaveAgain) {
  const GpuVa a = Alloc(2 * kMiB);
  Alloc(2 * kMiB);
  Write(a, 1);
  Evict();
  uint64_t bytes = 0;
  EXPECT_EQ(Back::kStopped, *movable_->BringBack(stopped_, &bytes));
  EXPECT_EQ(2 * kMiB, Evict());
  EXPECT_EQ(0u, movable_->on_card());
  EXPECT_EQ(Back::kAll, BringBack());
  EXPECT_EQ(1u, Read(a));
}

TEST_F(MovableTest, WhatIsHalfBackCanLeaveAgain) {
  const GpuVa a = Alloc(16 * kMiB);
  Write(a, 7);
  Write(Behind(a, 12 * kMiB), 8);
  Evict();
  uint64_t bytes = 0;
  EXPECT_EQ(Back::kStopped, *movable_->BringBack(stopped_, &bytes));
  Notes();
  EXPECT_EQ(16 * kMiB, Evict());
  EXPECT_EQ("unmap 16777216\nrelease\n", Notes());
  EXPECT_EQ(Back::kAll, BringBack());
  EXPECT_EQ(7u, Read(a));
  EXPECT_EQ(8u, Read(Behind(a, 12 * kMiB)));
}

TEST_F(MovableTest, CopiesAndFillsFindItInTheHost) {
  const GpuVa a = Alloc(2 * kMiB), b = Alloc(2 * kMiB);
  Write(a, 9);
  Evict();
  ASSERT_TRUE(gpu().CopyDev(b, a, 4));
  ASSERT_TRUE(gpu().Fill(Behind(b, 4), 0x22, 1, 4));
  EXPECT_EQ(9u, Read(b));
  EXPECT_EQ(Back::kAll, BringBack());
  EXPECT_EQ(9u, Read(b));
  EXPECT_EQ(0x22222222u, Read(Behind(b, 4)));
  EXPECT_FALSE(gpu().CopyDev(b, Behind(a, 2 * kMiB - 2), 4)) << "beyond its end";
}

TEST_F(MovableTest, AddressesAreUsedAgain) {
  const GpuVa a = Alloc(2 * kMiB), b = Alloc(2 * kMiB);
  EXPECT_EQ(Raw(a) + 2 * kMiB, Raw(b));
  ASSERT_TRUE(gpu().Free(a));
  EXPECT_EQ(Raw(b) + 2 * kMiB, Raw(Alloc(4 * kMiB))) << "no room before";
  EXPECT_EQ(a, Alloc(2 * kMiB));
}

TEST_F(MovableTest, GuestsMapNothingThere) {
  const uint64_t memory = *gpu().CreateMappable(2 * kMiB);
  EXPECT_EQ(CuStatus::kOutOfMemory,
            gpu().MapMemory(memory, 0, GpuVa{Movable::first_address()}, 2 * kMiB).error().status);
  EXPECT_TRUE(gpu().MapMemory(memory, 0, GpuVa{Movable::first_address() - 2 * kMiB}, 2 * kMiB));
}

TEST(MovableCard, WithoutAddressesThatStayItIsRefused) {
  const Told told("elsewhere=1");
  Card::Choice choice{Library(), {}};
  choice.oversubscribe = true;
  const auto card = Card::Open(choice);
  ASSERT_FALSE(card);
  EXPECT_THAT(card.error().context, HasSubstr("leave out --cuda-oversubscribe"));
}

}  // namespace
}  // namespace vgpud::driver
