// SPDX-License-Identifier: Apache-2.0
// Device memory for what kernels leave when a turn ends: made before they are queued, of the VF's VRAM.
#include "tests/unit/exec/fakes/exec_rig.h"

namespace vgpud::exec {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint32_t kOther = VGPU_STREAM_FIRST;

struct RoomRig : ExecRig {
  RoomRig() {
    kernel = Kernel("a");
    Grant();
    script->room_for_launch = 4 * kMiB;  // takes 8
  }
  uint64_t Free() { return Done(guest.Submit({VGPU_OP_MEM_INFO})).value[0]; }
  void Launch(uint32_t stream = 0) { EXPECT_EQ(0u, Status(guest.Launch(kernel, stream))); }
  uint64_t kernel = 0;
};

TEST(Room, IsMadeOnceForAStreamAndCharged) {
  RoomRig rig;
  const uint64_t before = rig.Free();
  rig.Launch();
  rig.Launch();
  EXPECT_EQ((std::vector<uint64_t>{4 * kMiB}), rig.script->rooms);
  EXPECT_EQ(before - 8 * kMiB, rig.Free());
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_STREAM_CREATE, {kOther, 0, 0}})));
  rig.Launch(kOther);
  rig.Launch(kOther);
  EXPECT_EQ(2u, rig.script->rooms.size()) << "kernels of two streams can run together";
  rig.script->room_for_launch = 6 * kMiB;
  rig.Launch(kOther);
  EXPECT_EQ(before - 16 * kMiB, rig.Free()) << "two rooms are enough for two streams";
  rig.Done(rig.guest.Submit({VGPU_OP_CONTEXT_RESET}));
  EXPECT_EQ(before, rig.Free());
}

TEST(Room, ASecondOneForLaunchesBehindEachOther) {
  RoomRig rig;
  const uint64_t before = rig.Free();
  const uint64_t last =
      (rig.guest.Launch(rig.kernel, 0), rig.guest.Launch(rig.kernel, 0), rig.guest.Launch(rig.kernel, 0));
  EXPECT_EQ(0u, rig.Status(last));
  EXPECT_EQ((std::vector<uint64_t>{4 * kMiB, 4 * kMiB}), rig.script->rooms);
  EXPECT_EQ(before - 16 * kMiB, rig.Free());
}

TEST(Room, NoSecondLargeOne) {
  RoomRig rig;
  rig.script->room_for_launch = 17 * kMiB;
  EXPECT_EQ(0u, rig.Status((rig.guest.Launch(rig.kernel, 0), rig.guest.Launch(rig.kernel, 0))));
  EXPECT_EQ(1u, rig.script->rooms.size());
}

// It could take the room of another stream.
TEST(Room, WhereTwoStreamsHaveOneNothingIsLaunchedBehind) {
  RoomRig rig;
  rig.script->launches_behind = true;
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_STREAM_CREATE, {kOther, 1, 0}})));
  const auto two = [&] { return rig.Status((rig.guest.Launch(rig.kernel, 0), rig.guest.Launch(rig.kernel, 0))); };
  EXPECT_EQ(0u, two());
  EXPECT_EQ(1u, rig.script->behind.size());
  rig.Launch(kOther);
  EXPECT_EQ(0u, two());
  EXPECT_EQ(1u, rig.script->behind.size());
  rig.Done(rig.guest.Submit({VGPU_OP_CONTEXT_RESET}));
}

TEST(Room, AKernelThatUsesNoneNeedsNone) {
  RoomRig rig;
  rig.script->room_for_launch = 0;
  rig.Launch();
  EXPECT_TRUE(rig.script->rooms.empty());
}

TEST(Room, WithoutVramTheKernelRunsAllTheSame) {
  RoomRig rig;
  const uint64_t all = rig.Free() - 4 * kMiB;
  const uint64_t memory = rig.Alloc(all);
  rig.Launch();
  EXPECT_TRUE(rig.script->rooms.empty());
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_MEM_FREE, {memory}})));
  rig.Launch();
  EXPECT_EQ(1u, rig.script->rooms.size()) << "asked again when memory was freed";
}

TEST(Room, WhatTheCardRefusesIsNotCharged) {
  RoomRig rig;
  const uint64_t before = rig.Free();
  rig.script->rooms_refused = 1;
  rig.Launch();
  rig.Launch();
  EXPECT_TRUE(rig.script->rooms.empty()) << "asked once";
  EXPECT_EQ(before, rig.Free());
}

TEST(Room, IsGivenUpForMemoryThatTheProgramAsksFor) {
  RoomRig rig;
  const uint64_t all = rig.Free();
  rig.Launch();
  EXPECT_EQ(1u, rig.script->rooms.size());
  (void)rig.Alloc(all);
  EXPECT_TRUE(rig.script->rooms.empty());
  rig.Launch();
  EXPECT_TRUE(rig.script->rooms.empty());
}

}  // namespace
}  // namespace vgpud::exec
