// SPDX-License-Identifier: Apache-2.0
// Whom libvirt runs a domain's QEMU as, and what its AppArmor profile has to say for a VF.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "tools/libvirt/hostdev.h"

namespace vgpud::tools {

// From the <seclabel>s that libvirt gives hooks; nothing where it says nothing.
std::optional<uid_t> QemuUser(const XmlNode& domain);
// The name of the domain's AppArmor profile, "libvirt-UUID"; empty: not confined by AppArmor.
std::string AppArmorProfile(const XmlNode& domain);

// The profile's text with rules for the sockets of `note` and nothing else of ours; without any for an empty note.
// Errors: the text has no profile of that name. The rules are on lines that end with "# vgpud".
[[nodiscard]] Result<std::string> WithRules(const std::string& profile_text, const Note& note, const Places& places);

}  // namespace vgpud::tools
