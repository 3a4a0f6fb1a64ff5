// SPDX-License-Identifier: Apache-2.0
// What a VF does with executors that break the rules of their link.
#include "base/signal_socket.h"
#include "tests/unit/vfio/vf_rig.h"

namespace vgpud::vfio {
namespace {

class BadExecutorsTest : public VfRig {};

TEST_F(BadExecutorsTest, AnExecutorThatAnswersWhatWaitsForItIsKilled) {
  SetControlPage();
  const auto executor = OpenWithExecutor(0);
  executor->Drain();
  std::vector<vgpu_segment> segments;
  for (uint64_t i = 0; i < 30'000; ++i) segments.push_back({kRamBase + 0x800000 + (i & 1) * 0x2000, 4096});
  ASSERT_EQ(0, Command(VGPU_CTRL_BUFFER_ADD, 0, 1, segments));
  ASSERT_EQ(0, Command(VGPU_CTRL_BUFFER_REMOVE, 0, 1));
  to_vgpud.clear();
  ASSERT_TRUE(SendStruct(executor->socket.get(), exec_link::Area{exec_link::Kind::kUnmapped, 1}));
  Pump();
  ASSERT_EQ(1u, to_vgpud.size());
  EXPECT_EQ(vf_link::Kind::kKillExecutor, to_vgpud[0].kind);
}

TEST_F(BadExecutorsTest, AnExecutorThatHasNothingToUnmapChangesNothing) {
  SetControlPage();
  const auto executor = OpenWithExecutor(0);
  ASSERT_EQ(0, Command(VGPU_CTRL_BUFFER_ADD, 0, 1, {{kRamBase + 0x800000, 0x1000}}));
  for (const uint32_t area : {0u, 1u, 2u, 0x7fffffffu, ~0u})
    ASSERT_TRUE(SendStruct(executor->socket.get(), exec_link::Area{exec_link::Kind::kUnmapped, area}));
  for (int i = 0; i < 5; ++i) Pump();
  EXPECT_EQ(0u, Page()->buffer_ack[0]);
  EXPECT_EQ(-EEXIST, Command(VGPU_CTRL_BUFFER_ADD, 0, 1, {{kRamBase + 0x800000, 0x1000}}));
}

TEST_F(BadExecutorsTest, AnExecutorThatFloodsItsLinkIsReadMoreSlowly) {
  SetControlPage();
  const auto executor = OpenWithExecutor(0);
  uint64_t served = 0;
  const TimePoint start = Now();
  while (Now() - start < std::chrono::milliseconds{1500}) {
    while (SendStruct(executor->socket.get(), exec_link::Vram{exec_link::Kind::kVramRequest, 0, 0, 0})) continue;
    Pump();
    executor->Drain();
    served += executor->messages.size();
    executor->messages.clear();
  }
  EXPECT_LE(served, 20'000u + 20'000u * std::chrono::duration<double>(Now() - start).count() + 10);
  EXPECT_EQ(VGPU_CHANNEL_OPEN, Page()->channel_state[0]);
}

TEST_F(BadExecutorsTest, AnExecutorThatNeverReadsItsAnswersIsKilledAndItsMemoryFreed) {
  SetControlPage();
  const auto executor = OpenWithExecutor(0);
  for (int i = 0; i < 4000; ++i) {
    (void)SendStruct(executor->socket.get(), exec_link::Vram{exec_link::Kind::kVramRequest, 0, 0, 0});
    if (i % 100 == 0) Pump();
  }
  Pump();
  executor->Die();  // as SIGKILL does
  Pump();
  EXPECT_EQ(VGPU_CHANNEL_LOST, Page()->channel_state[0]);
}

TEST_F(BadExecutorsTest, AnExecutorThatTalksNonsenseIsEnded) {
  SetControlPage();
  const auto executor = OpenWithExecutor(0);
  executor->Drain();
  ASSERT_TRUE(SendStruct(executor->socket.get(), uint32_t{99}));
  Pump();
  EXPECT_EQ(std::errc::not_connected, ReceiveMessage(executor->socket.get()).error().code);
}

}  // namespace
}  // namespace vgpud::vfio
