// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/domain/native.h"

#include <fmt/core.h>

#include <algorithm>

#include "tools/libvirt/confined_user.h"
#include "tools/libvirt/domain.h"
#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/domain/domain_xml.h"
#include "tools/vgpuctl/domain/let_go.h"
#include "tools/vgpuctl/domain/vf_access.h"
#include "vgpud/model/api.h"

namespace vgpud::tools {
namespace {

tl::unexpected<int> Refuse(const std::string& why) { return tl::unexpected(Complain(kExitRefused, why)); }

std::string FreeName(const std::string& domain, const std::set<std::string>& taken) {
  for (unsigned i = 0;; ++i)
    if (auto name = fmt::format("{}-vgpud{}", domain, i); !taken.contains(name)) return name;
}

// Its name, where it has none; errors: the domain can't have it.
tl::expected<Hostdev, int> Checked(const CtlArgs& args, const NativeTarget& target, Hostdev wanted) {
  std::set<std::string> taken;
  for (const XmlNode* each : {target.live, target.config}) {
    if (each == nullptr) continue;
    taken.merge(VfsOf(*each, PlacesOf(args)));
    if (const auto fits = CheckMachine(*each); !fits) return tl::unexpected(Explain(args.name, fits.error()));
    if (each->At({"features", "acpi"}) == nullptr)
      return Refuse(
          fmt::format("{}: it has no <acpi/>, and a guest without it reaches no VF: vgpuctl edit {} puts it "
                      "into <features>",
                      args.name, args.name));
  }
  if (wanted.vf.empty()) wanted.vf = FreeName(args.name, taken);
  if (!control::IsValidName(wanted.vf))
    return Refuse(fmt::format("{}: \"{}\" would be the VF's name, which it can't be: give it one with --vf", args.name,
                              wanted.vf));
  if (taken.contains(wanted.vf))
    return Refuse(fmt::format("{}: the domain has VF {} already: a VF is one device", args.name, wanted.vf));
  return wanted;
}

const NativeDevice* Find(const std::vector<NativeDevice>& devices, const std::string& which) {
  const auto it = std::find_if(devices.begin(), devices.end(),
                               [&](const auto& each) { return each.vf == which || each.alias == which; });
  return it == devices.end() ? nullptr : &*it;
}

}  // namespace

bool IsNative(const Libvirt& libvirt, const XmlNode& domain) {
  const auto inside = [&](std::initializer_list<std::string_view> way) {
    const XmlNode* node = domain.At(way);
    return node == nullptr ? "" : node->Inside();
  };
  const XmlNode* type = domain.At({"os", "type"});
  const auto capabilities =
      libvirt.Capabilities(inside({"devices", "emulator"}), type == nullptr ? "" : type->Get("arch"),
                           type == nullptr ? "" : type->Get("machine"), domain.Get("type"));
  const auto parsed = capabilities ? ParseXml(*capabilities, "domcapabilities") : Result<XmlDocument>(XmlDocument());
  return parsed && KnowsHostdev(parsed->root);
}

tl::expected<Hostdev, int> AttachNative(const CtlArgs& args, const Domain& domain, const NativeTarget& target,
                                        Hostdev wanted) {
  auto hostdev = Checked(args, target, std::move(wanted));
  if (!hostdev) return hostdev;
  const bool is_ours = target.live != nullptr && hostdev->managed;
  if (is_ours)
    if (const auto ready = PrepareVf(args, *hostdev, IdOf(*target.live), QemuUser(*target.live)); !ready)
      return tl::unexpected(ready.error());
  const auto done =
      domain.AttachDevice(WriteXml(NativeElement(*hostdev)), target.live != nullptr, target.config != nullptr);
  if (done) return hostdev;
  if (is_ours) (void)ReleaseVf(args, *hostdev);
  return tl::unexpected(Explain(args.name, done.error()));
}

bool HasNative(const CtlArgs& args, const XmlNode& domain, const std::string& which) {
  return Find(NativesOf(domain, PlacesOf(args)), which) != nullptr;
}

tl::expected<void, int> DetachNative(const CtlArgs& args, const Domain& domain, const NativeTarget& target,
                                     const std::string& which) {
  const auto devices = NativesOf(target.live != nullptr ? *target.live : *target.config, PlacesOf(args));
  const NativeDevice* device = Find(devices, which);
  if (device == nullptr || device->vf.empty())
    return tl::unexpected(Complain(kExitNotFound, fmt::format("{}: the domain has no VF {}", args.name, which)));
  Hostdev hostdev;
  hostdev.vf = device->vf;
  hostdev.managed = device->managed;
  if (target.live != nullptr) {
    // With its settings, by which it is known whether it ends now.
    const auto note = ReadNative(*target.live, PlacesOf(args));
    if (!note) return tl::unexpected(Explain(args.name, note.error()));
    for (const Hostdev& each : note->hostdevs)
      if (each.vf == device->vf) hostdev = each;
  }
  const auto done =
      domain.DetachDevice(WriteXml(NativeElement(hostdev)), target.live != nullptr, target.config != nullptr);
  if (!done) return tl::unexpected(Explain(args.name, done.error()));
  if (target.live == nullptr) return {};
  const auto gone = WaitUntilGone(args, hostdev.vf, [&]() -> tl::expected<bool, int> {
    const auto live = LiveOf(domain, args.name);
    if (!live) return tl::unexpected(live.error());
    return HasNative(args, live->root, hostdev.vf);
  });
  if (!gone) return gone;
  return hostdev.managed ? ReleaseVf(args, hostdev) : tl::expected<void, int>{};
}

}  // namespace vgpud::tools
