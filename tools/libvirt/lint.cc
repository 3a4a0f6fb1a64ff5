// SPDX-License-Identifier: Apache-2.0
#include "tools/libvirt/lint.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "tools/libvirt/arguments.h"
#include "tools/libvirt/domain.h"
#include "tools/libvirt/native.h"

namespace vgpud::tools {
namespace {

struct Case {
  const XmlNode& domain;
  const Places& places;
  const HostFacts& facts;
  Note note;
  std::string note_error;
  std::vector<QemuObject> objects;
  std::vector<NativeDevice> natives;

  std::vector<QemuObject> Arguments() const {
    std::vector<QemuObject> out;
    for (const QemuObject& each : objects)
      if (each.driver == "vfio-user-pci") out.push_back(each);
    return out;
  }
  // Those of QEMU arguments, and the elements of a libvirt that knows them.
  std::vector<QemuObject> Devices() const {
    std::vector<QemuObject> out = Arguments();
    for (const NativeDevice& each : natives)
      out.push_back({"vfio-user-pci", each.alias.empty() ? "a <hostdev>" : each.alias,
                     each.bus.empty() ? "chosen by libvirt" : each.bus, 0, each.socket, false});
    return out;
  }
  // libvirt itself does for its elements what we do for arguments.
  bool IsAllNative() const { return !natives.empty() && note.hostdevs.empty() && Arguments().empty(); }
};

// What is wrong, empty: nothing.
using Check = std::string (*)(const Case&);

std::string VfOf(const Case& c, const std::string& socket) {
  const std::string prefix = c.places.runtime_dir + "/vf/";
  if (!socket.starts_with(prefix) || !socket.ends_with(".sock")) return {};
  return socket.substr(prefix.size(), socket.size() - prefix.size() - 5);
}

bool IsMadeByHook(const Case& c, const std::string& vf) {
  if (!c.facts.hook_installed.value_or(false)) return false;
  const auto& ours = c.note.hostdevs;
  return std::any_of(ours.begin(), ours.end(),
                     [&](const Hostdev& each) { return each.vf == vf && !each.settings.empty(); }) ||
         std::any_of(c.natives.begin(), c.natives.end(),
                     [&](const NativeDevice& each) { return each.vf == vf && each.is_made; });
}

std::string MachineType(const Case& c) {
  const auto fits = CheckMachine(c.domain);
  // Private memory has a row of its own.
  return fits || fits.error().context.find("memory") != std::string::npos ? "" : fits.error().context;
}
std::string PrivateMemory(const Case& c) {
  // libvirt shares the memory of its elements' domains where nothing is said.
  if (c.IsAllNative() && c.domain.At({"memoryBacking", "access"}) == nullptr && c.domain.At({"cpu", "numa"}) == nullptr)
    return {};
  return HasSharedMemory(c.domain) ? "" : "the guest's memory is private: vgpud has to see the guest's queues in it";
}
std::string HugePages(const Case& c) {
  return HasHugePages(c.domain)
             ? "the guest's memory is in huge pages: vgpud refuses them, and the guest's driver with it"
             : "";
}
std::string NoAcpi(const Case& c) {
  return c.domain.At({"features", "acpi"}) != nullptr
             ? ""
             : "no <acpi/>: the guest sees no hot-plug, and older libvirt passes "
               "-no-acpi, which QEMU 9.0 and newer refuse";
}
std::string NoNamespace(const Case& c) {
  for (const XmlNode& child : c.domain.children)
    if (child.kind == XmlNode::Kind::kElement && child.space != kQemuSpace && child.name.ends_with("commandline"))
      return fmt::format("<{}> is not in QEMU's namespace: libvirt drops it without a word", child.name);
  return {};
}
std::string OldQemu(const Case& c) {
  if (!c.facts.qemu_version) return {};
  if (c.facts.qemu_version->empty()) return "its <emulator> does not run";
  if (!IsOldQemu(*c.facts.qemu_version)) return {};
  return fmt::format("its QEMU is {}, and vfio-user came with {}", *c.facts.qemu_version, kQemuMin);
}
std::string NoDevice(const Case& c) {
  return c.facts.qemu_has_device.value_or(true) || !OldQemu(c).empty() ? ""
                                                                       : "its QEMU was built without vfio-user-pci";
}
std::string AddressClash(const Case& c) {
  std::map<unsigned, std::string> by_slot;
  // Without the arguments, what is left in libvirt's part.
  XmlNode without = c.domain;
  std::erase_if(without.children, [](const XmlNode& child) { return child.space == kQemuSpace; });
  for (const unsigned slot : UsedSlots(without)) by_slot[slot] = "a device of libvirt's";
  for (const QemuObject& each : c.objects) {
    if (each.bus != "pcie.0" || each.slot == 0) continue;
    const auto [it, is_new] = by_slot.emplace(each.slot, each.id);
    if (!is_new) return fmt::format("{} and {} are both at slot 0x{:02x} of bus 0", it->second, each.id, each.slot);
  }
  return {};
}
std::string SameId(const Case& c) {
  std::set<std::string> ids;
  for (const QemuObject& each : c.objects)
    if (!each.id.empty() && !ids.insert(each.id).second) return fmt::format("two devices have the id {}", each.id);
  return {};
}
std::string SameVf(const Case& c) {
  std::set<std::string> sockets;
  for (const QemuObject& each : c.Devices()) {
    if (!each.socket.empty() && !sockets.insert(each.socket).second)
      return fmt::format("two devices are on one VF ({}): it serves one", each.socket);
    const auto other = c.facts.vfs_of_others.find(VfOf(c, each.socket));
    if (other != c.facts.vfs_of_others.end())
      return fmt::format("VF {} is in domain {}, too: only one of them can run", other->first, other->second);
  }
  return {};
}
std::string NoPort(const Case& c) {
  for (const QemuObject& each : c.Devices())
    if (each.bus.empty() || each.bus == "pcie.0")
      return fmt::format("{} is on bus 0 itself: it can't be unplugged from a running guest there", each.id);
  return {};
}
std::string NoWindow(const Case& c) {
  for (const QemuObject& port : c.objects) {
    if (port.driver != "pcie-root-port" || port.has_window) continue;
    for (const QemuObject& each : c.Devices())
      if (each.bus == port.id)
        return fmt::format("root port {} of {} keeps no window free: a device that is plugged in later gets no memory",
                           port.id, each.id);
  }
  return {};
}
std::string Iommu(const Case& c) {
  const XmlNode* iommu = c.domain.At({"devices", "iommu"});
  if (iommu == nullptr || iommu->Get("model") != "intel") return {};
  const XmlNode* driver = iommu->Child("driver");
  if (driver != nullptr && driver->Get("intremap") == "on" && driver->Get("caching_mode") == "on") return {};
  return "its IOMMU does not tell vgpud what the guest maps (caching_mode), or has no windows for interrupts "
         "(intremap)";
}
std::string NoteIsDamaged(const Case& c) { return c.note_error; }
std::string NoteIsAlone(const Case& c) {
  for (const Hostdev& each : c.note.hostdevs)
    if (each.bus.empty() && std::none_of(c.objects.begin(), c.objects.end(),
                                         [&](const QemuObject& object) { return object.id == each.alias; }))
      return fmt::format("its note says {} ({}), but no QEMU argument does", each.alias, each.vf);
  return {};
}
std::string NoVf(const Case& c) {
  for (const QemuObject& each : c.Devices()) {
    if (each.socket.empty()) continue;
    const std::string vf = VfOf(c, each.socket);
    if (vf.empty()) return fmt::format("{} is no socket of this vgpud ({})", each.socket, c.places.runtime_dir);
    if (c.facts.vfs && !c.facts.vfs->contains(vf) && !IsMadeByHook(c, vf)) return fmt::format("vgpud has no VF {}", vf);
  }
  return {};
}
std::string NoRights(const Case& c) {
  if (c.facts.hook_installed.value_or(false) && !c.note.hostdevs.empty()) return {};
  const auto is_given = [&](const std::string& vf) {
    return std::any_of(c.natives.begin(), c.natives.end(),
                       [&](const auto& each) { return each.vf == vf && each.managed; });
  };
  for (const auto& [vf, socket] : c.facts.sockets)
    if (!is_given(vf) && socket.exists && !socket.may_open)
      return fmt::format("user {}, who runs QEMU, may not open the socket of VF {}", c.facts.user, vf);
  return {};
}
std::string AppArmor(const Case& c) {
  return c.IsAllNative() || c.facts.apparmor_allows.value_or(true) || c.facts.hook_installed.value_or(false)
             ? ""
             : "AppArmor does not let QEMU open the VF's socket";
}
std::string NoHook(const Case& c) {
  if (c.facts.hook_installed.value_or(true)) return {};
  for (const Hostdev& each : c.note.hostdevs)
    if (each.managed)
      return fmt::format("nobody prepares VF {} when the domain starts: libvirt's hook is not installed", each.vf);
  for (const NativeDevice& each : c.natives)
    if (each.is_made)
      return fmt::format("nobody makes {} when the domain starts: libvirt's hook is not installed",
                         each.vf.empty() ? "its VF" : "VF " + each.vf);
  return {};
}
std::string NotHeld(const Case& c) {
  return c.IsAllNative() || std::any_of(c.objects.begin(), c.objects.end(),
                                        [](const auto& each) { return each.id == kHeldStateNode; })
             ? ""
             : "QEMU would save, snapshot and migrate the guest without the state of its VF";
}
std::string FarCpus(const Case& c) {
  if (!c.facts.gpu_node_cpus) return {};
  const auto away = [&](const std::string& text) {
    const auto cpus = ParseCpus(text);
    return cpus && !cpus->empty() &&
           std::none_of(cpus->begin(), cpus->end(), [&](unsigned cpu) { return c.facts.gpu_node_cpus->contains(cpu); });
  };
  const XmlNode* vcpu = c.domain.Child("vcpu");
  if (vcpu != nullptr && away(vcpu->Get("cpuset"))) return "its vCPUs are kept away from the GPU's NUMA node";
  if (const XmlNode* tune = c.domain.Child("cputune"))
    for (const XmlNode& pin : tune->children)
      if (pin.IsElement("vcpupin") && away(pin.Get("cpuset")))
        return fmt::format("vCPU {} is kept away from the GPU's NUMA node", pin.Get("vcpu"));
  return {};
}

constexpr struct {
  const char* id;
  Check check;
  const char* fix;
  bool can_fix;
} kChecks[] = {
    {"machine", &MachineType, "see there", false},
    {"private-memory", &PrivateMemory, "<memoryBacking><source type='memfd'/><access mode='shared'/></memoryBacking>",
     true},
    {"huge-pages", &HugePages, "take <hugepages> out of <memoryBacking>", true},
    {"no-acpi", &NoAcpi, "<features><acpi/></features>", true},
    {"no-namespace", &NoNamespace,
     "<domain xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'> and <qemu:commandline>", true},
    {"old-qemu", &OldQemu, "install QEMU 10.1 or newer and name it in <emulator>", false},
    {"no-vfio-user", &NoDevice, "name another QEMU in <emulator>", false},
    {"address-clash", &AddressClash, "detach the VF and attach it again: it gets a free slot", false},
    {"same-id", &SameId, "take one of them out", false},
    {"same-vf", &SameVf, "give each a VF of its own (vgpuctl create)", false},
    {"no-root-port", &NoPort, "take it out and let vgpuctl attach put it in", false},
    {"no-window", &NoWindow, "pref64-reserve=67108864 for that port", true},
    {"iommu", &Iommu, "<iommu model='intel'><driver intremap='on' caching_mode='on'/></iommu>", true},
    {"damaged-note", &NoteIsDamaged, "see there", false},
    {"lost-arguments", &NoteIsAlone, "vgpuctl detach and attach", false},
    {"no-vf", &NoVf, "vgpuctl create makes one; or attach with --profile, then it is made at start", false},
    {"socket-rights", &NoRights, "install the hook, or setfacl -m u:USER:rw SOCKET", false},
    {"apparmor", &AppArmor, "install the hook, or allow the socket in /etc/apparmor.d/local/abstractions/libvirt-qemu",
     false},
    {"no-hook", &NoHook, "vgpuctl hook --install, then restart libvirtd", false},
    {"not-held", &NotHeld, "vgpuctl detach and attach, or never save, snapshot or migrate it", false},
    {"far-cpus", &FarCpus, "pin vCPUs to processors of that node, or let libvirt choose", false},
};

Case CaseOf(const XmlNode& domain, const Places& places, const HostFacts& facts) {
  Case c{domain, places, facts, {}, {}, ObjectsOf(domain), NativesOf(domain, places)};
  auto note = ReadNote(domain);
  if (note)
    c.note = std::move(*note);
  else
    c.note_error = note.error().context;
  return c;
}

// Another's prefix, or none, becomes QEMU's.
void PutNamespaceRight(XmlNode& domain) {
  for (XmlNode& child : domain.children) {
    if (child.kind != XmlNode::Kind::kElement || child.space == kQemuSpace || !child.name.ends_with("commandline"))
      continue;
    domain.Set("xmlns:qemu", kQemuSpace);
    child.name = "qemu:commandline";
    child.space = kQemuSpace;
    std::erase_if(child.attributes, [](const XmlAttribute& each) { return each.name.starts_with("xmlns"); });
    for (XmlNode& arg : child.children) {
      if (arg.kind != XmlNode::Kind::kElement) continue;
      arg.name = "qemu:" + arg.name.substr(arg.name.find(':') + 1);
      arg.space = kQemuSpace;
    }
  }
}

XmlNode Element(const char* name, std::vector<XmlAttribute> attributes) {
  XmlNode node;
  node.name = name;
  node.attributes = std::move(attributes);
  return node;
}

XmlNode& Made(XmlNode& parent, const char* name, size_t depth) {
  if (parent.Child(name) == nullptr) PutIn(parent, Element(name, {}), depth);
  return *parent.Child(name);
}

void ShareMemory(XmlNode& domain) {
  if (HasSharedMemory(domain)) return;
  XmlNode& backing = Made(domain, "memoryBacking", 0);
  XmlNode& source = Made(backing, "source", 1);
  if (!source.Has("type") || source.Get("type") == "anonymous") source.Set("type", "memfd");
  Made(backing, "access", 1).Set("mode", "shared");
  XmlNode* cpu = domain.Child("cpu");
  if (XmlNode* numa = cpu == nullptr ? nullptr : cpu->Child("numa"))
    for (XmlNode& cell : numa->children)
      if (cell.Has("memAccess")) cell.Set("memAccess", "shared");
}

}  // namespace

bool IsOldQemu(const std::string& version) {
  const auto number = [](const std::string& text) {
    unsigned major = 0, minor = 0;
    const char* end = text.data() + text.size();
    const auto at = std::from_chars(text.data(), end, major);
    if (at.ptr != end) std::from_chars(at.ptr + 1, end, minor);
    return major * 1000 + minor;
  };
  return number(version) < number(kQemuMin);
}

std::vector<Finding> Lint(const XmlNode& domain, const Places& places, const HostFacts& facts) {
  std::vector<Finding> out;
  XmlNode right = domain;
  PutNamespaceRight(right);
  // Devices behind a wrong namespace are judged, too.
  Case c = CaseOf(right, places, facts);
  if (c.Devices().empty() && c.note.hostdevs.empty() && c.note_error.empty()) return out;
  const Case as_written = CaseOf(domain, places, facts);
  for (const auto& row : kChecks) {
    std::string problem = row.check(row.check == &NoNamespace ? as_written : c);
    if (!problem.empty()) out.push_back({row.id, std::move(problem), row.fix, row.can_fix});
  }
  return out;
}

void Fix(XmlNode& domain, const Places&) {
  PutNamespaceRight(domain);
  ShareMemory(domain);
  if (XmlNode* backing = domain.Child("memoryBacking")) (void)TakeOut(*backing, "hugepages");
  (void)Made(Made(domain, "features", 0), "acpi", 1);
  XmlNode* devices = domain.Child("devices");
  XmlNode* iommu = devices == nullptr ? nullptr : devices->Child("iommu");
  if (iommu != nullptr && iommu->Get("model") == "intel") {
    XmlNode& driver = Made(*iommu, "driver", 2);
    driver.Set("intremap", "on");
    driver.Set("caching_mode", "on");
  }
  WidenPorts(domain);
}

std::optional<std::set<unsigned>> ParseCpus(std::string_view text) {
  std::set<unsigned> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    std::string_view word = text.substr(at, end - at);
    const bool without = word.starts_with('^');
    if (without) word.remove_prefix(1);
    unsigned first = 0, last = 0;
    const char* stop = word.data() + word.size();
    auto done = std::from_chars(word.data(), stop, first);
    last = first;
    if (done.ec == std::errc() && done.ptr != stop && *done.ptr == '-')
      done = std::from_chars(done.ptr + 1, stop, last);
    if (done.ec != std::errc() || done.ptr != stop || last < first || last > 65535) return std::nullopt;
    for (unsigned cpu = first; cpu <= last; ++cpu) without ? (void)out.erase(cpu) : (void)out.insert(cpu);
    at = end + 1;
  }
  return out;
}

}  // namespace vgpud::tools
