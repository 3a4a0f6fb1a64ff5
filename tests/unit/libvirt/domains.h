// SPDX-License-Identifier: Apache-2.0
// Domains for the tests: a sound one, and any number of generated ones as libvirt shows them.
#pragma once

#include <string>

#include "tools/libvirt/domain.h"

namespace vgpud::tools {

struct DomainParts {
  std::string name = "guest-a";
  std::string machine = "pc-q35-7.2";
  std::string metadata;  // lines, as the rest
  std::string backing;
  std::string cpu;
  std::string features = "  <features>\n    <acpi/>\n    <apic/>\n  </features>\n";
  std::string devices;
  std::string arguments;  // <qemu:commandline> and what is in it
};
// The text of a domain as virsh dumpxml shows it.
std::string DomainText(const DomainParts& parts);
// A random one of libvirt's: with and without each part, other people's metadata and QEMU arguments included.
std::string RandomDomain();

XmlNode Parsed(const std::string& text);
Hostdev Named(const std::string& vf);
Hostdev FromProfile(const std::string& profile);
inline const Places kPlaces{"/run/vgpud"};

}  // namespace vgpud::tools
