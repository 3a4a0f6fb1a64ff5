// SPDX-License-Identifier: Apache-2.0
// Wrong domains and wrong elements: each is refused with its reason, and nothing changes.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/unit/libvirt/domains.h"

namespace vgpud::tools {
namespace {

std::string WithHostdev(const std::string& element) {
  DomainParts parts;
  parts.devices = "    " + element + "\n";
  return DomainText(parts);
}
std::string Hostdevs(const std::string& inside, const std::string& attributes = "managed='yes'") {
  return WithHostdev("<hostdev mode='subsystem' type='vfio-user' " + attributes + ">" + inside + "</hostdev>");
}
std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  return text.replace(text.find(what), what.size(), by);
}
std::string WithBacking(const std::string& inside) {
  DomainParts parts;
  parts.backing = "  <memoryBacking>" + inside + "</memoryBacking>\n";
  parts.devices = "<hostdev mode='subsystem' type='vfio-user'><source vf='a'/></hostdev>";
  return DomainText(parts);
}

const std::string kGood = Hostdevs("<source vf='a'/>");

struct Refusal {
  std::string text;
  std::string reason;
};
std::vector<Refusal> Refusals() {
  return {
      {Hostdevs(""), "no <source"},
      {Hostdevs("<source/>"), "neither which VF"},
      {Hostdevs("<source vf='A b'/>"), "not a name of a VF"},
      {Hostdevs("<source vf='../../etc'/>"), "not a name of a VF"},
      {Hostdevs("<source vf='a' colour='red'/>"), "no attribute colour"},
      {Hostdevs("<source profile='1/4' tenant='team a'/>"), "not a value of vgpuctl create --tenant"},
      {Hostdevs("<source tenant='team-a'/>", "managed='no'"), "needs managed='yes'"},
      {Hostdevs("<source profile='1/4 --x'/>"), "not a value of vgpuctl create --profile"},
      {Hostdevs("<source profile='1/4'/>", "managed='no'"), "needs managed='yes'"},
      {Hostdevs("<source vf='a'/>", "managed='maybe'"), "neither yes nor no"},
      {Hostdevs("<source vf='a'/>", "model='x'"), "no attribute model"},
      {Hostdevs("<source vf='a'/><source vf='b'/>"), "there twice"},
      {Hostdevs("<source vf='a'/><rom/>"), "<rom> in it is unknown"},
      {Hostdevs("<source vf='a'/><alias name='ua-x'/>"), "not vgpud0"},
      {Hostdevs("<source vf='a'/><alias name='vgpud00'/>"), "not vgpud0"},
      {Hostdevs("<source vf='a'/><address type='usb'/>"), "type 'pci'"},
      {Hostdevs("<source vf='a'/><address type='pci' bus='0x01' slot='0x10'/>"), "bus and function 0"},
      {Hostdevs("<source vf='a'/><address type='pci' slot='0x1f'/>"), "not one from 0x01 to 0x1e"},
      {Hostdevs("<source vf='a'/><address type='pci' slot='99999999999'/>"), "not one from"},
      {WithHostdev("<hostdev type='vfio-user'><source vf='a'/></hostdev>"), "mode has to be"},
      {Hostdevs("<source vf='a'/></hostdev><hostdev mode='subsystem' type='vfio-user'><source vf='a'/>"), "already"},
      {Hostdevs("<source vf='a'/><address type='pci' slot='0x02'/></hostdev><controller><address type='pci' "
                "domain='0x0000' bus='0x00' slot='0x02' function='0x7'/></controller><hostdev mode='subsystem' "
                "type='vfio-user'><source vf='b'/>"),
       "slot 0x02 on bus 0 is taken"},
      {Hostdevs("<source vf='a'/><alias name='vgpud3'/></hostdev><hostdev mode='subsystem' type='vfio-user'>"
                "<source vf='b'/><alias name='vgpud3'/>"),
       "alias vgpud3 is taken"},
      {Replaced(kGood, "pc-q35-7.2", "pc-i440fx-7.2"), "no PCIe root ports"},
      {Replaced(kGood, " machine='pc-q35-7.2'", ""), "libvirt's default"},
      {Replaced(kGood, "x86_64", "aarch64"), "are for x86_64"},
      {Replaced(kGood, "type='kvm'", "type='xen'"), "only QEMU's"},
      {Replaced(kGood, "type='kvm'", "type='kvm' xmlns:qemu='urn:x'"), "its prefix qemu stands for urn:x"},
      {Replaced(Hostdevs("<source profile='1/4'/>"), "guest-a", "My Guest"), "give it a name of your own"},
      {WithBacking("<access mode='private'/>"), "private on purpose"},
      {WithBacking("<source type='anonymous'/>"), "anonymous on purpose"},
      {WithBacking("<hugepages><page size='2' unit='MiB'/></hugepages>"), "in huge pages"},
      {Replaced(kGood, "  <devices>",
                "  <metadata><v:h xmlns:v='urn:vgpud:libvirt:1'><v:x/></v:h></metadata>\n  <devices>"),
       "was changed"},
      {Replaced(kGood, "  <devices>",
                "  <metadata><v:h xmlns:v='urn:vgpud:libvirt:1'><v:hostdev alias='vgpud0' vf='q'/></v:h></metadata>\n"
                "  <devices>"),
       "was changed"},
  };
}

TEST(LibvirtRefusals, EachSaysItsReasonAndChangesNothing) {
  for (const Refusal& each : Refusals()) {
    XmlNode domain = Parsed(each.text);
    const XmlNode before = domain;
    const auto done = Compile(domain, kPlaces);
    ASSERT_FALSE(done.has_value()) << each.text;
    EXPECT_NE(done.error().context.find(each.reason), std::string::npos) << done.error().context << "\n" << each.text;
    EXPECT_EQ(domain, before);
  }
}

TEST(LibvirtRefusals, TheSameDomainWithoutTheMistakeIsTaken) {
  XmlNode domain = Parsed(kGood);
  EXPECT_TRUE(Compile(domain, kPlaces));
}

TEST(LibvirtRefusals, TextThatIsNoDomain) {
  const std::string deep = [] {
    std::string text;
    for (int i = 0; i < 5000; ++i) text += "<a>";
    return text;
  }();
  const Refusal refusals[] = {{"", "guest.xml: "},
                              {"<domain>", "line 1"},
                              {"<domain></network>", "line 1"},
                              {std::string("<domain>\0</domain>", 18), "guest.xml: line 1"},
                              {"<domain>\xff</domain>", "line 1"},
                              {deep, "line 1"},
                              {std::string(kMaxXmlBytes + 1, ' '), "more than a domain needs"},
                              {"<!DOCTYPE d [<!ENTITY a 'x'>]><domain>&a;</domain>", "DOCTYPE"},
                              {"<!DOCTYPE d SYSTEM 'file:///etc/passwd'><domain/>", "DOCTYPE"}};
  for (const Refusal& each : refusals) {
    const auto document = ParseXml(each.text, "guest.xml");
    ASSERT_FALSE(document.has_value()) << each.text.substr(0, 100);
    EXPECT_NE(document.error().context.find(each.reason), std::string::npos) << document.error().context;
  }
}

TEST(LibvirtRefusals, ANetworkIsNoDomain) {
  XmlNode network = Parsed("<network/>");
  const auto done = Attach(network, Named("a"), kPlaces);
  ASSERT_FALSE(done.has_value());
  EXPECT_NE(done.error().context.find("<network>"), std::string::npos);
}

TEST(LibvirtRefusals, ADomainHasRoomForSixteen) {
  XmlNode domain = Parsed(DomainText({}));
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(Attach(domain, Named("vf-" + std::to_string(i)), kPlaces)) << i;
  const auto one_more = Attach(domain, Named("one-more"), kPlaces);
  ASSERT_FALSE(one_more.has_value());
  EXPECT_NE(one_more.error().context.find("16 VFs already"), std::string::npos);
}

// Whatever a mistake of typing makes of a domain: refused and unchanged, or still a domain that has the same fixed
// point.
RC_GTEST_PROP(LibvirtRefusals, DamagedTextIsRefusedOrUnderstood, ()) {
  XmlNode compiled = Parsed(RandomDomain());
  RC_PRE(Attach(compiled, Named("a"), kPlaces).has_value());
  std::string text = WriteXml(*rc::gen::arbitrary<bool>() ? compiled : Parsed(kGood));
  const int changes = *rc::gen::inRange(1, 4);
  for (int i = 0; i < changes; ++i) {
    const auto at = static_cast<size_t>(*rc::gen::inRange<int>(0, static_cast<int>(text.size())));
    switch (*rc::gen::inRange(0, 3)) {
      case 0:
        text.erase(at, static_cast<size_t>(*rc::gen::inRange(1, 40)));
        break;
      case 1:
        text[at] = *rc::gen::element('<', '>', '\'', '&', '0', 'x', ' ', '/');
        break;
      default:
        text.insert(at, text.substr(at, 30));
    }
    if (text.empty()) text = " ";
  }
  auto document = ParseXml(text, "damaged");
  if (!document) {
    RC_ASSERT(document.error().context.starts_with("damaged: "));
    return;
  }
  XmlNode shown = document->root;
  if (!Decompile(shown)) {
    RC_ASSERT(shown == document->root);
    return;
  }
  XmlNode again = shown;
  if (const auto done = Compile(again, kPlaces); !done) {
    RC_ASSERT(!done.error().context.empty());
    RC_ASSERT(again == shown);
    return;
  }
  XmlNode once_more = again;
  RC_ASSERT(Decompile(once_more).has_value());
}

}  // namespace
}  // namespace vgpud::tools
