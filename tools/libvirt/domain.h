// SPDX-License-Identifier: Apache-2.0
// Puts VFs into the XML of a domain and takes them out again. Pure: nothing here talks to libvirt, vgpud or the disk.
// What is refused changes nothing.
#pragma once

#include <set>
#include <string>

#include "tools/libvirt/hostdev.h"

namespace vgpud::tools {

// A VF becomes arguments and a note. A missing name (of a VF with a profile: DOMAIN-ALIAS), alias and slot are chosen.
// Adds what the domain needs and does not have: shared memory, acpi, QEMU's namespace. Returns what was attached.
// Errors: not possible, with the reason.
[[nodiscard]] Result<Hostdev> Attach(XmlNode& domain, const Hostdev& wanted, const Places& places);

// Takes a VF out, by its alias or its VF's name, and with the last one all that Attach added: the domain is what it was
// before, to the byte.
[[nodiscard]] Result<Hostdev> Detach(XmlNode& domain, const std::string& alias_or_vf);

// Elements <hostdev type='vfio-user'> become what libvirt understands; all others stay as they are.
[[nodiscard]] Result<void> Compile(XmlNode& domain, const Places& places);
// The other way round: Compile after Decompile gives the same again.
[[nodiscard]] Result<void> Decompile(XmlNode& domain);

// Which domain it is, by its <name> and <uuid>; empty where it has none.
struct DomainId {
  std::string name;
  std::string uuid;
  bool operator==(const DomainId&) const = default;
};
DomainId IdOf(const XmlNode& domain);
// Names of VFs that it has, by its note, by its elements where libvirt knows those, and by the sockets of its
// arguments; each once. Not those that libvirt will name when it starts.
std::set<std::string> VfsOf(const XmlNode& domain, const Places& places);

// An alias that neither of them has.
std::string FreeAlias(const XmlNode& one, const XmlNode& other);
// Why no VF can be in the domain, whatever is added to it: architecture, machine, memory that is private on purpose.
[[nodiscard]] Result<void> CheckMachine(const XmlNode& domain);
// Is some of it in huge pages (hugetlb)?
bool HasHugePages(const XmlNode& domain);
// Is all of the guest's memory shared with other processes?
bool HasSharedMemory(const XmlNode& domain);

}  // namespace vgpud::tools
