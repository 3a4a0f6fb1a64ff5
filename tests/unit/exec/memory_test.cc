// SPDX-License-Identifier: Apache-2.0
// Host memory of a channel: what waits for it, what fails without it, and that it comes back.
#include "tests/unit/exec/fakes/exec_rig.h"

namespace vgpud::exec {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint32_t kOutOfMemory = static_cast<uint32_t>(CuStatus::kOutOfMemory);

struct MemoryRig : ExecRig {
  explicit MemoryRig(uint64_t quota) : ExecRig(0x200000, quota) { Grant(); }
  // Kernels of this size of block from now on.
  void Blocks(uint64_t bytes) {
    script->memory = host.get();
    script->block_bytes = bytes;
  }
  void Streams(uint32_t count) {
    for (uint32_t s = 0; s < count; ++s)
      guest.Submit({VGPU_OP_STREAM_CREATE, {VGPU_STREAM_FIRST + s, VGPU_STREAM_NON_BLOCKING, 0}});
  }
};

TEST(HostMemoryOfAChannel, AnImageBeyondTheQuotaIsOutOfMemory) {
  MemoryRig rig(32 * kMiB);
  EXPECT_EQ(kOutOfMemory, rig.Status(rig.guest.Submit({VGPU_OP_MODULE_BEGIN, {1, 33 * kMiB}})));
  EXPECT_NE(std::string::npos, rig.error_text().find("host memory")) << rig.error_text();
  EXPECT_EQ(0u, rig.guest.sticky());
}

TEST(HostMemoryOfAChannel, UploadsCountUntilTheyEnd) {
  MemoryRig rig(32 * kMiB);
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_MODULE_BEGIN, {1, 20 * kMiB}})));
  EXPECT_EQ(kOutOfMemory, rig.Status(rig.guest.Submit({VGPU_OP_MODULE_BEGIN, {2, 20 * kMiB}})));
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_MODULE_UNLOAD, {1}})));
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_MODULE_BEGIN, {2, 20 * kMiB}})));
}

TEST(HostMemoryOfAChannel, WhatAnotherChannelHoldsIsNotThere) {
  MemoryRig rig(32 * kMiB);
  rig.host_used = 20 * kMiB;
  EXPECT_EQ(kOutOfMemory, rig.Status(rig.guest.Submit({VGPU_OP_MODULE_BEGIN, {1, 20 * kMiB}})));
  rig.host_used = 0;
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_MODULE_BEGIN, {1, 20 * kMiB}})));
}

TEST(HostMemoryOfAChannel, AKernelWhoseBlockNeverFitsIsOutOfMemoryAndTheContextLivesOn) {
  MemoryRig rig(32 * kMiB);
  const uint64_t a = rig.Kernel("a");
  rig.Blocks(33 * kMiB);
  EXPECT_EQ(kOutOfMemory, rig.Status(rig.guest.Launch(a, 0)));
  rig.Blocks(8 * kMiB);
  EXPECT_EQ(0u, rig.Status(rig.guest.Launch(a, 0)));
  EXPECT_EQ(0u, rig.guest.sticky());
}

TEST(HostMemoryOfAChannel, AKernelThatDoesNotFitBesideAnotherRunsAfterIt) {
  MemoryRig rig(32 * kMiB);
  const uint64_t longer = rig.Kernel("long"), a = rig.Kernel("a");
  rig.Streams(2);
  rig.Blocks(20 * kMiB);
  const uint64_t first = rig.guest.Launch(longer, VGPU_STREAM_FIRST);
  const uint64_t second = rig.guest.Launch(a, VGPU_STREAM_FIRST + 1);
  EXPECT_EQ(0u, rig.Status(first));
  EXPECT_EQ(0u, rig.Status(second));
  EXPECT_EQ((std::vector<std::string>{"long", "a"}), rig.script->log);
}

TEST(HostMemoryOfAChannel, WhatOtherChannelsKeepMakesAKernelFailInsteadOfWait) {
  MemoryRig rig(32 * kMiB);
  const uint64_t a = rig.Kernel("a");
  rig.Blocks(20 * kMiB);
  rig.host_used = 20 * kMiB;
  EXPECT_EQ(kOutOfMemory, rig.Status(rig.guest.Launch(a, 0)));
}

TEST(HostMemoryOfAChannel, AResetForgetsWhoWaited) {
  MemoryRig rig(32 * kMiB);
  const uint64_t endless = rig.Kernel("endless"), a = rig.Kernel("a");
  rig.Streams(2);
  rig.Blocks(20 * kMiB);
  int steps = 0;
  rig.script->on_step = [&] {
    if (++steps == 50'000) rig.Revoke();
  };
  rig.guest.Launch(endless, VGPU_STREAM_FIRST);
  const uint64_t waiter = rig.guest.Launch(a, VGPU_STREAM_FIRST + 1);
  rig.Settle();
  EXPECT_TRUE(rig.Pending(waiter));
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_CONTEXT_RESET})));
  EXPECT_NE(0u, rig.Status(waiter));
  EXPECT_EQ(0, rig.script->live_grids);
}

// Each step of the long one is a moment at which nothing has come back.
TEST(HostMemoryOfAChannel, WhoWaitsForItWakesNobodyUntilSomeComesBack) {
  MemoryRig rig(32 * kMiB);
  const uint64_t longer = rig.Kernel("longer"), a = rig.Kernel("a");
  rig.Streams(2);
  rig.Blocks(20 * kMiB);
  rig.guest.Launch(longer, VGPU_STREAM_FIRST);
  const uint64_t second = rig.guest.Launch(a, VGPU_STREAM_FIRST + 1);
  rig.Consume();
  rig.progress = 0;
  EXPECT_EQ(0u, rig.Status(second));
  EXPECT_LT(rig.progress, 20);
}

// Memory that is there, and is not when a block wants it, again and again.
TEST(HostMemoryOfAChannel, AKernelThatMemoryDoesNotHelpIsOutOfMemory) {
  MemoryRig rig(32 * kMiB);
  const uint64_t a = rig.Kernel("a");
  rig.Blocks(kMiB);
  rig.script->no_blocks = true;
  EXPECT_EQ(kOutOfMemory, rig.Status(rig.guest.Launch(a, 0)));
  EXPECT_EQ(0u, rig.guest.sticky());
}

TEST(HostMemoryOfAChannel, GoesBackToTheVf) {
  MemoryRig rig(64 * kMiB);
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_MODULE_BEGIN, {1, 50 * kMiB}})));
  EXPECT_GE(rig.host_used, 50 * kMiB);
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_MODULE_UNLOAD, {1}})));
  rig.Settle();
  EXPECT_LE(rig.host_used, 5 * kMiB);
}

}  // namespace
}  // namespace vgpud::exec
