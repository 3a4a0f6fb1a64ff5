// SPDX-License-Identifier: Apache-2.0
#include "tools/libvirt/hostdev.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "vgpud/model/api.h"

namespace vgpud::tools {
namespace {

constexpr const char* kSettings[] = {"profile",  "tenant",    "vram",  "host-memory", "weight",     "slice",
                                     "priority", "guarantee", "limit", "burst",       "wake-first", "group"};

XmlNode Element(std::string name, std::vector<XmlAttribute> attributes) {
  XmlNode node;
  node.name = std::move(name);
  node.attributes = std::move(attributes);
  return node;
}

auto Wrong(const std::string& what) { return Fail(std::errc::invalid_argument, what); }

Result<unsigned> ReadSlot(const std::string& text) {
  const char* begin = text.data() + (text.starts_with("0x") ? 2 : 0);
  const char* end = text.data() + text.size();
  unsigned slot = 0;
  const auto done = std::from_chars(begin, end, slot, text.starts_with("0x") ? 16 : 10);
  if (done.ec != std::errc() || done.ptr != end || slot < 1 || slot > 0x1e)
    return Wrong(fmt::format("slot \"{}\" is not one from 0x01 to 0x1e", text));
  return slot;
}

bool IsZero(const std::string& text) { return text.empty() || text.find_first_not_of("0x") == std::string::npos; }

Result<unsigned> ReadAddress(const XmlNode& address) {
  if (address.Get("type") != "pci" || !IsZero(address.Get("domain")) || !IsZero(address.Get("bus")) ||
      !IsZero(address.Get("function")))
    return Wrong(
        "its <address> has to be of type 'pci' with domain, bus and function 0: that is where its root port is");
  return ReadSlot(address.Get("slot"));
}

Result<void> CheckAttributes(const XmlNode& node, std::initializer_list<std::string_view> known, bool settings) {
  for (const XmlAttribute& each : node.attributes)
    if (std::find(known.begin(), known.end(), each.name) == known.end() && !(settings && IsSetting(each.name)))
      return Wrong(fmt::format("<{}> has no attribute {}", node.name, each.name));
  return {};
}

}  // namespace

bool IsSetting(const std::string& name) {
  return std::find(std::begin(kSettings), std::end(kSettings), name) != std::end(kSettings);
}

bool IsSettingValue(const std::string& value) {
  return !value.empty() && value.size() <= 64 && std::all_of(value.begin(), value.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("./%-_").find(c) != std::string_view::npos;
  });
}

bool IsAlias(const std::string& alias) {
  return alias.size() > 5 && alias.size() <= 10 && alias.starts_with("vgpud") &&
         alias.find_first_not_of("0123456789", 5) == std::string::npos && (alias[5] != '0' || alias.size() == 6);
}

Result<void> ReadVf(const XmlNode& source, Hostdev& hostdev) {
  hostdev.vf = source.Get("vf");
  for (const char* name : kSettings) {
    if (!source.Has(name)) continue;
    if (!IsSettingValue(source.Get(name)))
      return Wrong(fmt::format("{}='{}' is not a value of vgpuctl create --{}", name, source.Get(name), name));
    hostdev.settings.emplace_back(name, source.Get(name));
  }
  if (!hostdev.vf.empty() && !control::IsValidName(hostdev.vf))
    return Wrong(fmt::format("vf='{}' is not a name of a VF: small letters, digits and - (at most {})", hostdev.vf,
                             control::kMaxNameBytes));
  if (hostdev.vf.empty() && hostdev.settings.empty())
    return Wrong("it says neither which VF (vf='NAME') nor how one is made (profile='1/4')");
  if (!hostdev.settings.empty() && !hostdev.managed)
    return Wrong("a VF that is made from a profile needs managed='yes'");
  return {};
}

Result<bool> ReadManaged(const XmlNode& element) {
  const std::string managed = element.Get("managed");
  if (managed != "" && managed != "yes" && managed != "no")
    return Wrong(fmt::format("managed='{}' is neither yes nor no", managed));
  return managed != "no";
}

bool IsVfHostdev(const XmlNode& node) { return node.IsElement("hostdev") && node.Get("type") == "vfio-user"; }

