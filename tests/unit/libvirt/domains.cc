// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/libvirt/domains.h"

#include <fmt/core.h>
#include <rapidcheck.h>

#include <stdexcept>

namespace vgpud::tools {
namespace {

template <class... T>
std::string OneOf(T... texts) {
  return *rc::gen::element<std::string>(texts...);
}

std::string RandomDevices() {
  std::string out;
  const int count = *rc::gen::inRange(0, 6);
  for (int i = 0; i < count; ++i)
    out += fmt::format(
        "    <controller type='pci' index='{}' model='pcie-root-port'>\n      <alias name='pci.{}'/>\n"
        "      <address type='pci' domain='0x0000' bus='0x00' slot='0x{:02x}' function='0x0'/>\n    </controller>\n",
        i + 1, i + 1, *rc::gen::inRange(1, 0x14));
  return out + OneOf("",
                     "    <hostdev mode='subsystem' type='pci' managed='yes'>\n      <source>\n"
                     "        <address domain='0x0000' bus='0x00' slot='0x18' function='0x0'/>\n"
                     "      </source>\n    </hostdev>\n");
}

}  // namespace

std::string DomainText(const DomainParts& parts) {
  return fmt::format(
      "<domain type='kvm'{}>\n  <name>{}</name>\n  <uuid>8f3c1f5e-1d9c-4d43-8f52-6d4b8a0f5a11</uuid>\n{}"
      "  <memory unit='KiB'>524288</memory>\n  <vcpu placement='static'>2</vcpu>\n{}"
      "  <os>\n    <type arch='x86_64' machine='{}'>hvm</type>\n    <boot dev='hd'/>\n  </os>\n{}{}"
      "  <devices>\n    <emulator>/usr/bin/qemu-system-x86_64</emulator>\n{}"
      "    <memballoon model='none'/>\n  </devices>\n{}</domain>\n",
      parts.arguments.empty() ? "" : " xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'", parts.name,
      parts.metadata, parts.backing, parts.machine, parts.features, parts.cpu, parts.devices, parts.arguments);
}

std::string RandomDomain() {
  DomainParts parts;
  parts.name = OneOf("guest-a", "b", "x9-y");
  parts.machine = OneOf("q35", "pc-q35-7.2");
  parts.metadata = OneOf(
      "",
      "  <metadata>\n    <other:x xmlns:other='urn:other'>\n  <other:y a='&lt;&apos;'>t &amp; u</other:y></other:x>\n"
      "  </metadata>\n");
  parts.backing =
      OneOf("", "  <memoryBacking>\n    <locked/>\n  </memoryBacking>\n",
            "  <memoryBacking>\n    <source type='memfd'/>\n  </memoryBacking>\n",
            "  <memoryBacking>\n    <source type='file'/>\n    <access mode='shared'/>\n  </memoryBacking>\n");
  parts.cpu =
      OneOf("", "  <cpu mode='maximum'/>\n",
            "  <cpu>\n    <numa>\n      <cell id='0' cpus='0-1' memory='524288' unit='KiB' memAccess='shared'/>\n"
            "    </numa>\n  </cpu>\n");
  parts.features =
      OneOf("", "  <features>\n    <apic/>\n  </features>\n", "  <features>\n    <acpi/>\n  </features>\n");
  parts.devices = RandomDevices();
  parts.arguments = OneOf(
      "",
      "  <qemu:commandline>\n    <qemu:arg value='-device'/>\n    <qemu:arg value='edu,bus=pcie.0,addr=0x17'/>\n"
      "    <qemu:env name='A' value='-device'/>\n  </qemu:commandline>\n",
      "  <qemu:commandline>\n    <qemu:arg value='-device'/>\n    <qemu:arg value='{&quot;driver&quot;:&quot;edu&quot;,"
      "&quot;id&quot;:&quot;vgpud0&quot;}'/>\n  </qemu:commandline>\n");
  return DomainText(parts);
}

XmlNode Parsed(const std::string& text) {
  auto document = ParseXml(text, "test");
  if (!document) throw std::runtime_error(document.error().context);
  return std::move(document->root);
}

Hostdev Named(const std::string& vf) {
  Hostdev hostdev;
  hostdev.vf = vf;
  return hostdev;
}

Hostdev FromProfile(const std::string& profile) {
  Hostdev hostdev;
  hostdev.settings = {{"profile", profile}};
  return hostdev;
}

}  // namespace vgpud::tools
