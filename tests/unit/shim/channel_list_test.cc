// SPDX-License-Identifier: Apache-2.0
// What VGPU_CHANNEL may be, and the addresses of devices that are on no bus.
#include "guest-driver-shim/libcuda/channel/channel_list.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <tuple>

#include "guest-driver-shim/libcuda/channel/pci_address.h"
#include "tests/scratch_dir.h"

namespace vgpud::cuda {
namespace {

using Paths = std::vector<std::string>;

TEST(ChannelList, IsPathsWithCommasBetween) {
  EXPECT_EQ((Paths{"/a"}), ParseChannelList("/a").sockets);
  EXPECT_EQ((Paths{"/b", "/a", "fd:3"}), ParseChannelList("/b,/a,fd:3").sockets) << "in their order";
  EXPECT_EQ((Paths{"/a", "/b"}), ParseChannelList(",/a,,/b,").sockets);
  for (const char* none : {"", ",", ",,"}) {
    EXPECT_EQ(Paths{}, ParseChannelList(none).sockets);
    EXPECT_EQ("VGPU_CHANNEL names no socket", ParseChannelList(none).why);
  }
}

TEST(ChannelList, ADirectoryStandsForTheSocketsInIt) {
  const ScratchDir made;
  const std::string& folder = made.path();
  EXPECT_EQ(Paths{}, ParseChannelList(folder).sockets);
  EXPECT_EQ(folder + ": no file in that directory ends with .channel.sock", ParseChannelList(folder).why);
  for (const char* name : {"b.channel.sock", "a.channel.sock", "a.sock", ".channel.sock", "c.channel.sock.old"})
    std::ofstream(folder + "/" + name) << "x";
  const Paths both = {folder + "/a.channel.sock", folder + "/b.channel.sock"};
  EXPECT_EQ(both, ParseChannelList(folder).sockets);
  EXPECT_EQ("", ParseChannelList(folder).why);
  EXPECT_EQ((Paths{"/x", both[0], both[1], "/y"}), ParseChannelList("/x," + folder + ",/y").sockets);
  EXPECT_EQ((Paths{folder + "/a.sock"}), ParseChannelList(folder + "/a.sock").sockets)
      << "a file may be called anything";
}

TEST(ChannelList, IsReadFromTheEnvironmentElseFromTheUsualFolder) {
  const ScratchDir made;
  const std::string& folder = made.path();
  unsetenv("VGPU_CHANNEL");
  for (const char* value : {"", static_cast<const char*>(nullptr)}) {
    if (value != nullptr) setenv("VGPU_CHANNEL", value, 1);
    EXPECT_FALSE(ChannelsOfEnvironment(folder)) << "it is empty";
    EXPECT_FALSE(ChannelsOfEnvironment(folder + "/no")) << "it is not there";
    unsetenv("VGPU_CHANNEL");
  }
  std::ofstream(folder + "/a.channel.sock") << "x";
  ASSERT_TRUE(ChannelsOfEnvironment(folder));
  EXPECT_EQ((Paths{folder + "/a.channel.sock"}), ChannelsOfEnvironment(folder)->sockets);
  setenv("VGPU_CHANNEL", "/a,/b", 1);
  EXPECT_EQ((Paths{"/a", "/b"}), ChannelsOfEnvironment(folder)->sockets);
  unsetenv("VGPU_CHANNEL");
}

TEST(PciAddress, IsMadeOfTheUuid) {
  uint8_t uuid[16];
  for (int i = 0; i < 16; ++i) uuid[i] = static_cast<uint8_t>(0xa0 + i);
  EXPECT_EQ((PciAddress{0x843e, 0x30, 0x12}), PciAddressOf(uuid)) << "for ever: programs may have written it down";
  std::set<std::tuple<unsigned, unsigned, unsigned>> all;
  for (unsigned i = 0; i < 4096; ++i) {
    uuid[4] = static_cast<uint8_t>(i);
    uuid[15] = static_cast<uint8_t>(i >> 8);
    const PciAddress address = PciAddressOf(uuid);
    EXPECT_EQ(1u, address.domain >> 15) << "no domain of a host's buses";
    EXPECT_LT(address.domain, 0x10000u);
    EXPECT_LT(address.bus, 256u);
    EXPECT_LT(address.device, 32u);
    all.insert({address.domain, address.bus, address.device});
  }
  EXPECT_EQ(4096u, all.size());
}

}  // namespace
}  // namespace vgpud::cuda
