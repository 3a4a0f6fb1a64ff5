// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/domain/hot_plug.h"

#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "tools/libvirt/arguments.h"
#include "tools/libvirt/confined_user.h"
#include "tools/libvirt/domain.h"
#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/domain/domain_xml.h"
#include "tools/vgpuctl/domain/let_go.h"
#include "tools/vgpuctl/domain/vf_access.h"

namespace vgpud::tools {
namespace {

tl::expected<CtlJson, int> Command(const CtlArgs& args, const Domain& domain, const char* name, CtlJson arguments) {
  CtlJson command{{"execute", name}};
  if (!arguments.is_null()) command["arguments"] = std::move(arguments);
  const auto answer = domain.Monitor(command.dump());
  if (!answer) return tl::unexpected(Explain(args.name, answer.error()));
  const CtlJson json = CtlJson::parse(*answer, nullptr, false);
  return json.is_object() ? json.value("return", CtlJson()) : CtlJson();
}

// Root ports in front of which nothing is, by QEMU's id.
void FindEmpty(const CtlJson& devices, std::vector<std::string>& out) {
  for (const CtlJson& device : devices) {
    const auto bridge = device.find("pci_bridge");
    if (bridge == device.end() || !bridge->is_object()) continue;
    const CtlJson behind = bridge->value("devices", CtlJson::array());
    if (behind.empty() && !Text(device, "qdev_id").empty()) out.push_back(Text(device, "qdev_id"));
    FindEmpty(behind, out);
  }
}

bool UsesBus(const XmlNode& node, const std::string& bus) {
  return std::any_of(node.children.begin(), node.children.end(), [&](const XmlNode& child) {
    return (child.IsElement("address") && child.Get("bus") == bus) || UsesBus(child, bus);
  });
}

// A root port that libvirt has and means nothing else for.
bool IsSpare(const XmlNode& live, const std::string& id) {
  const XmlNode* devices = live.Child("devices");
  if (devices == nullptr) return false;
  for (const XmlNode& each : devices->children) {
    if (!each.IsElement("controller") || each.Get("model") != "pcie-root-port") continue;
    const XmlNode* alias = each.Child("alias");
    if (alias == nullptr || alias->Get("name") != id) continue;
    const std::string index = each.Get("index");
    return index.find_first_not_of("0123456789") == std::string::npos && index.size() < 4 &&
           !UsesBus(*devices, fmt::format("0x{:02x}", std::atoi(index.c_str())));
  }
  return false;
}

tl::expected<std::string, int> FindPort(const CtlArgs& args, const Domain& domain, const XmlNode& live) {
  const auto buses = Command(args, domain, "query-pci", {});
  if (!buses) return tl::unexpected(buses.error());
  std::vector<std::string> empty;
  for (const CtlJson& bus : *buses) FindEmpty(bus.value("devices", CtlJson::array()), empty);
  // Ours first: they have a window that is large enough for any VF.
  for (const std::string& id : empty)
    if (id.ends_with("-port") && IsAlias(id.substr(0, id.size() - 5))) return id;
  for (const std::string& id : empty)
    if (IsSpare(live, id)) return id;
  return tl::unexpected(Complain(
      kExitRefused,
      fmt::format("{}: no free root port in the running guest, and none can be added while it runs: attach it with "
                  "--config and start the guest anew (ports to spare: <controller type='pci' "
                  "model='pcie-root-port'/>)",
                  args.name)));
}

// AppArmor learns of a profile's new text.
tl::expected<void, int> Reload(const XmlNode& live, const Note& note, const Places& places) {
  const std::string profile = AppArmorProfile(live);
  if (profile.empty()) return {};
  if (const auto put = PutRules(live, note, places); !put) return put;
  std::string program = "apparmor_parser", option = "-r", path = "/etc/apparmor.d/libvirt/" + profile;
  if (::access(path.c_str(), F_OK) != 0) return {};
  char* words[] = {program.data(), option.data(), path.data(), nullptr};
  pid_t child = 0;
  int status = 0;
  if (::posix_spawnp(&child, program.c_str(), nullptr, nullptr, words, environ) == 0 &&
      ::waitpid(child, &status, 0) == child && status == 0)
    return {};
  return tl::unexpected(
      Complain(kExitFailed, fmt::format("apparmor_parser -r {} failed: QEMU may not open the VF yet", path)));
}

// As libvirt wants it: it adds the namespace and its prefix itself.
std::string Bare(const Note& note) {
  XmlNode root = NoteXml(note);
  root.Unset("xmlns:vgpud");
  root.name = "hostdevs";
  for (XmlNode& each : root.children)
    if (each.kind == XmlNode::Kind::kElement) each.name = "hostdev";
  return WriteXml(root);
}

bool IsHeld(const XmlNode& live, const Note& note) {
  const auto objects = ObjectsOf(live);
  return !note.hostdevs.empty() &&
         (std::any_of(objects.begin(), objects.end(), [](const auto& each) { return each.id == kHeldStateNode; }) ||
          std::any_of(note.hostdevs.begin(), note.hostdevs.end(), [](const auto& each) { return !each.bus.empty(); }));
}

tl::expected<void, int> AddDevice(const CtlArgs& args, const Domain& domain, const Hostdev& hostdev, bool is_held,
                                  const Places& places) {
  if (!is_held) {
    const auto held =
        Command(args, domain, "blockdev-add", CtlJson::parse(HeldStateArgument(places).value, nullptr, false));
    if (!held) return tl::unexpected(held.error());
  }
  const auto added =
      Command(args, domain, "device_add", CtlJson::parse(DeviceArgument(hostdev, places).value, nullptr, false));
  if (added) return {};
  if (!is_held) (void)Command(args, domain, "blockdev-del", {{"node-name", kHeldStateNode}});
  return tl::unexpected(added.error());
}

tl::expected<void, int> WaitUntilUnplugged(const CtlArgs& args, const Domain& domain, const std::string& alias) {
  return WaitUntilGone(args, alias, [&]() -> tl::expected<bool, int> {
    const auto list = Command(args, domain, "qom-list", {{"path", "/machine/peripheral"}});
    if (!list) return tl::unexpected(list.error());
    return std::any_of(list->begin(), list->end(), [&](const CtlJson& each) { return Text(each, "name") == alias; });
  });
}

}  // namespace

tl::expected<void, int> PlugIn(const CtlArgs& args, const Domain& domain, const XmlNode& live, Hostdev hostdev) {
  const Places places = PlacesOf(args);
  if (const auto fits = CheckMachine(live); !fits) return tl::unexpected(Explain(args.name, fits.error()));
  if (!HasSharedMemory(live))
    return tl::unexpected(
        Complain(kExitRefused, fmt::format("{}: its memory is private for as long as it runs: attach it with "
                                           "--config, which shares it, and start the guest anew",
                                           args.name)));
  auto note = ReadNote(live);
  if (!note) return tl::unexpected(Explain(args.name, note.error()));
  const auto port = FindPort(args, domain, live);
  if (!port) return tl::unexpected(port.error());
  hostdev.bus = *port;
  hostdev.slot = 0;
  if (hostdev.managed)
    if (const auto ready = PrepareVf(args, hostdev, IdOf(live), QemuUser(live)); !ready) return ready;
  const Note before = *note;
  note->hostdevs.push_back(hostdev);
  auto done = PutHeldState(places);
  if (done) done = Reload(live, *note, places);
  if (done) done = AddDevice(args, domain, hostdev, IsHeld(live, before), places);
  if (done) {
    const auto noted = domain.SetLiveNote(Bare(*note));
    if (noted) return {};
    (void)Explain(args.name, noted.error());
    (void)Command(args, domain, "device_del", {{"id", hostdev.alias}});
    const auto gone = WaitUntilUnplugged(args, domain, hostdev.alias);
    done = tl::unexpected<int>(gone ? int{kExitFailed} : gone.error());
  }
  if (hostdev.managed) (void)ReleaseVf(args, hostdev);
  (void)Reload(live, before, places);
  return done;
}

tl::expected<void, int> Unplug(const CtlArgs& args, const Domain& domain, const XmlNode& live,
                               const std::string& which) {
  auto note = ReadNote(live);
  if (!note) return tl::unexpected(Explain(args.name, note.error()));
  const auto it = std::find_if(note->hostdevs.begin(), note->hostdevs.end(),
                               [&](const Hostdev& each) { return each.alias == which || each.vf == which; });
  if (it == note->hostdevs.end())
    return tl::unexpected(Complain(kExitNotFound, fmt::format("{}: the running guest has no VF {}", args.name, which)));
  const Hostdev hostdev = *it;
  if (const auto asked = Command(args, domain, "device_del", {{"id", hostdev.alias}}); !asked)
    return tl::unexpected(asked.error());
  if (const auto gone = WaitUntilUnplugged(args, domain, hostdev.alias); !gone) return tl::unexpected(gone.error());
  note->hostdevs.erase(it);
  const bool is_last = note->hostdevs.empty();
  const auto noted = domain.SetLiveNote(is_last ? "" : Bare(*note));
  if (!noted) return tl::unexpected(Explain(args.name, noted.error()));
  if (is_last)
    if (const auto freed = Command(args, domain, "blockdev-del", {{"node-name", kHeldStateNode}}); !freed)
      return tl::unexpected(freed.error());
  if (const auto reloaded = Reload(live, *note, PlacesOf(args)); !reloaded) return reloaded;
  return hostdev.managed ? ReleaseVf(args, hostdev) : tl::expected<void, int>{};
}

}  // namespace vgpud::tools
