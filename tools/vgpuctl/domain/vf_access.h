// SPDX-License-Identifier: Apache-2.0
// What has to be so on this host before a domain's QEMU can open its VFs, and how it is taken back.
#pragma once

#include <sys/types.h>

#include <optional>
#include <tl/expected.hpp>
#include <vector>

#include "tools/libvirt/domain.h"
#include "tools/vgpuctl/contact.h"

namespace vgpud::tools {

// May all that have settings be made, by the limits of their tenants and of the host, if no other VF were there? An
// exit code after the reason was said. Without a vgpud nobody knows: the start of the domain tells.
tl::expected<void, int> CheckWanted(const Contact& contact, const std::vector<Hostdev>& hostdevs);
// The VF is there and free: made from its settings (a free one of an earlier run that ended badly is made anew), or the
// administrator's own. Its socket may be opened by `user` and root only; nothing: who may is left as it is.
// It is `domain`'s from now on. An exit code after the reason was said; then nothing has changed.
tl::expected<void, int> PrepareVf(const Contact& contact, const Hostdev& hostdev, const DomainId& domain,
                                  std::optional<uid_t> user);
// Its socket may be opened by `user` and root only.
tl::expected<void, int> GiveVf(const Contact& contact, const Hostdev& hostdev, uid_t user);
// A VF that was made is gone, the socket of another is its owner's again. Can be done twice.
tl::expected<void, int> ReleaseVf(const Contact& contact, const Hostdev& hostdev);
// The image that keeps QEMU from saving the guest is there for everybody to read.
tl::expected<void, int> PutHeldState(const Places& places);
// Rules for `note` in the profile of the domain, where AppArmor confines it: libvirt loads it before QEMU starts.
tl::expected<void, int> PutRules(const XmlNode& domain, const Note& note, const Places& places);

Places PlacesOf(const Contact& contact);

}  // namespace vgpud::tools
