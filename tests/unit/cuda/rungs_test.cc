// SPDX-License-Identifier: Apache-2.0
// Kernels that leave in the middle of a block, and what the self-test says of each way to take kernels away.
#include "gpu/cuda/rung.h"
#include "gpu/cuda/self_test.h"
#include "gpu/cuda/self_test_ptx.h"
#include "gpu/cuda/slot_rooms.h"
#include "tests/unit/cuda/cuda_fixture.h"

namespace vgpud::driver {
namespace {

// A kernel with a loop, of which four blocks are on the GPU at once.
class CudaSafepointsTest : public CudaTurnsTest {
 protected:
  const FunctionInfo& Endless() {
    memory_ = *gpu_->Alloc(64 + 4 * 64 * 16);
    module_ = *gpu_->Load(Bytes(kSelfTestPtx, sizeof kSelfTestPtx));
    return *module_->Function("endless");
  }
  GpuResult<std::unique_ptr<GpuGrid>> LaunchEndless(const FunctionInfo& function) {
    const uint64_t params[] = {Raw(memory_) + 64, Raw(memory_)};
    return gpu_->Launch(function, kFour, Bytes(params, sizeof params), 0);
  }
  void Release() { EXPECT_TRUE(gpu_->WriteWord(memory_, 4, 1)); }

  static constexpr LaunchShape kFour{{4, 1, 1}, {64, 1, 1}, 0};
  GpuVa memory_{};
};

TEST_F(CudaSafepointsTest, ABlockThatNeverEndsLeavesAndGoesOn) {
  const FunctionInfo& endless = Endless();
  const uint64_t room = gpu_->RoomFor(endless, kFour);
  ASSERT_NE(0u, room);
  EXPECT_FALSE(gpu_->HasRoom({&room, 1}));
  ASSERT_TRUE(gpu_->MakeRoom(room));
  EXPECT_TRUE(gpu_->HasRoom({&room, 1}));
  auto grid = LaunchEndless(endless);
  EXPECT_EQ(GpuGrid::Progress::kYield, *(*grid)->Run(go_on_, 1));
  EXPECT_EQ(GpuGrid::Progress::kStopped, *(*grid)->Run(stopped_, 1));
  EXPECT_FALSE(Busy());
  EXPECT_EQ(0u, gpu_->DropRoom()) << "what it has saved is in there";
  EXPECT_EQ(GpuGrid::Progress::kYield, *(*grid)->Run(go_on_, 1));
  EXPECT_EQ(GpuGrid::Progress::kStopped, *(*grid)->Run(stopped_, 1));
  Release();
  EXPECT_EQ(GpuGrid::Progress::kDone, *(*grid)->Run(go_on_, 1));
  EXPECT_THAT(Printed(), HasSubstr("turn of 4 blocks (0) from")) << "four that go on, and no fresh ones";
  (*grid).reset();
  EXPECT_EQ(gpu_->RoomBytes(room), gpu_->DropRoom());
}

TEST_F(CudaSafepointsTest, WithoutRoomItIsWaitedForAsBlocksAre) {
  auto grid = LaunchEndless(Endless());
  EXPECT_EQ(GpuGrid::Progress::kYield, *(*grid)->Run(go_on_, 1));
  Release();
  EXPECT_EQ(GpuGrid::Progress::kDone, *(*grid)->Run(stopped_, 1));
}

TEST_F(CudaSafepointsTest, WithoutABoundOfItsBlocksThereIsNoRoom) {
  const Told told("occupancy=0");
  EXPECT_EQ(0u, gpu_->RoomFor(Endless(), kFour));
}

TEST_F(CudaSafepointsTest, TheRoomIsForTwiceWhatRunsAtOnceAndNoMoreThanTheGrid) {
  const FunctionInfo& endless = Endless();
  const auto slots = [&](uint32_t blocks) {
    return SlotNeedOf(Backend().card(), static_cast<const driver::Kernel&>(endless), {{blocks, 1, 1}, {64, 1, 1}, 0})
        .slots;
  };
  EXPECT_EQ(3u, slots(3));
  EXPECT_EQ(8u, slots(1'000'000));
  const LaunchShape cooperative{{4, 1, 1}, {64, 1, 1}, 0, true};
  EXPECT_EQ(0u, gpu_->RoomFor(endless, cooperative));
  EXPECT_EQ(0u, gpu_->RoomFor(endless, {{4, 1, 1}, {UINT32_MAX, UINT32_MAX, 64}, 0}));
}

TEST_F(CudaSafepointsTest, RoomsAreCountedForEachThatNeedsOne) {
  const uint64_t small = 1000, large = 5 << 20;
  ASSERT_TRUE(gpu_->MakeRoom(large));
  ASSERT_TRUE(gpu_->MakeRoom(small));
  const auto has = [&](std::vector<uint64_t> each) { return gpu_->HasRoom(each); };
  EXPECT_TRUE(has({small, large}));
  EXPECT_TRUE(has({0, small, 0, small}));
  EXPECT_FALSE(has({large, large}));
  EXPECT_FALSE(has({small, small, small}));
  EXPECT_FALSE(gpu_->MakeRoom(uint64_t{1} << 40));
  EXPECT_EQ(gpu_->RoomBytes(small) + gpu_->RoomBytes(large), gpu_->DropRoom());
}

// What the self-test says of a rung, with the driver as FAKE_CUDA says.
std::string Tried(const char* name, const char* told) {
  const Told fake(told);
  const auto card = *Card::Open({Library(), {}, FindRung(name).value_or(rewrite::Rung::kNone)});
  Printed printed;
  CudaGpu gpu(*card, printed);
  const auto seen = TestRung(gpu, name, [] {});
  return seen ? "works: " + *seen : seen.error().context;
}

TEST(SelfTest, EachRungIsTriedAndSaysWhatWasSeen) {
  EXPECT_THAT(Tried("gate", ""), testing::StartsWith("works: a kernel that ran"));
  EXPECT_THAT(Tried("blocks", ""), testing::ContainsRegex("^works: .* of its 8192 blocks to come"));
  EXPECT_THAT(Tried("safepoints", ""), testing::StartsWith("works: a kernel without an end left 3 times"));
}

TEST(SelfTest, ARungThatDoesNotWorkIsFound) {
  EXPECT_THAT(Tried("gate", "early=1"), HasSubstr("was told to have ended"));
  EXPECT_THAT(Tried("blocks", "loses=3"), HasSubstr("not each once"));
  EXPECT_THAT(Tried("blocks", "loses=5000"), HasSubstr("not each once"));
  EXPECT_THAT(Tried("blocks", "turns=218"), HasSubstr("refuses its rewritten PTX"));
  EXPECT_THAT(Tried("blocks", "maps=801"), HasSubstr("no stop word"));
  EXPECT_THAT(Tried("safepoints", "forgets=1"), HasSubstr("computed something wrong"));
  EXPECT_THAT(Tried("safepoints", "occupancy=0"), HasSubstr("how many blocks"));
  EXPECT_THAT(Tried("magic", ""), HasSubstr("no way"));
}

}  // namespace
}  // namespace vgpud::driver
