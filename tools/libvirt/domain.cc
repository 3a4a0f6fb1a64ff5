// SPDX-License-Identifier: Apache-2.0
#include "tools/libvirt/domain.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "tools/libvirt/arguments.h"
#include "tools/libvirt/native.h"
#include "vgpud/model/api.h"

namespace vgpud::tools {
namespace {

// Highest first: libvirt gives the low ones to devices of its own, and 0x19 and above to devices of the chip set.
constexpr unsigned kHighestSlot = 0x18, kLowestSlot = 0x08;
constexpr unsigned kMostDevices = 16;

auto Refuse(std::errc code, const std::string& why) { return Fail(code, why); }

XmlNode Element(std::string name, std::vector<XmlAttribute> attributes, std::string space = "") {
  XmlNode node;
  node.name = std::move(name);
  node.attributes = std::move(attributes);
  node.space = std::move(space);
  return node;
}

bool Has(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// ---- What a domain needs: each row adds one thing if it is not there, and takes it out again ----

bool AddNamespace(XmlNode& domain) {
  if (!PrefixOf(domain, kQemuSpace).empty()) return false;
  domain.Set("xmlns:qemu", kQemuSpace);
  return true;
}
void DropNamespace(XmlNode& domain) { domain.Unset("xmlns:qemu"); }

bool AddChild(XmlNode& parent, size_t depth, XmlNode child) {
  if (parent.Child(child.name) != nullptr) return false;
  PutIn(parent, std::move(child), depth);
  return true;
}

bool AddMetadata(XmlNode& domain) { return AddChild(domain, 0, Element("metadata", {})); }
bool AddBacking(XmlNode& domain) {
  return !HasSharedMemory(domain) && AddChild(domain, 0, Element("memoryBacking", {}));
}
bool AddSource(XmlNode& domain) {
  return !HasSharedMemory(domain) &&
         AddChild(*domain.Child("memoryBacking"), 1, Element("source", {{"type", "memfd"}}));
}
bool AddAccess(XmlNode& domain) {
  return !HasSharedMemory(domain) &&
         AddChild(*domain.Child("memoryBacking"), 1, Element("access", {{"mode", "shared"}}));
}
bool AddFeatures(XmlNode& domain) { return AddChild(domain, 0, Element("features", {})); }
bool AddAcpi(XmlNode& domain) { return AddChild(*domain.Child("features"), 1, Element("acpi", {})); }
bool AddCommandLine(XmlNode& domain) {
  if (CommandLine(domain) != nullptr) return false;
  PutIn(domain, Element(PrefixOf(domain, kQemuSpace) + ":commandline", {}, kQemuSpace), 0);
  return true;
}
void DropCommandLine(XmlNode& domain) { TakeOut(domain, PrefixOf(domain, kQemuSpace) + ":commandline"); }

template <const char* kParent, const char* kName>
void Drop(XmlNode& domain) {
  XmlNode* parent = *kParent == 0 ? &domain : domain.Child(kParent);
  if (parent != nullptr) TakeOut(*parent, kName);
}
constexpr char kRoot[] = "", kMetadata[] = "metadata", kBacking[] = "memoryBacking", kSource[] = "source",
               kAccess[] = "access", kFeatures[] = "features", kAcpi[] = "acpi";

constexpr struct {
  const char* name;
  bool (*add)(XmlNode&);
  void (*drop)(XmlNode&);
} kNeeds[] = {{"namespace", &AddNamespace, &DropNamespace},
              {"metadata", &AddMetadata, &Drop<kRoot, kMetadata>},
              {"memoryBacking", &AddBacking, &Drop<kRoot, kBacking>},
              {"source", &AddSource, &Drop<kBacking, kSource>},
              {"access", &AddAccess, &Drop<kBacking, kAccess>},
              {"features", &AddFeatures, &Drop<kRoot, kFeatures>},
              {"acpi", &AddAcpi, &Drop<kFeatures, kAcpi>},
              {"commandline", &AddCommandLine, &DropCommandLine}};

bool HasElements(const XmlNode* node) {
  return node != nullptr && std::any_of(node->children.begin(), node->children.end(),
                                        [](const XmlNode& child) { return child.kind != XmlNode::Kind::kText; });
}

// What others have put into an element that we added stays, and the element with it.
bool MayDrop(const XmlNode& domain, std::string_view name) {
  if (name == "commandline") return !HasElements(CommandLine(domain));
  if (name == "namespace")
    return std::none_of(domain.children.begin(), domain.children.end(),
                        [](const XmlNode& child) { return child.space == kQemuSpace; });
  if (name == "metadata" || name == "memoryBacking" || name == "features") return !HasElements(domain.Child(name));
  return true;
}

// ---- Names, arguments, the note ----

Result<Hostdev> Complete(const XmlNode& domain, const Note& note, Hostdev hostdev) {
  std::set<std::string> ids;
  for (const QemuObject& object : ObjectsOf(domain)) ids.insert(object.id);
  const auto is_taken = [&](const std::string& alias) { return ids.contains(alias) || ids.contains(alias + "-port"); };
  if (note.hostdevs.size() >= kMostDevices)
    return Refuse(std::errc::no_space_on_device, fmt::format("the domain has {} VFs already", kMostDevices));
  for (unsigned i = 0; hostdev.alias.empty(); ++i)
    if (!is_taken(fmt::format("vgpud{}", i))) hostdev.alias = fmt::format("vgpud{}", i);
  if (is_taken(hostdev.alias))
    return Refuse(
        std::errc::device_or_resource_busy,
        fmt::format("the alias {} is taken in this domain: leave <alias> out, or give another number", hostdev.alias));
  if (hostdev.vf.empty()) {
    const XmlNode* name = domain.Child("name");
    hostdev.vf = fmt::format("{}-{}", name == nullptr ? "" : name->Inside(), hostdev.alias);
    if (!control::IsValidName(hostdev.vf))
      return Refuse(
          std::errc::invalid_argument,
          fmt::format("\"{}\" would be the VF's name, which it can't be (small letters, digits and -, at most {}): "
                      "give it a name of your own with vf='NAME' beside the profile",
                      hostdev.vf, control::kMaxNameBytes));
  }
  for (const Hostdev& other : note.hostdevs)
    if (other.vf == hostdev.vf)
      return Refuse(std::errc::device_or_resource_busy,
                    fmt::format("the domain has VF {} already, as {}: a VF is one device", other.vf, other.alias));
  const std::set<unsigned> used = UsedSlots(domain);
  for (unsigned slot = kHighestSlot; hostdev.slot == 0 && slot >= kLowestSlot; --slot)
    if (!used.contains(slot)) hostdev.slot = slot;
  if (hostdev.slot == 0)
    return Refuse(
        std::errc::no_space_on_device,
        fmt::format("no slot from 0x{:02x} to 0x{:02x} on bus 0 is free for its root port: move a device of the "
                    "domain to another bus",
                    kLowestSlot, kHighestSlot));
  if (used.contains(hostdev.slot))
    return Refuse(
        std::errc::device_or_resource_busy,
        fmt::format("slot 0x{:02x} on bus 0 is taken: leave <address> out, or give another slot", hostdev.slot));
  return hostdev;
}

void AddArgument(XmlNode& domain, const QemuArgument& argument) {
  XmlNode& line = *CommandLine(domain);
  const std::string name = PrefixOf(domain, kQemuSpace) + ":arg";
  PutIn(line, Element(name, {{"value", argument.option}}, kQemuSpace), 1);
  PutIn(line, Element(name, {{"value", argument.value}}, kQemuSpace), 1);
}

// The option whose value has that id, and the value.
bool DropArgument(XmlNode& domain, const std::string& id) {
  XmlNode* line = CommandLine(domain);
  if (line == nullptr) return false;
  size_t option = 0;
  bool is_object = false;
  for (size_t i = 0; i < line->children.size(); ++i) {
    const XmlNode& arg = line->children[i];
    if (arg.kind != XmlNode::Kind::kElement || !arg.name.ends_with(":arg")) continue;
    if (is_object && ParseObject(arg.Get("value")).id == id) {
      TakeOut(*line, i);
      TakeOut(*line, option);
      return true;
    }
    is_object = !is_object && (arg.Get("value") == "-device" || arg.Get("value") == "-blockdev");
    option = i;
  }
  return false;
}

void PutNote(XmlNode& domain, const Note& note) {
  XmlNode& metadata = *domain.Child("metadata");
  const int index = FindNote(metadata);
  if (note.hostdevs.empty()) {
    if (index >= 0) TakeOut(metadata, static_cast<size_t>(index));
  } else if (index >= 0) {
    metadata.children[static_cast<size_t>(index)] = NoteXml(note);
  } else {
    PutIn(metadata, NoteXml(note), 1);
  }
}

}  // namespace

DomainId IdOf(const XmlNode& domain) {
  const auto inside = [&](const char* name) {
    const XmlNode* child = domain.Child(name);
    return child == nullptr ? std::string() : child->Inside();
  };
  return {inside("name"), inside("uuid")};
}

std::set<std::string> VfsOf(const XmlNode& domain, const Places& places) {
  std::set<std::string> vfs;
  if (const auto note = ReadNote(domain))
    for (const Hostdev& each : note->hostdevs) vfs.insert(each.vf);
  for (const NativeDevice& each : NativesOf(domain, places))
    if (!each.vf.empty()) vfs.insert(each.vf);
  for (const QemuObject& object : ObjectsOf(domain)) {
    const std::filesystem::path socket = object.socket;
    if (socket.extension() == ".sock" && places.Socket(socket.stem()) == object.socket) vfs.insert(socket.stem());
  }
  return vfs;
}

std::string FreeAlias(const XmlNode& one, const XmlNode& other) {
  std::set<std::string> ids;
  for (const XmlNode* each : {&one, &other}) {
    for (const QemuObject& object : ObjectsOf(*each)) ids.insert(object.id);
    if (const auto note = ReadNote(*each))
      for (const Hostdev& hostdev : note->hostdevs) ids.insert({hostdev.alias, hostdev.Port()});
  }
  for (unsigned i = 0;; ++i)
    if (const auto alias = fmt::format("vgpud{}", i); !ids.contains(alias) && !ids.contains(alias + "-port"))
      return alias;
}

Result<Hostdev> Attach(XmlNode& domain, const Hostdev& wanted, const Places& places) {
  TRY(CheckMachine(domain));
  Note note = TRY(ReadNote(domain));
  const Hostdev hostdev = TRY(Complete(domain, note, wanted));
  for (const XmlAttribute& each : domain.attributes)
    if (each.name == "xmlns:qemu" && each.value != kQemuSpace)
      return Refuse(std::errc::invalid_argument,
                    fmt::format("its prefix qemu stands for {}: write xmlns:qemu='{}'", each.value, kQemuSpace));
  for (const auto& need : kNeeds)
    if (need.add(domain) && !Has(note.added, need.name)) note.added.emplace_back(need.name);
  if (note.hostdevs.empty()) AddArgument(domain, HeldStateArgument(places));
  AddArgument(domain, PortArgument(hostdev));
  AddArgument(domain, DeviceArgument(hostdev, places));
  note.hostdevs.push_back(hostdev);
  PutNote(domain, note);
  return hostdev;
}

Result<Hostdev> Detach(XmlNode& domain, const std::string& alias_or_vf) {
  Note note = TRY(ReadNote(domain));
  const auto it = std::find_if(note.hostdevs.begin(), note.hostdevs.end(), [&](const Hostdev& each) {
    return each.alias == alias_or_vf || each.vf == alias_or_vf;
  });
  if (it == note.hostdevs.end())
    return Refuse(std::errc::no_such_device, fmt::format("the domain has no VF {}", alias_or_vf));
  const Hostdev hostdev = *it;
  note.hostdevs.erase(it);
  DropArgument(domain, hostdev.alias);
  if (hostdev.bus.empty()) DropArgument(domain, hostdev.Port());
  if (note.hostdevs.empty()) DropArgument(domain, kHeldStateNode);
  PutNote(domain, note);
  if (!note.hostdevs.empty()) return hostdev;
  for (auto need = std::rbegin(kNeeds); need != std::rend(kNeeds); ++need)
    if (Has(note.added, need->name) && MayDrop(domain, need->name)) need->drop(domain);
  return hostdev;
}

Result<void> Compile(XmlNode& domain, const Places& places) {
  XmlNode copy = domain;
  XmlNode* devices = copy.Child("devices");
  if (devices == nullptr) return {};
  std::vector<Hostdev> wanted;
  for (size_t i = 0; i < devices->children.size(); ++i) {
    if (!IsVfHostdev(devices->children[i])) continue;
    auto hostdev = ReadHostdev(devices->children[i]);
    if (!hostdev)
      return Refuse(hostdev.error().code, fmt::format("<hostdev type='vfio-user'> number {}: {}", wanted.size() + 1,
                                                      hostdev.error().context));
    wanted.push_back(std::move(*hostdev));
    const size_t before = devices->children.size();
    TakeOut(*devices, i);
    i -= before - devices->children.size() > 1 && i > 0 ? 2 : 1;
  }
  // Those with an alias first: the others must not get it.
  std::vector<Hostdev> in_order;
  for (const bool named : {true, false})
    for (const Hostdev& each : wanted)
      if (each.alias.empty() != named) in_order.push_back(each);
  for (const Hostdev& each : in_order) TRY(Attach(copy, each, places));
  domain = std::move(copy);
  return {};
}

Result<void> Decompile(XmlNode& domain) {
  XmlNode copy = domain;
  const Note note = TRY(ReadNote(copy));
  for (const Hostdev& each : note.hostdevs) TRY(Detach(copy, each.alias));
  if (!note.hostdevs.empty() && copy.Child("devices") == nullptr) PutIn(copy, Element("devices", {}), 0);
  for (const Hostdev& each : note.hostdevs) PutIn(*copy.Child("devices"), WriteHostdev(each), 1);
  domain = std::move(copy);
  return {};
}

}  // namespace vgpud::tools
