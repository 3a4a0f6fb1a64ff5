// SPDX-License-Identifier: Apache-2.0
#include "tools/libvirt/domain.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "tests/unit/libvirt/domains.h"
#include "tools/libvirt/arguments.h"

namespace vgpud::tools {
namespace {

std::vector<Hostdev> RandomHostdevs() {
  std::vector<Hostdev> out;
  const int count = *rc::gen::inRange(1, 5);
  for (int i = 0; i < count; ++i) {
    Hostdev each = *rc::gen::arbitrary<bool>() ? Named("vf-" + std::to_string(i)) : FromProfile("1/4");
    if (!each.settings.empty() && *rc::gen::arbitrary<bool>()) each.settings.emplace_back("tenant", "team-a");
    if (!each.settings.empty() && *rc::gen::arbitrary<bool>()) each.settings.emplace_back("weight", "300");
    each.managed = !each.settings.empty() || *rc::gen::arbitrary<bool>();
    out.push_back(each);
  }
  return out;
}

RC_GTEST_PROP(LibvirtXml, WhatWasReadIsWrittenToTheByte, ()) {
  const std::string text = RandomDomain();
  RC_ASSERT(WriteXml(Parsed(text)) + "\n" == text);
}

RC_GTEST_PROP(LibvirtDomain, DetachUndoesAttachToTheByte, ()) {
  const std::string text = RandomDomain();
  XmlNode domain = Parsed(text);
  std::vector<std::string> aliases;
  for (const Hostdev& each : RandomHostdevs()) {
    const auto attached = Attach(domain, each, kPlaces);
    RC_ASSERT(attached.has_value());
    aliases.push_back(attached->alias);
  }
  RC_ASSERT(HasSharedMemory(domain));
  // As libvirt keeps it: text between.
  domain = Parsed(WriteXml(domain));
  while (!aliases.empty()) {
    const auto at = aliases.begin() + *rc::gen::inRange<int>(0, static_cast<int>(aliases.size()));
    RC_ASSERT(Detach(domain, *at).has_value());
    aliases.erase(at);
  }
  RC_ASSERT(WriteXml(domain) + "\n" == text);
}

RC_GTEST_PROP(LibvirtDomain, CompileAndDecompileAreAFixedPoint, ()) {
  XmlNode written = Parsed(RandomDomain());
  for (const Hostdev& each : RandomHostdevs()) {
    XmlNode element = WriteHostdev(each);
    TakeOut(element, "alias");
    PutIn(*written.Child("devices"), element, 1);
  }
  XmlNode compiled = written;
  RC_ASSERT(Compile(compiled, kPlaces).has_value());
  XmlNode shown = Parsed(WriteXml(compiled));
  RC_ASSERT(Decompile(shown).has_value());
  XmlNode again = Parsed(WriteXml(shown));
  RC_ASSERT(Compile(again, kPlaces).has_value());
  RC_ASSERT(WriteXml(again) == WriteXml(compiled));
  RC_ASSERT(Decompile(again).has_value());
  RC_ASSERT(WriteXml(again) == WriteXml(shown));
}

RC_GTEST_PROP(LibvirtDomain, NoTwoDevicesMeet, ()) {
  XmlNode domain = Parsed(RandomDomain());
  for (const Hostdev& each : RandomHostdevs()) {
    const auto before = UsedSlots(domain);
    const auto attached = Attach(domain, each, kPlaces);
    RC_ASSERT(attached.has_value());
    RC_ASSERT(!before.contains(attached->slot));
    RC_ASSERT(UsedSlots(domain).contains(attached->slot));
  }
  std::vector<std::string> ids;
  for (const QemuObject& object : ObjectsOf(domain)) ids.push_back(object.id);
  std::erase(ids, "");
  std::sort(ids.begin(), ids.end());
  RC_ASSERT(std::adjacent_find(ids.begin(), ids.end()) == ids.end());
}

TEST(LibvirtDomain, SaysTheDeviceAsQemuTakesIt) {
  XmlNode domain = Parsed(DomainText({}));
  Hostdev wanted = Named("render");
  wanted.slot = 0x10;
  ASSERT_TRUE(Attach(domain, wanted, kPlaces));
  const auto objects = ObjectsOf(domain);
  ASSERT_EQ(objects.size(), 3U);
  EXPECT_EQ(objects[0].id, kHeldStateNode);
  EXPECT_EQ(objects[1].driver, "pcie-root-port");
  EXPECT_EQ(objects[1].slot, 0x10U);
  EXPECT_TRUE(objects[1].has_window);
  EXPECT_EQ(objects[2].driver, "vfio-user-pci");
  EXPECT_EQ(objects[2].bus, objects[1].id);
  EXPECT_EQ(objects[2].socket, "/run/vgpud/vf/render.sock");
}

TEST(LibvirtDomain, AddsNothingThatIsThere) {
  DomainParts parts;
  parts.backing = "  <memoryBacking>\n    <source type='memfd'/>\n    <access mode='shared'/>\n  </memoryBacking>\n";
  XmlNode domain = Parsed(DomainText(parts));
  ASSERT_TRUE(Attach(domain, Named("a"), kPlaces));
  const auto note = ReadNote(domain);
  ASSERT_TRUE(note);
  EXPECT_EQ(note->added, (std::vector<std::string>{"namespace", "metadata", "commandline"}));
}

TEST(LibvirtDomain, WhatOthersPutIntoOurElementsStays) {
  DomainParts parts;
  parts.features = "";
  XmlNode domain = Parsed(DomainText(parts));
  ASSERT_TRUE(Attach(domain, Named("a"), kPlaces));
  XmlNode pae;
  pae.name = "pae";
  PutIn(*domain.Child("features"), pae, 1);
  ASSERT_TRUE(Detach(domain, "a"));
  EXPECT_NE(domain.At({"features", "pae"}), nullptr);
  EXPECT_EQ(domain.At({"features", "acpi"}), nullptr);
}

TEST(LibvirtDomain, NamesTheVfOfAProfileAfterTheDomain) {
  XmlNode domain = Parsed(DomainText({}));
  const auto attached = Attach(domain, FromProfile("1/4"), kPlaces);
  ASSERT_TRUE(attached);
  EXPECT_EQ(attached->vf, "guest-a-vgpud0");
  EXPECT_EQ(ReadNote(domain)->hostdevs.at(0), *attached);
}

TEST(LibvirtDomain, FindsEachVfByItsNameAndByItsAlias) {
  for (const char* name : {"b", "vgpud1"}) {
    XmlNode domain = Parsed(DomainText({}));
    ASSERT_TRUE(Attach(domain, Named("a"), kPlaces));
    const std::string with_a = WriteXml(domain);
    ASSERT_TRUE(Attach(domain, Named("b"), kPlaces));
    ASSERT_TRUE(Detach(domain, name));
    EXPECT_EQ(WriteXml(domain), with_a);
  }
}

}  // namespace
}  // namespace vgpud::tools
