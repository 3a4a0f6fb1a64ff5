// SPDX-License-Identifier: Apache-2.0
#include "tools/libvirt/lint.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>

#include "tests/unit/libvirt/domains.h"

namespace vgpud::tools {
namespace {

HostFacts SoundHost() {
  HostFacts facts;
  facts.qemu_version = "11.1.3";
  facts.qemu_has_device = true;
  facts.hook_installed = false;
  facts.vfs = {"a", "b"};
  facts.sockets = {{"a", {true, true}}};
  facts.apparmor_allows = true;
  facts.gpu_node_cpus = {0, 1, 2, 3};
  return facts;
}

// A domain with VF a that the hook leaves alone, as vgpuctl attach makes it.
XmlNode Sound() {
  XmlNode domain = Parsed(DomainText({}));
  Hostdev a = Named("a");
  a.managed = false;
  if (!Attach(domain, a, kPlaces)) throw std::runtime_error("a sound domain takes a VF");
  return domain;
}

std::vector<std::string> Ids(const std::vector<Finding>& findings) {
  std::vector<std::string> out;
  for (const Finding& each : findings) out.push_back(each.id);
  return out;
}

XmlNode& Argument(XmlNode& domain, const std::string& with) {
  for (XmlNode& child : domain.children)
    if (child.name == "qemu:commandline")
      for (XmlNode& arg : child.children)
        if (arg.Get("value").find(with) != std::string::npos) return arg;
  throw std::runtime_error("no argument with " + with);
}
void Edit(XmlNode& domain, const std::string& argument, const std::string& what, const std::string& by) {
  XmlNode& arg = Argument(domain, argument);
  std::string value = arg.Get("value");
  arg.Set("value", value.replace(value.find(what), what.size(), by));
}
void Copy(XmlNode& domain, const std::string& argument, const std::string& what, const std::string& by) {
  XmlNode* line = domain.Child("qemu:commandline");
  XmlNode option, value = Argument(domain, argument);
  option.name = "qemu:arg";
  option.space = kQemuSpace;
  option.Set("value", "-device");
  line->children.push_back(option);
  std::string text = value.Get("value");
  value.Set("value", text.replace(text.find(what), what.size(), by));
  line->children.push_back(value);
}

struct Defect {
  const char* id;
  std::function<void(XmlNode&, HostFacts&)> make;
};
std::vector<Defect> Defects() {
  return {
      {"machine", [](XmlNode& d, HostFacts&) { d.Child("os")->Child("type")->Set("machine", "pc-i440fx-7.2"); }},
      {"private-memory", [](XmlNode& d, HostFacts&) { TakeOut(d, "memoryBacking"); }},
      {"private-memory",
       [](XmlNode& d, HostFacts&) { d.Child("memoryBacking")->Child("access")->Set("mode", "private"); }},
      {"huge-pages",
       [](XmlNode& d, HostFacts&) { d.Child("memoryBacking")->children.push_back(Parsed("<hugepages/>")); }},
      {"no-acpi", [](XmlNode& d, HostFacts&) { TakeOut(*d.Child("features"), "acpi"); }},
      {"no-namespace",
       [](XmlNode& d, HostFacts&) {
         std::string text = WriteXml(d);
         const std::string space = " xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'";
         d = Parsed(text.erase(text.find(space), space.size()));
       }},
      {"old-qemu", [](XmlNode&, HostFacts& f) { f.qemu_version = "10.0.13"; }},
      {"old-qemu", [](XmlNode&, HostFacts& f) { f.qemu_version = ""; }},
      {"no-vfio-user", [](XmlNode&, HostFacts& f) { f.qemu_has_device = false; }},
      {"address-clash",
       [](XmlNode& d, HostFacts&) {
         d.Child("devices")->children.push_back(
             Parsed("<sound><address type='pci' domain='0x0000' bus='0x00' slot='0x18' function='0x0'/></sound>"));
       }},
      {"same-id", [](XmlNode& d, HostFacts&) { Copy(d, "vfio-user-pci", "/a.sock", "/b.sock"); }},
      {"same-vf", [](XmlNode& d, HostFacts&) { Copy(d, "vfio-user-pci", "vgpud0", "vgpud7"); }},
      {"same-vf",
       [](XmlNode&, HostFacts& f) {
         f.vfs_of_others = {{"a", "guest-b"}};
       }},
      {"no-root-port", [](XmlNode& d, HostFacts&) { Edit(d, "vfio-user-pci", "vgpud0-port", "pcie.0"); }},
      {"no-window", [](XmlNode& d, HostFacts&) { Edit(d, "pcie-root-port", "pref64-reserve", "port"); }},
      {"iommu",
       [](XmlNode& d, HostFacts&) { d.Child("devices")->children.push_back(Parsed("<iommu model='intel'/>")); }},
      {"damaged-note",
       [](XmlNode& d, HostFacts&) {
         d.Child("metadata")->Child("vgpud:hostdevs")->Child("vgpud:hostdev")->Set("slot", "up");
       }},
      {"lost-arguments", [](XmlNode& d, HostFacts&) { Edit(d, "vfio-user-pci", "\"vgpud0\"", "\"other\""); }},
      {"no-vf", [](XmlNode&, HostFacts& f) { f.vfs = {"b"}; }},
      {"no-vf", [](XmlNode& d, HostFacts&) { Edit(d, "vfio-user-pci", "/run/vgpud", "/run/other"); }},
      {"socket-rights", [](XmlNode&, HostFacts& f) { f.sockets["a"].may_open = false; }},
      {"apparmor", [](XmlNode&, HostFacts& f) { f.apparmor_allows = false; }},
      {"no-hook",
       [](XmlNode& d, HostFacts&) {
         d.Child("metadata")->Child("vgpud:hostdevs")->Child("vgpud:hostdev")->Set("managed", "yes");
       }},
      {"not-held", [](XmlNode& d, HostFacts&) { Edit(d, "vdi", "vgpud-gpu-state-would-be-lost", "x"); }},
      {"far-cpus", [](XmlNode& d, HostFacts&) { d.Child("vcpu")->Set("cpuset", "4-7"); }},
      {"far-cpus",
       [](XmlNode& d, HostFacts&) {
         d.children.push_back(Parsed("<cputune><vcpupin vcpu='1' cpuset='0-9,^0,^1,^2,^3'/></cputune>"));
       }},
  };
}

TEST(LibvirtLint, SaysNothingOfASoundDomain) { EXPECT_EQ(Ids(Lint(Sound(), kPlaces, SoundHost())), Ids({})); }

TEST(LibvirtLint, SaysNothingOfADomainWithoutAVf) {
  DomainParts parts;
  parts.machine = "pc-i440fx-7.2";
  EXPECT_EQ(Ids(Lint(Parsed(DomainText(parts)), kPlaces, SoundHost())), Ids({}));
}

TEST(LibvirtLint, NamesEachDefectAndNoOther) {
  for (const Defect& defect : Defects()) {
    XmlNode domain = Sound();
    HostFacts facts = SoundHost();
    defect.make(domain, facts);
    const auto findings = Lint(domain, kPlaces, facts);
    EXPECT_EQ(Ids(findings), std::vector<std::string>{defect.id});
    for (const Finding& each : findings) {
      EXPECT_FALSE(each.problem.empty());
      EXPECT_FALSE(each.fix.empty());
    }
  }
}

TEST(LibvirtLint, FixPutsRightWhatItSaysItCan) {
  for (const Defect& defect : Defects()) {
    XmlNode domain = Sound();
    HostFacts facts = SoundHost();
    defect.make(domain, facts);
    const auto before = Lint(domain, kPlaces, facts);
    ASSERT_EQ(before.size(), 1U) << defect.id;
    Fix(domain, kPlaces);
    const auto after = Lint(Parsed(WriteXml(domain)), kPlaces, facts);
    EXPECT_EQ(after.empty(), before[0].can_fix) << defect.id << ": " << WriteXml(domain);
  }
}

TEST(LibvirtLint, FixLeavesASoundDomainAlone) {
  XmlNode domain = Sound();
  Fix(domain, kPlaces);
  EXPECT_EQ(domain, Sound());
}

TEST(LibvirtLint, WhatTheHookWillDoIsNoDefect) {
  XmlNode domain = Parsed(DomainText({}));
  ASSERT_TRUE(Attach(domain, FromProfile("1/4"), kPlaces));
  HostFacts facts = SoundHost();
  facts.hook_installed = true;
  facts.apparmor_allows = false;
  EXPECT_EQ(Ids(Lint(domain, kPlaces, facts)), Ids({}));
}

RC_GTEST_PROP(LibvirtLint, WhatAttachMakesIsSound, ()) {
  XmlNode domain = Parsed(RandomDomain());
  HostFacts facts = SoundHost();
  facts.hook_installed = true;
  RC_ASSERT(Attach(domain, Named("a"), kPlaces).has_value());
  RC_ASSERT(Attach(domain, FromProfile("1/8"), kPlaces).has_value());
  RC_ASSERT(Lint(domain, kPlaces, facts).empty());
}

TEST(LibvirtLint, ReadsListsOfProcessors) {
  EXPECT_EQ(ParseCpus("0-3,8,^2"), (std::set<unsigned>{0, 1, 3, 8}));
  EXPECT_EQ(ParseCpus(""), std::set<unsigned>{});
  for (const char* text : {"a", "1-", "3-1", "-", "1,,2", "0-4000000000"})
    EXPECT_EQ(ParseCpus(text), std::nullopt) << text;
}

}  // namespace
}  // namespace vgpud::tools
