// SPDX-License-Identifier: Apache-2.0
// QEMU arguments of our devices, and what can be known of others in a domain's <qemu:commandline>.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tools/libvirt/hostdev.h"

namespace vgpud::tools {

// One "-option value" of QEMU.
struct QemuArgument {
  std::string option;
  std::string value;
};

// The properties of a "-device" or "-blockdev", however it is written; empty: not known.
struct QemuObject {
  std::string driver;
  std::string id;  // or node-name
  std::string bus;
  unsigned slot = 0;        // 0: not said
  std::string socket;       // of a vfio-user-pci
  bool has_window = false;  // of a root port: pref64-reserve, pref32-reserve or mem-reserve
};

// Root ports: room for devices that are plugged in while the guest runs. Above 64 MiB firmware ignores it.
inline constexpr unsigned kWindowBytes = 64U << 20;

// In the order in which QEMU needs them.
QemuArgument HeldStateArgument(const Places& places);
QemuArgument PortArgument(const Hostdev& hostdev);
QemuArgument DeviceArgument(const Hostdev& hostdev, const Places& places);

// All "-device" and "-blockdev" of the domain, in order.
std::vector<QemuObject> ObjectsOf(const XmlNode& domain);
QemuObject ParseObject(const std::string& value);
// The element <qemu:commandline>, whatever its prefix; nullptr: none.
const XmlNode* CommandLine(const XmlNode& domain);
XmlNode* CommandLine(XmlNode& domain);

// Root ports of vfio-user devices keep windows free, kWindowBytes each, where they keep none.
void WidenPorts(XmlNode& domain);

// Slots of bus 0 that something in the domain has, by address or by argument.
std::set<unsigned> UsedSlots(const XmlNode& domain);

}  // namespace vgpud::tools
