// SPDX-License-Identifier: Apache-2.0
// What a VF's channels are told when all of them are closed: the VF is reset, or ends.
#include "tests/unit/vfio/vf_rig.h"

namespace vgpud {
namespace {

class ChannelTableTest : public VfRig {};

TEST_F(ChannelTableTest, AllAreClosedThoseWithoutAnExecutorToo) {
  SetControlPage();
  const auto executor = OpenWithExecutor(0);
  const auto lost = OpenWithExecutor(1);
  lost->Die();
  Pump();
  FillHeader(kChannelAt + 0x200000);
  ASSERT_EQ(0, Command(VGPU_CTRL_CHANNEL_CREATE, 2, 0, ChannelSegments(kChannelAt + 0x200000)));
  ASSERT_EQ(channels->State(0), VGPU_CHANNEL_OPEN);
  ASSERT_EQ(channels->State(1), VGPU_CHANNEL_LOST);
  ASSERT_EQ(channels->State(2), VGPU_CHANNEL_OPEN);

  channels->CloseAll();
  EXPECT_EQ(channels->State(0), VGPU_CHANNEL_CLOSING) << "until its executor has gone";
  Pump();
  EXPECT_EQ(channels->State(1), VGPU_CHANNEL_FREE);
  EXPECT_EQ(channels->State(2), VGPU_CHANNEL_FREE);
  executor->Die();
  Pump();
  EXPECT_EQ(channels->State(0), VGPU_CHANNEL_FREE);
  channels->CloseAll();
}

}  // namespace
}  // namespace vgpud
