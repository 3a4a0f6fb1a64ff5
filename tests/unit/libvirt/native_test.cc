// SPDX-License-Identifier: Apache-2.0
// What a libvirt that knows <hostdev type='vfio-user'> says of itself and of its domains.
#include "tools/libvirt/native.h"

#include <gtest/gtest.h>

#include "tests/unit/libvirt/domains.h"
#include "tools/libvirt/lint.h"

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

TEST(LibvirtNative, KnowsItsVfsByNameAndBySocket) {
  const std::pair<const char*, std::set<std::string>> kRows[] = {
      {"vf='a'", {"a"}},
      {"path='/run/vgpud/vf/a.sock' vf='a' profile='1/4'", {"a"}},
      {"path='/run/vgpud/vf/a.sock'", {"a"}},
      {"path='/run/other/vf/a.sock' vf='a'", {}},
      {"path='/run/vgpud/vf/a.sock' vf='b'", {}},
      {"path='/run/other.sock'", {}},
      {"profile='1/4'", {}},  // libvirt will name it
      {"", {}}};
  for (const auto& [source, vfs] : kRows) EXPECT_EQ(VfsOf(Running(Device(source)), kPlaces), vfs) << source;
}

TEST(LibvirtNative, ItsWordsAreTold) {
  const auto with = [](const std::string& inside) {
    return IsInLibvirtsWords(Running("<hostdev mode='subsystem' type='vfio-user'>" + inside + "</hostdev>"));
  };
  for (const char* its :
       {"<source path='/run/a.sock'/>", "<source vf='a'/><alias name='hostdev0'/>",
        "<source vf='a'/><alias name='ua-x'/>", "<source vf='a'/><address type='pci' bus='0x02' slot='0x00'/>"})
    EXPECT_TRUE(with(its)) << its;
  for (const char* ours :
       {"", "<source vf='a'/>", "<source vf='a'/><alias name='vgpud3'/><address type='pci' bus='0x00' slot='0x18'/>",
        "<source vf='a'/><address type='usb' bus='0x02'/>"})
    EXPECT_FALSE(with(ours)) << ours;
}

TEST(LibvirtNative, WhatIsPluggedInHasNoAddressOfOurs) {
  Hostdev made = FromProfile("1/4");
  made.vf = "a";
  made.slot = 3;
  made.alias = "vgpud0";
  const XmlNode element = NativeElement(made);
  EXPECT_EQ(element.Child("alias"), nullptr);
  EXPECT_EQ(element.Child("address"), nullptr);
  EXPECT_EQ(element.Child("source")->Get("vf"), "a");
  EXPECT_EQ(element.Child("source")->Get("profile"), "1/4");
  EXPECT_EQ(element.Get("managed"), "yes");
}

HostFacts SoundHost() {
  HostFacts facts;
  facts.qemu_version = "11.1.3";
  facts.qemu_has_device = true;
  facts.hook_installed = true;
  facts.vfs = {"a"};
  facts.sockets = {{"a", {true, true}}};
  facts.apparmor_allows = false;  // libvirt writes the rule itself
  return facts;
}

// Of a libvirt that knows the element: what lint says of a configuration with these devices.
std::vector<std::string> Said(const std::string& devices, const HostFacts& facts, const std::string& backing = "",
                              const std::string& machine = "pc-q35-7.2",
                              const std::string& features = "<features><acpi/></features>") {
  std::vector<std::string> ids;
  const XmlNode domain = Parsed("<domain type='kvm'><os><type arch='x86_64' machine='" + machine + "'>hvm</type></os>" +
                                features + backing + "<devices>" + devices + "</devices></domain>");
  for (const Finding& each : Lint(domain, kPlaces, facts)) ids.emplace_back(each.id);
  return ids;
}

TEST(LibvirtNative, LintSaysNothingOfASoundOne) {
  for (const char* source : {"vf='a'", "profile='1/4'", "vf='b' profile='1/4'", "path='/run/other.sock'"})
    EXPECT_EQ(Said(Device(source), SoundHost()), std::vector<std::string>{}) << source;
  EXPECT_EQ(Said(Device("profile='1/4'") + Device("profile='1/4'"), SoundHost()), std::vector<std::string>{});
  EXPECT_EQ(Said(Device("vf='a'"), SoundHost(), "<memoryBacking><access mode='shared'/></memoryBacking>"),
            std::vector<std::string>{});
}

TEST(LibvirtNative, LintNamesEachDefectAndNoOther) {
  const HostFacts sound = SoundHost();
  HostFacts no_hook = sound, wrong_socket = sound, old_qemu = sound, twice = sound;
  no_hook.hook_installed = false;
  wrong_socket.hook_installed = false;
  wrong_socket.sockets["a"].may_open = false;
  old_qemu.qemu_version = "10.0";
  twice.vfs_of_others = {{"a", "guest-b"}};
  const std::string a = Device("vf='a'");
  const std::string on_bus_0 =
      "<hostdev mode='subsystem' type='vfio-user' managed='yes'><source vf='a'/><address type='pci' bus='0x00' "
      "slot='0x05'/></hostdev>";
  const std::pair<std::string, std::vector<std::string>> kRows[] = {
      {"private-memory", Said(a, sound, "<memoryBacking><access mode='private'/></memoryBacking>")},
      {"private-memory", Said(a, sound, "<cpu><numa><cell id='0'/></numa></cpu>")},
      {"huge-pages", Said(a, sound, "<memoryBacking><hugepages/><access mode='shared'/></memoryBacking>")},
      {"no-acpi", Said(a, sound, "", "q35", "")},
      {"machine", Said(a, sound, "", "pc")},
      {"old-qemu", Said(a, old_qemu)},
      {"same-vf", Said(a + a, sound)},
      {"same-vf", Said(a, twice)},
      {"no-root-port", Said(on_bus_0, sound)},
      {"no-vf", Said(Device("vf='c'"), sound)},
      {"no-hook", Said(Device("profile='1/4'"), no_hook)},
      {"socket-rights", Said(Device("vf='a'", "no"), wrong_socket)},
  };
  for (const auto& [id, said] : kRows) EXPECT_EQ(said, std::vector<std::string>{id});
}

TEST(LibvirtNative, FixPutsInWhatNobodyElseDoes) {
  XmlNode domain = Parsed(
      "<domain type='kvm'><os><type arch='x86_64' machine='q35'>hvm</type></os>"
      "<memoryBacking><access mode='private'/></memoryBacking><devices>" +
      Device("vf='a'") + "</devices></domain>");
  EXPECT_EQ(Lint(domain, kPlaces, SoundHost()).size(), 2U);
  Fix(domain, kPlaces);
  EXPECT_TRUE(Lint(domain, kPlaces, SoundHost()).empty()) << WriteXml(domain);
}

}  // namespace
}  // namespace vgpud::tools
