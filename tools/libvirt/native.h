// SPDX-License-Identifier: Apache-2.0
// <hostdev type='vfio-user'> in the domains of a libvirt that knows the element (contrib/libvirt): nothing is compiled
// there, and libvirt chooses names and addresses of its own.
#pragma once

#include <string>
#include <vector>

#include "tools/libvirt/hostdev.h"

namespace vgpud::tools {

// Does the libvirt know the element, whose capabilities (domcapabilities of a QEMU) these are?
bool KnowsHostdev(const XmlNode& capabilities);
// Is there such an element that is in libvirt's words: with an alias, an address or a source that ours can't have?
bool IsInLibvirtsWords(const XmlNode& domain);
// What the note would say of a running domain whose libvirt knows the element: it says there under which name and
// socket each VF runs. Devices of other servers are none of ours.
[[nodiscard]] Result<Note> ReadNative(const XmlNode& domain, const Places& places);

// A VF of this vgpud in the configuration of a domain or in a running one.
struct NativeDevice {
  std::string vf;        // empty: libvirt names it when the domain starts
  std::string socket;    // empty: not known before that
  std::string alias;     // of the running domain
  std::string bus;       // QEMU's, like "pcie.0"; empty: libvirt chooses it
  bool managed = false;  // libvirt gives the socket to QEMU
  bool is_made = false;  // it has settings: the hook makes it
};
// Whatever can't be read is left out: libvirt has judged it.
std::vector<NativeDevice> NativesOf(const XmlNode& domain, const Places& places);
// The element for libvirt's attach-device and detach-device: without alias and address, which libvirt chooses.
XmlNode NativeElement(const Hostdev& hostdev);

}  // namespace vgpud::tools