Result<Hostdev> ReadHostdev(const XmlNode& element) {
  TRY(CheckAttributes(element, {"mode", "type", "managed"}, false));
  if (element.Get("mode") != "subsystem") return Wrong("its mode has to be 'subsystem'");
  Hostdev hostdev;
  hostdev.managed = TRY(ReadManaged(element));
  const XmlNode* source = nullptr;
  for (const XmlNode& child : element.children) {
    if (child.kind != XmlNode::Kind::kElement) continue;
    if (child.name == "source" && source == nullptr) {
      source = &child;
    } else if (child.name == "alias" && hostdev.alias.empty()) {
      hostdev.alias = child.Get("name");
      if (!IsAlias(hostdev.alias)) return Wrong(fmt::format("alias '{}' is not vgpud0 or the like", hostdev.alias));
    } else if (child.name == "address" && hostdev.slot == 0) {
      hostdev.slot = TRY(ReadAddress(child));
    } else {
      return Wrong(fmt::format("<{}> in it is unknown or there twice (known: source, alias, address)", child.name));
    }
  }
  if (source == nullptr) return Wrong("it has no <source vf='NAME'/> or <source profile='1/4'/>");
  TRY(CheckAttributes(*source, {"vf"}, true));
  TRY(ReadVf(*source, hostdev));
  return hostdev;
}

XmlNode WriteHostdev(const Hostdev& hostdev) {
  XmlNode source = Element("source", {{"vf", hostdev.vf}});
  for (const auto& [name, value] : hostdev.settings) source.attributes.push_back({name, value});
  XmlNode out =
      Element("hostdev", {{"mode", "subsystem"}, {"type", "vfio-user"}, {"managed", hostdev.managed ? "yes" : "no"}});
  PutIn(out, source, 2);
  PutIn(out, Element("alias", {{"name", hostdev.alias}}), 2);
  if (hostdev.slot != 0)
    PutIn(out,
          Element("address", {{"type", "pci"},
                              {"domain", "0x0000"},
                              {"bus", "0x00"},
                              {"slot", fmt::format("0x{:02x}", hostdev.slot)},
                              {"function", "0x0"}}),
          2);
  return out;
}

int FindNote(const XmlNode& metadata) {
  for (size_t i = 0; i < metadata.children.size(); ++i)
    if (metadata.children[i].space == kOurSpace) return static_cast<int>(i);
  return -1;
}

Result<Note> ReadNote(const XmlNode& domain) {
  Note note;
  const XmlNode* metadata = domain.Child("metadata");
  const int index = metadata == nullptr ? -1 : FindNote(*metadata);
  if (index < 0) return note;
  const auto damaged = [](const std::string& why) {
    return Wrong("the note of vgpud in the domain's <metadata> was changed: " + why +
                 " (put it back, or take the note and the QEMU arguments with vgpud in them out with virsh edit)");
  };
  const XmlNode& root = metadata->children[static_cast<size_t>(index)];
  const std::string prefix = root.name.substr(0, root.name.find(':') + 1);
  const std::string added = root.Get("added");
  for (size_t at = 0; at < added.size();) {
    const size_t end = std::min(added.find(' ', at), added.size());
    if (end > at) note.added.push_back(added.substr(at, end - at));
    at = end + 1;
  }
  for (const XmlNode& each : root.children) {
    if (each.kind != XmlNode::Kind::kElement) continue;
    if (each.name != prefix + "hostdev") return damaged(fmt::format("<{}> is unknown", each.name));
    Hostdev hostdev;
    const auto managed = ReadManaged(each);
    if (!managed) return damaged(managed.error().context);
    hostdev.managed = *managed;
    if (const auto read = ReadVf(each, hostdev); !read) return damaged(read.error().context);
    hostdev.alias = each.Get("alias");
    hostdev.bus = each.Get("bus");
    if (!IsAlias(hostdev.alias) || hostdev.vf.empty()) return damaged("a device has no name or no VF");
    if (hostdev.bus.empty()) {
      const auto slot = ReadSlot(each.Get("slot"));
      if (!slot) return damaged(slot.error().context);
      hostdev.slot = *slot;
    }
    for (const Hostdev& other : note.hostdevs)
      if (other.alias == hostdev.alias) return damaged(hostdev.alias + " is there twice");
    note.hostdevs.push_back(std::move(hostdev));
  }
  return note;
}

XmlNode NoteXml(const Note& note) {
  std::string added;
  for (const std::string& each : note.added) added += (added.empty() ? "" : " ") + each;
  XmlNode root = Element("vgpud:hostdevs", {{"xmlns:vgpud", kOurSpace}, {"added", added}});
  root.space = kOurSpace;
  for (const Hostdev& each : note.hostdevs) {
    XmlNode node =
        Element("vgpud:hostdev", {{"alias", each.alias}, {"vf", each.vf}, {"managed", each.managed ? "yes" : "no"}});
    node.space = kOurSpace;
    for (const auto& [name, value] : each.settings) node.attributes.push_back({name, value});
    if (each.bus.empty())
      node.Set("slot", fmt::format("0x{:02x}", each.slot));
    else
      node.Set("bus", each.bus);
    PutIn(root, std::move(node), 2);
  }
  return root;
}

}  // namespace vgpud::tools
