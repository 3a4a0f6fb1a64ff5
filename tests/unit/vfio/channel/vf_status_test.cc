// SPDX-License-Identifier: Apache-2.0
// What guests and clients are told of the VF without a channel.
#include "vfio/channel/vf_status.h"

#include <cstring>

#include "tests/unit/vfio/channel/channel_rig.h"

namespace vgpud::vfio {
namespace {

constexpr TimePoint kNow{Ns{5'000}};

class VfStatusTest : public ChannelRig {
 protected:
  vgpu_status Status() const { return StatusOf(figures, *table, kNow); }
  void Hold(uint32_t channel, int64_t bytes) { ASSERT_TRUE(ledgers.vram.Change(channel, bytes)); }
};

TEST_F(VfStatusTest, SaysWhatVgpudSaidAndNothingOfAnybodyElse) {
  figures.name = std::string(70, 'n');
  figures.gpu_name = std::string(70, 'g');
  figures.uuid = {1, 2, 3};
  figures.slice_us = 2'000;
  figures.weight = 300;
  figures.vf_state = VGPU_VF_PARKED;
  figures.gpu_percent = 42;
  figures.capability = 89;
  figures.cuda_version = 12040;
  const vgpu_status status = Status();
  EXPECT_EQ(uint32_t{sizeof status}, status.bytes);
  EXPECT_EQ(uint32_t{VGPU_VF_PARKED}, status.vf_state);
  EXPECT_EQ(5'000u, status.now_ns);
  EXPECT_EQ(1u << 30, status.vram_bytes);
  EXPECT_EQ(0u, status.vram_used_bytes);
  EXPECT_EQ(42u, status.gpu_percent);
  EXPECT_EQ(89u, status.capability);
  EXPECT_EQ(12040u, status.cuda_version);
  EXPECT_EQ(2'000u, status.slice_us);
  EXPECT_EQ(300u, status.weight);
  EXPECT_EQ(3, status.uuid[2]);
  EXPECT_EQ(std::string(63, 'n') + '\0', std::string(status.name, 64));
  EXPECT_EQ(std::string(63, 'g') + '\0', std::string(status.gpu_name, 64));
  for (const uint64_t word : status.mbz) EXPECT_EQ(0u, word);
  for (const vgpu_status_channel& channel : status.channel) {
    EXPECT_EQ(0u, channel.id);
    EXPECT_EQ(0u, channel.pid | channel.flags);
    EXPECT_EQ(0u, channel.vram_bytes | channel.gpu_ns);
  }
}

TEST_F(VfStatusTest, WhatAVgpudSaidOfTheUseOfTheGpuGoesWithIt) {
  GrantPage& page = slice_memory.grant_page();
  figures.grants = &slices.grant_page();
  figures.gpu_percent = 42;
  figures.told_ns = 1'000;
  EXPECT_EQ(42u, Status().gpu_percent);
  page.vgpud_gone_ns.store(1'001);
  EXPECT_EQ(0u, Status().gpu_percent);
  figures.told_ns = 1'002;  // by the next one
  EXPECT_EQ(42u, Status().gpu_percent);
}

TEST_F(VfStatusTest, ListsTheChannelsThatHaveAnExecutorOrWaitForOne) {
  ASSERT_EQ(std::errc{}, Open(3));
  ASSERT_TRUE(table->Open(5, Request({}, 4711)));
  const auto executor = SendExecutor();
  Hold(5, 100);
  Hold(3, 20);
  Hold(4, 7);  // nobody's
  vgpu_status status = Status();
  EXPECT_EQ(127u, status.vram_used_bytes);
  EXPECT_EQ(1u, status.channel[0].id);
  EXPECT_EQ(7u, status.channel[0].pid);
  EXPECT_EQ(20u, status.channel[0].vram_bytes);
  EXPECT_EQ(2u, status.channel[1].id);
  EXPECT_EQ(4711u, status.channel[1].pid);
  EXPECT_EQ(100u, status.channel[1].vram_bytes);
  EXPECT_EQ(0u, status.channel[2].id);
  executor->Die();
  Pump();
  status = Status();
  EXPECT_EQ(1u, status.channel[0].id);
  EXPECT_EQ(0u, status.channel[1].id) << "lost";
  EXPECT_EQ(27u, status.vram_used_bytes);
}

TEST_F(VfStatusTest, AllChannelsFit) {
  for (uint32_t i = 0; i < VGPU_MAX_CHANNELS; ++i) ASSERT_EQ(std::errc{}, Open(i));
  const vgpu_status status = Status();
  EXPECT_EQ(uint64_t{VGPU_MAX_CHANNELS}, status.channel[VGPU_MAX_CHANNELS - 1].id);
}

TEST_F(VfStatusTest, TheTimeOnTheGpuIsTheExecutorsClock) {
  ASSERT_EQ(std::errc{}, Open(3));
  const auto executor = SendExecutor();
  ExecClock& clock = slices.slot_page().clocks[3];
  EXPECT_EQ(0u, Status().channel[0].gpu_ns);
  clock.on_gpu_ns = 900;
  EXPECT_EQ(900u, Status().channel[0].gpu_ns);
  clock.since_ns = 4'000;
  EXPECT_EQ(1'900u, Status().channel[0].gpu_ns) << "and has been there since";
  clock.since_ns = 6'000;
  EXPECT_EQ(900u, Status().channel[0].gpu_ns) << "not since later than now";
  EXPECT_EQ(0u, Status().channel[0].flags);
  clock.has_context = 7;
  EXPECT_EQ(VGPU_STATUS_CONTEXT, Status().channel[0].flags);
  executor->Die();
  Pump();
  EXPECT_EQ(0u, clock.has_context);
  EXPECT_EQ(0u, clock.since_ns) << "who is dead is not on the GPU";
}

}  // namespace
}  // namespace vgpud::vfio
