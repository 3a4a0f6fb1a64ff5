// SPDX-License-Identifier: Apache-2.0
// vgpuctl attach, detach
#include <fmt/core.h>

#include <algorithm>

#include "tools/libvirt/domain.h"
#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/domain/domain_xml.h"
#include "tools/vgpuctl/domain/hot_plug.h"
#include "tools/vgpuctl/domain/native.h"
#include "tools/vgpuctl/domain/vf_access.h"
#include "vgpud/model/api.h"
#include "vgpud/model/knobs.h"
#include "vgpud/model/nearest.h"

namespace vgpud::tools {
namespace {

tl::expected<Hostdev, int> Wanted(const CtlArgs& args) {
  Hostdev out;
  out.vf = args.vf;
  out.managed = !args.unmanaged;
  const auto say = [&](const std::string& name, const std::string& value) -> bool {
    if (!IsSettingValue(value)) return false;
    out.settings.emplace_back(name, value);
    return true;
  };
  bool fits = args.profile.empty() || say("profile", args.profile);
  fits = fits && (args.tenant.empty() || say("tenant", args.tenant));
  if (args.vram) fits = fits && say("vram", *args.vram);
  if (args.host_memory) fits = fits && say("host-memory", *args.host_memory);
  for (const auto& knob : control::Knobs())
    if (const auto typed = args.knobs.find(knob.field); typed != args.knobs.end())
      fits = fits && say(knob.option, typed->second);
  if (!fits) return tl::unexpected(Complain(kExitUsage, "a value has characters in it that no value has"));
  if (!out.vf.empty() && !control::IsValidName(out.vf))
    return tl::unexpected(
        Complain(kExitUsage, fmt::format("--vf {} is not a name of a VF: small letters, digits and -", out.vf)));
  if (out.vf.empty() && out.settings.empty())
    return tl::unexpected(Complain(kExitUsage, "which VF? --vf NAME takes one that is there, --profile 1/4 makes one"));
  if (!out.settings.empty() && args.profile.empty() && !args.vram)
    return tl::unexpected(Complain(kExitUsage,
                                   "--weight and the like are for a VF that is made with --profile or --vram; of one "
                                   "that is there, change it with vgpuctl set"));
  if (!out.managed && !out.settings.empty())
    return tl::unexpected(Complain(kExitUsage, "--unmanaged is for a VF that is there, with --vf"));
  return out;
}

// A domain may be written before its VF is made: then it can't start yet.
tl::expected<void, int> WarnOfMissing(const CtlArgs& args, const Hostdev& wanted) {
  if (!wanted.settings.empty()) return {};
  const auto listed = AskIfServed(args, "GET", "/v1/vfs");
  if (!listed) return tl::unexpected(listed.error());
  if (!*listed) return {};
  std::vector<std::string> names;
  for (const CtlJson& vf : (*listed)->json.value("vfs", CtlJson::array())) names.push_back(Text(vf, "name"));
  if (std::find(names.begin(), names.end(), wanted.vf) != names.end()) return {};
  const auto nearest = control::Nearest(wanted.vf, names);
  (void)Complain(kExitOk, fmt::format("there is no vf \"{0}\" yet{1}: the domain starts only when there is one "
                                      "(vgpuctl create {0})",
                                      wanted.vf, nearest.empty() ? "" : ", " + control::DidYouMeanOneOf(nearest)));
  return {};
}

// Where to: as told, else wherever the domain is.
struct Target {
  bool live;
  bool config;
};
tl::expected<Target, int> TargetOf(const CtlArgs& args, const Domain& domain) {
  const bool is_told = args.live || args.config;
  const Target target{is_told ? args.live : domain.IsRunning(), is_told ? args.config : domain.IsPersistent()};
  if (target.live && !domain.IsRunning())
    return tl::unexpected(Complain(kExitRefused, args.name + " does not run: leave --live out, or start it"));
  if (target.config && !domain.IsPersistent())
    return tl::unexpected(Complain(kExitRefused, args.name + " has no configuration that lasts: leave --config out"));
  return target;
}

const char* Where(const Target& target) {
  return target.live && target.config ? "now and at each start" : target.live ? "now" : "from its next start on";
}

}  // namespace

int CmdAttach(const CtlArgs& args) {
  auto wanted = Wanted(args);
  if (!wanted) return wanted.error();
  const auto libvirt = ConnectTo(args);
  if (!libvirt) return libvirt.error();
  const auto domain = FindDomain(*libvirt, args.name);
  if (!domain) return domain.error();
  const auto target = TargetOf(args, *domain);
  if (!target) return target.error();
  if (const auto could = CheckWanted(args, {*wanted}); !could) return could.error();
  if (const auto said = WarnOfMissing(args, *wanted); !said) return said.error();
  auto config = ConfigOf(*domain, args.name);
  if (!config) return config.error();
  auto live = domain->IsRunning() ? LiveOf(*domain, args.name) : config;
  if (!live) return live.error();
  if (IsNative(*libvirt, config->root)) {
    const NativeTarget native{target->live ? &live->root : nullptr, target->config ? &config->root : nullptr};
    const auto attached = AttachNative(args, *domain, native, *wanted);
    if (!attached) return attached.error();
    fmt::print("{}: VF {} attached, {}\n", args.name, attached->vf, Where(*target));
    return kExitOk;
  }
  const XmlNode running = live->root;
  wanted->alias = FreeAlias(config->root, live->root);
  for (auto* each : {target->config ? &config->root : nullptr, target->live ? &live->root : nullptr}) {
    if (each == nullptr) continue;
    auto attached = Attach(*each, *wanted, PlacesOf(args));
    if (!attached) return Explain(args.name, attached.error());
    wanted->vf = attached->vf;
  }
  if (target->live)
    if (const auto plugged = PlugIn(args, *domain, running, *wanted); !plugged) return plugged.error();
  if (target->config) {
    const auto defined = libvirt->Define(WriteXml(*config));
    if (!defined) {
      const int exit = Explain(args.name, defined.error());
      const auto now = target->live ? LiveOf(*domain, args.name) : tl::unexpected(exit);
      if (now) (void)Unplug(args, *domain, now->root, wanted->alias);
      return exit;
    }
  }
  fmt::print("{}: VF {} attached as {}, {}\n", args.name, wanted->vf, wanted->alias, Where(*target));
  return kExitOk;
}

int CmdDetach(const CtlArgs& args) {
  const auto libvirt = ConnectTo(args);
  if (!libvirt) return libvirt.error();
  const auto domain = FindDomain(*libvirt, args.name);
  if (!domain) return domain.error();
  const auto target = TargetOf(args, *domain);
  if (!target) return target.error();
  auto config = ConfigOf(*domain, args.name);
  if (!config) return config.error();
  auto live = target->live ? LiveOf(*domain, args.name) : config;
  if (!live) return live.error();
  const bool is_told = args.live || args.config;
  const NativeTarget native{target->live && HasNative(args, live->root, args.vf) ? &live->root : nullptr,
                            target->config && HasNative(args, config->root, args.vf) ? &config->root : nullptr};
  if (native.live != nullptr || native.config != nullptr) {
    const auto detached = DetachNative(args, *domain, native, args.vf);
    if (!detached) return detached.error();
    fmt::print("{}: {} detached, {}\n", args.name, args.vf, Where({native.live != nullptr, native.config != nullptr}));
    return kExitOk;
  }
  const auto has = [&](const XmlNode& xml) {
    XmlNode copy = xml;
    return Detach(copy, args.vf).has_value();
  };
  const bool from_live = target->live && (is_told || has(live->root));
  const bool from_config = target->config && (is_told || has(config->root) || !from_live);
  if (from_config) {
    const auto detached = Detach(config->root, args.vf);
    if (!detached) return Explain(args.name, detached.error());
  }
  if (from_live)
    if (const auto gone = Unplug(args, *domain, live->root, args.vf); !gone) return gone.error();
  if (from_config) {
    const auto defined = libvirt->Define(WriteXml(*config));
    if (!defined) return Explain(args.name, defined.error());
  }
  fmt::print("{}: {} detached, {}\n", args.name, args.vf, Where({from_live, from_config}));
  return kExitOk;
}

}  // namespace vgpud::tools
