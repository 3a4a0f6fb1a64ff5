// SPDX-License-Identifier: Apache-2.0
// What a libvirt that knows <hostdev type='vfio-user'> says of itself and of its domains.
#include <gtest/gtest.h>

#include "tests/unit/libvirt/domains.h"
#include "tools/libvirt/hostdev.h"

namespace vgpud::tools {
namespace {

XmlNode Capabilities(const std::string& hostdev) {
  return Parsed("<domainCapabilities><devices>" + hostdev + "</devices></domainCapabilities>");
}

TEST(LibvirtNative, IsKnownByItsCapabilities) {
  const std::string pci = "<value>pci</value>", ours = "<value>vfio-user</value>";
  const auto hostdev = [](const std::string& supported, const std::string& name, const std::string& values) {
    return Capabilities("<hostdev supported='" + supported +
                        "'><enum name='mode'><value>subsystem</value></enum><enum name='" + name + "'>" + values +
                        "</enum></hostdev>");
  };
  EXPECT_TRUE(KnowsHostdev(hostdev("yes", "subsysType", pci + ours)));
  EXPECT_FALSE(KnowsHostdev(hostdev("yes", "subsysType", pci)));
  EXPECT_FALSE(KnowsHostdev(hostdev("no", "subsysType", ours)));
  EXPECT_FALSE(KnowsHostdev(hostdev("yes", "capsType", ours)));
  EXPECT_FALSE(KnowsHostdev(Capabilities("")));
}

XmlNode Running(const std::string& devices) { return Parsed("<domain><devices>" + devices + "</devices></domain>"); }

std::string Device(const std::string& source, const std::string& managed = "yes") {
  return "<hostdev mode='subsystem' type='vfio-user' managed='" + managed + "'><source " + source +
         "/><alias name='hostdev0'/><address type='pci' bus='0x01' slot='0x00'/></hostdev>";
}

TEST(LibvirtNative, ReadsWhatRuns) {
  const auto read = ReadNative(Running(Device("path='/run/vgpud/vf/a.sock' vf='a' profile='1/4' weight='300'") +
                                       Device("path='/run/vgpud/vf/b.sock' vf='b'", "no")),
                               kPlaces);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->is_native);
  ASSERT_EQ(read->hostdevs.size(), 2U);
  const std::vector<std::pair<std::string, std::string>> settings = {{"profile", "1/4"}, {"weight", "300"}};
  EXPECT_EQ(read->hostdevs[0].vf, "a");
  EXPECT_EQ(read->hostdevs[0].settings, settings);
  EXPECT_EQ(read->hostdevs[0].alias, "hostdev0");
  EXPECT_TRUE(read->hostdevs[0].managed);
  EXPECT_FALSE(read->hostdevs[1].managed);
}

TEST(LibvirtNative, DevicesOfOthersAreNoneOfOurs) {
  for (const char* source :
       {"path='/run/other.sock'", "path='/run/vgpud/vf/a.sock'", "path='/run/other/vf/a.sock' vf='a'", "vf='a'"})
    EXPECT_TRUE(ReadNative(Running(Device(source)), kPlaces)->hostdevs.empty()) << source;
  EXPECT_TRUE(ReadNative(Running("<hostdev type='pci'><source vf='a'/></hostdev>"), kPlaces)->hostdevs.empty());
  EXPECT_TRUE(ReadNative(Parsed("<domain/>"), kPlaces)->hostdevs.empty());
}

TEST(LibvirtNative, WhatCantBeANameIsRefused) {
  for (const char* source :
       {"path='/run/vgpud/vf/a b.sock' vf='a b'", "path='/run/vgpud/vf/a.sock' vf='a' weight='&lt;'"})
    EXPECT_FALSE(ReadNative(Running(Device(source)), kPlaces).has_value()) << source;
}

}  // namespace
}  // namespace vgpud::tools
