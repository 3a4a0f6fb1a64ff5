// SPDX-License-Identifier: Apache-2.0
#include "tools/libvirt/arguments.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

namespace vgpud::tools {
namespace {

using Json = nlohmann::ordered_json;

// Chassis numbers of libvirt's own ports begin at 1, one byte each.
constexpr unsigned kFirstChassis = 0xc0;

// Guests and administrators write "0x10", "10" and "10.0", all of them hexadecimal.
unsigned Slot(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  unsigned slot = 0;
  const auto done = std::from_chars(text.data(), text.data() + text.size(), slot, 16);
  return done.ec == std::errc() && slot < 32 ? slot : 0;
}

std::string Word(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

QemuObject FromJson(const Json& json) {
  QemuObject out{Word(json, "driver"), Word(json, "id"), Word(json, "bus"), Slot(Word(json, "addr")), "", false};
  if (out.id.empty()) out.id = Word(json, "node-name");
  if (const auto it = json.find("socket"); it != json.end() && it->is_object()) out.socket = Word(*it, "path");
  for (const char* window : {"pref64-reserve", "pref32-reserve", "mem-reserve"})
    out.has_window = out.has_window || json.contains(window);
  return out;
}

// "driver,key=value,..."
QemuObject FromWords(const std::string& value) {
  Json json = Json::object();
  for (size_t at = 0; at <= value.size();) {
    const size_t end = std::min(value.find(',', at), value.size());
    const std::string word = value.substr(at, end - at);
    const size_t equals = word.find('=');
    if (equals != std::string::npos)
      json[word.substr(0, equals)] = word.substr(equals + 1);
    else if (at == 0)
      json["driver"] = word;
    at = end + 1;
  }
  return FromJson(json);
}

void AddSlots(const XmlNode& node, std::set<unsigned>& slots) {
  const auto is_zero = [](const std::string& text) { return text.find_first_not_of("0x") == std::string::npos; };
  for (const XmlNode& child : node.children) {
    if (child.IsElement("address") && child.Get("type") == "pci" && is_zero(child.Get("domain")) &&
        is_zero(child.Get("bus")) && !(node.IsElement("source")))
      slots.insert(Slot(child.Get("slot")));
    AddSlots(child, slots);
  }
}

}  // namespace

QemuArgument HeldStateArgument(const Places& places) {
  return {"-blockdev", Json{{"driver", "vdi"},
                            {"node-name", kHeldStateNode},
                            {"read-only", true},
                            {"file", {{"driver", "file"}, {"filename", places.HeldState()}}}}
                           .dump()};
}

QemuArgument PortArgument(const Hostdev& hostdev) {
  return {"-device", Json{{"driver", "pcie-root-port"},
                          {"id", hostdev.Port()},
                          {"bus", "pcie.0"},
                          {"addr", "0x" +
                                       [&] {
                                         char digits[4];
                                         const auto done =
                                             std::to_chars(digits, digits + sizeof digits, hostdev.slot, 16);
                                         return std::string(digits, done.ptr);
                                       }()},
                          {"chassis", kFirstChassis + hostdev.slot},
                          {"pref64-reserve", kWindowBytes}}
                         .dump()};
}

QemuArgument DeviceArgument(const Hostdev& hostdev, const Places& places) {
  return {"-device", Json{{"driver", "vfio-user-pci"},
                          {"id", hostdev.alias},
                          {"bus", hostdev.Port()},
                          {"addr", "0x0"},
                          {"socket", {{"type", "unix"}, {"path", places.Socket(hostdev.vf)}}}}
                         .dump()};
}

QemuObject ParseObject(const std::string& value) {
  if (value.empty() || value[0] != '{') return FromWords(value);
  const Json json = Json::parse(value, nullptr, false);
  return json.is_object() ? FromJson(json) : QemuObject{};
}

const XmlNode* CommandLine(const XmlNode& domain) {
  for (const XmlNode& child : domain.children)
    if (child.kind == XmlNode::Kind::kElement && child.space == kQemuSpace && child.name.ends_with(":commandline"))
      return &child;
  return nullptr;
}

XmlNode* CommandLine(XmlNode& domain) { return const_cast<XmlNode*>(CommandLine(std::as_const(domain))); }

std::vector<QemuObject> ObjectsOf(const XmlNode& domain) {
  std::vector<QemuObject> out;
  const XmlNode* line = CommandLine(domain);
  if (line == nullptr) return out;
  std::string option;
  for (const XmlNode& arg : line->children) {
    if (arg.kind != XmlNode::Kind::kElement || !arg.name.ends_with(":arg")) continue;
    const std::string value = arg.Get("value");
    if (option == "-device" || option == "-blockdev") {
      out.push_back(ParseObject(value));
      option.clear();
    } else {
      option = value;
    }
  }
  return out;
}

void WidenPorts(XmlNode& domain) {
  std::set<std::string> buses;
  for (const QemuObject& object : ObjectsOf(domain))
    if (object.driver == "vfio-user-pci") buses.insert(object.bus);
  XmlNode* line = CommandLine(domain);
  if (line == nullptr) return;
  for (XmlNode& arg : line->children) {
    const std::string value = arg.Get("value");
    const QemuObject object = ParseObject(value);
    if (object.driver != "pcie-root-port" || object.has_window || !buses.contains(object.id)) continue;
    if (value[0] != '{') {
      arg.Set("value", value + ",pref64-reserve=" + std::to_string(kWindowBytes));
      continue;
    }
    Json json = Json::parse(value, nullptr, false);
    json["pref64-reserve"] = kWindowBytes;
    arg.Set("value", json.dump());
  }
}

std::set<unsigned> UsedSlots(const XmlNode& domain) {
  std::set<unsigned> slots;
  if (const XmlNode* devices = domain.Child("devices")) AddSlots(*devices, slots);
  for (const QemuObject& object : ObjectsOf(domain))
    if (object.bus == "pcie.0" || (object.bus.empty() && object.slot != 0)) slots.insert(object.slot);
  return slots;
}

}  // namespace vgpud::tools
