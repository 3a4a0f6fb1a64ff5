// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "integrations/kubevirt/domain.h"

namespace vgpud::kubevirt {
namespace {

// As virt-launcher logs the domains that it defines: elements without content are not left out, and addresses are given
// to some controllers only.
constexpr const char* kDomain = R"(<domain type="kvm" xmlns:qemu="http://libvirt.org/schemas/domain/qemu/1.0">
	<name>gpus_trainer</name>
	<memory unit="b">4294967296</memory>
	<os>
		<type arch="x86_64" machine="q35">hvm</type>
		<smbios mode="sysinfo"></smbios>
	</os>
	<sysinfo type="smbios">
		<system>
			<entry name="uuid">5d307ca9-b3ef-428c-8861-06e72d69f223</entry>
			<entry name="manufacturer">KubeVirt</entry>
			<entry name="family">KubeVirt</entry>
			<entry name="product">None</entry>
			<entry name="sku"></entry>
			<entry name="version"></entry>
		</system>
		<bios></bios>
		<baseBoard></baseBoard>
		<chassis></chassis>
	</sysinfo>
	<devices>
		<emulator>/usr/libexec/qemu-kvm</emulator>
		<interface type="ethernet">
			<source></source>
			<target dev="tap0" managed="no"></target>
			<model type="virtio-non-transitional"></model>
			<mac address="02:00:00:4f:12:9a"></mac>
			<mtu size="1450"></mtu>
			<alias name="ua-default"></alias>
			<rom enabled="no"></rom>
		</interface>
		<channel type="unix">
			<target name="org.qemu.guest_agent.0" type="virtio"></target>
		</channel>
		<controller type="usb" index="0" model="none"></controller>
		<controller type="scsi" index="0" model="virtio-non-transitional"></controller>
		<controller type="virtio-serial" index="0" model="virtio-non-transitional"></controller>
		<video>
			<model type="vga" heads="1" vram="16384"></model>
		</video>
		<graphics type="vnc">
			<listen type="socket" socket="/var/run/kubevirt-private/6a1f0c1e-3d0b-4b2e-9a55-0d3e8a3f7c11/virt-vnc"></listen>
		</graphics>
		<memballoon model="virtio-non-transitional">
			<stats period="10"></stats>
		</memballoon>
		<disk device="disk" type="file" model="virtio-non-transitional">
			<source file="/var/run/kubevirt-private/vmi-disks/system/disk.img"></source>
			<target bus="virtio" dev="vda"></target>
			<driver cache="none" error_policy="stop" name="qemu" type="raw" discard="unmap"></driver>
			<alias name="ua-system"></alias>
		</disk>
	</devices>
	<metadata>
		<kubevirt xmlns="http://kubevirt.io">
			<uid>6a1f0c1e-3d0b-4b2e-9a55-0d3e8a3f7c11</uid>
			<graceperiod>
				<deletionGracePeriodSeconds>30</deletionGracePeriodSeconds>
			</graceperiod>
		</kubevirt>
	</metadata>
	<features>
		<acpi></acpi>
	</features>
	<cpu mode="host-model">
		<topology sockets="1" cores="2" threads="1"></topology>
	</cpu>
	<vcpu placement="static">2</vcpu>
	<iothreads>1</iothreads>
</domain>)";

std::string Vmi(const std::string& annotations) {
  return R"({"kind": "VirtualMachineInstance", "metadata": {"name": "trainer", "namespace": "gpus", "annotations": {)" +
         annotations + R"(}}, "spec": {"domain": {"devices": {}}}})";
}

tools::XmlNode Rooted(const std::string& text) {
  auto document = tools::ParseXml(text, "test");
  EXPECT_TRUE(document) << text;
  return document ? document->root : tools::XmlNode();
}

std::string Replaced(std::string text, const std::string& what, const std::string& with) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), with);
}

TEST(Kubevirt, TheMachineGetsItsVf) {
  const auto done = WithVfs(kDomain, Vmi(""));
  ASSERT_TRUE(done) << done.error().context;
  const tools::XmlNode domain = Rooted(*done);
  EXPECT_EQ(tools::VfsOf(domain, {kRuntimeDir}), (std::set<std::string>{"vm0"}));
  EXPECT_TRUE(tools::HasSharedMemory(domain));
  EXPECT_NE(done->find("/run/vgpud/vf/vm0.sock"), std::string::npos);
  EXPECT_NE(done->find("<uid>6a1f0c1e-3d0b-4b2e-9a55-0d3e8a3f7c11</uid>"), std::string::npos) << "KubeVirt's own note";
}

TEST(Kubevirt, AllElseIsAsItWas) {
  const auto done = WithVfs(kDomain, Vmi(""));
  ASSERT_TRUE(done) << done.error().context;
  tools::XmlNode domain = Rooted(*done);
  ASSERT_TRUE(tools::Detach(domain, "vm0"));
  EXPECT_EQ(tools::WriteXml(domain), tools::WriteXml(Rooted(kDomain)));
}

TEST(Kubevirt, AsManyAsItsAnnotationSays) {
  const auto done = WithVfs(kDomain, Vmi(R"("other": "7", "vgpud.dev/vfs": "3")"));
  ASSERT_TRUE(done) << done.error().context;
  EXPECT_EQ(tools::VfsOf(Rooted(*done), {kRuntimeDir}), (std::set<std::string>{"vm0", "vm1", "vm2"}));
}

TEST(Kubevirt, WhatCantBeIsRefusedInWords) {
  const struct {
    std::string domain, vmi, says;
  } wrong[] = {
      {kDomain, "", "no VirtualMachineInstance"},
      {kDomain, "[1]", "no VirtualMachineInstance"},
      {kDomain, Vmi(R"("vgpud.dev/vfs": "0")"), "a number of 1 to 16"},
      {kDomain, Vmi(R"("vgpud.dev/vfs": "17")"), "a number of 1 to 16"},
      {kDomain, Vmi(R"("vgpud.dev/vfs": "two")"), "a number of 1 to 16"},
      {kDomain, Vmi(R"("vgpud.dev/vfs": {})"), "a number of 1 to 16"},
      {"", Vmi(""), "--domain"},
      {"<domain", Vmi(""), "--domain"},
      {"<network/>", Vmi(""), "not a <domain>"},
      {Replaced(kDomain, "q35", "pc"), Vmi(""), "PCIe root ports"},
      {Replaced(kDomain, "x86_64", "aarch64"), Vmi(""), "x86_64"},
      {Replaced(kDomain, "<iothreads>1</iothreads>", "<memoryBacking><hugepages/></memoryBacking>"), Vmi(""),
       "huge pages"},
  };
  for (const auto& each : wrong) {
    const auto done = WithVfs(each.domain, each.vmi);
    ASSERT_FALSE(done) << each.says;
    EXPECT_NE(done.error().context.find(each.says), std::string::npos) << each.says << ": " << done.error().context;
  }
}

TEST(Kubevirt, AnnotationsThatAreNoneAreNone) {
  for (const char* vmi : {"{}", R"({"metadata": 3})", R"({"metadata": {"annotations": null}})"})
    EXPECT_TRUE(WithVfs(kDomain, vmi)) << vmi;
}

}  // namespace
}  // namespace vgpud::kubevirt
