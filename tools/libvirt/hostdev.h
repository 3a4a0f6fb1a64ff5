// SPDX-License-Identifier: Apache-2.0
// A VF in a libvirt domain, in the two forms that it has: the element that an administrator writes,
//   <hostdev mode='subsystem' type='vfio-user' managed='yes'>
//     <source profile='1/4' weight='300'/>   or   <source vf='guest-a'/>
//     <alias name='vgpud0'/>
//     <address type='pci' domain='0x0000' bus='0x00' slot='0x18' function='0x0'/>
//   </hostdev>
// and what this libvirt understands: QEMU arguments, with a note of what is ours in the domain's <metadata>.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tools/libvirt/xml.h"

namespace vgpud::tools {

inline constexpr const char* kQemuSpace = "http://libvirt.org/schemas/domain/qemu/1.0";
inline constexpr const char* kOurSpace = "urn:vgpud:libvirt:1";
// The image that keeps QEMU from saving or migrating the guest (tools/libvirt/held_state.h).
inline constexpr const char* kHeldStateNode = "vgpud-gpu-state-would-be-lost";

struct Hostdev {
  std::string vf;
  bool managed = true;  // the hook looks after the VF
  // What the VF is made with when the domain starts; it then ends with the domain. Empty: the VF is the
  // administrator's. Options of vgpuctl create, in their order of kSettings.
  std::vector<std::pair<std::string, std::string>> settings;
  std::string alias;  // QEMU's id of the device; "vgpud0", ...
  unsigned slot = 0;  // of the device's root port on bus 0
  std::string bus;    // live only: the root port that it was plugged into; empty: its own
  bool operator==(const Hostdev&) const = default;

  std::string Port() const { return bus.empty() ? alias + "-port" : bus; }
};

// Where things of this host are.
struct Places {
  std::string runtime_dir;  // of vgpud
  std::string Socket(const std::string& vf) const { return runtime_dir + "/vf/" + vf + ".sock"; }
  std::string HeldState() const { return runtime_dir + "/vf/held-state.vdi"; }
};

// Is it the element above?
bool IsVfHostdev(const XmlNode& node);
// The element of a domain of that name; errors name what is wrong with it. Alias and slot may be missing (empty, 0),
// the name of a VF that has a profile, too.
[[nodiscard]] Result<Hostdev> ReadHostdev(const XmlNode& element);
XmlNode WriteHostdev(const Hostdev& hostdev);
// Its parts: VF and settings of an element that has them as attributes (`managed` is read before); managed='...'.
[[nodiscard]] Result<void> ReadVf(const XmlNode& source, Hostdev& hostdev);
[[nodiscard]] Result<bool> ReadManaged(const XmlNode& element);
// What can be said of a VF in <source> beside its name.
bool IsSetting(const std::string& name);
// Would it be a value of one? The daemon says whether it is in range.
bool IsSettingValue(const std::string& value);
// vgpud0 and the like.
bool IsAlias(const std::string& alias);

// Our note in the metadata: the devices, and what was added to the domain for them.
struct Note {
  std::vector<Hostdev> hostdevs;
  std::vector<std::string> added;
  // libvirt knows the devices itself: it also keeps the guest from being saved, and writes the rules of AppArmor.
  bool is_native = false;
};
// Empty if there is none. Errors: it was changed by hand.
[[nodiscard]] Result<Note> ReadNote(const XmlNode& domain);
XmlNode NoteXml(const Note& note);
// The place of the note in `metadata`, -1: there is none.
int FindNote(const XmlNode& metadata);

}  // namespace vgpud::tools
