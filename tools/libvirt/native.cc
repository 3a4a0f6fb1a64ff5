// SPDX-License-Identifier: Apache-2.0
#include "tools/libvirt/native.h"

#include <charconv>
#include <filesystem>

namespace vgpud::tools {
namespace {

std::vector<const XmlNode*> Elements(const XmlNode& domain) {
  std::vector<const XmlNode*> out;
  if (const XmlNode* devices = domain.Child("devices"))
    for (const XmlNode& each : devices->children)
      if (IsVfHostdev(each)) out.push_back(&each);
  return out;
}

// "0x02" is "pci.2", as libvirt calls its buses in QEMU.
std::string BusOf(const XmlNode* address) {
  if (address == nullptr || address->Get("type") != "pci") return {};
  std::string text = address->Get("bus");
  if (text.starts_with("0x")) text = text.substr(2);
  unsigned bus = 0;
  std::from_chars(text.data(), text.data() + text.size(), bus, 16);
  return bus == 0 ? "pcie.0" : "pci." + std::to_string(bus);
}

}  // namespace

bool KnowsHostdev(const XmlNode& capabilities) {
  const XmlNode* hostdev = capabilities.At({"devices", "hostdev"});
  if (hostdev == nullptr || hostdev->Get("supported") != "yes") return false;
  for (const XmlNode& each : hostdev->children)
    if (each.IsElement("enum") && each.Get("name") == "subsysType")
      for (const XmlNode& value : each.children)
        if (value.IsElement("value") && value.Inside() == "vfio-user") return true;
  return false;
}

bool IsInLibvirtsWords(const XmlNode& domain) {
  for (const XmlNode* each : Elements(domain)) {
    const XmlNode* source = each->Child("source");
    const XmlNode* alias = each->Child("alias");
    const XmlNode* address = each->Child("address");
    if ((source != nullptr && (source->Has("path") || source->Has("type") || source->Has("mode"))) ||
        (alias != nullptr && !IsAlias(alias->Get("name"))) || BusOf(address).starts_with("pci."))
      return true;
  }
  return false;
}

Result<Note> ReadNative(const XmlNode& domain, const Places& places) {
  Note note;
  note.is_native = true;
  for (const XmlNode* each : Elements(domain)) {
    const XmlNode* source = each->Child("source");
    if (source == nullptr || source->Get("path") != places.Socket(source->Get("vf"))) continue;
    Hostdev hostdev;
    hostdev.managed = TRY(ReadManaged(*each));
    TRY(ReadVf(*source, hostdev));
    if (const XmlNode* alias = each->Child("alias")) hostdev.alias = alias->Get("name");
    note.hostdevs.push_back(std::move(hostdev));
  }
  return note;
}

std::vector<NativeDevice> NativesOf(const XmlNode& domain, const Places& places) {
  std::vector<NativeDevice> out;
  for (const XmlNode* each : Elements(domain)) {
    const XmlNode* source = each->Child("source");
    if (source == nullptr) continue;
    NativeDevice device;
    for (const XmlAttribute& attribute : source->attributes) device.is_made |= IsSetting(attribute.name);
    const std::filesystem::path path = source->Get("path");
    device.vf = source->Get("vf");
    device.socket = path.empty() && !device.vf.empty() ? places.Socket(device.vf) : path.string();
    if (device.vf.empty() && path.extension() == ".sock" && places.Socket(path.stem()) == path) device.vf = path.stem();
    if (!device.socket.empty() && device.socket != places.Socket(device.vf)) continue;
    if (device.socket.empty() && !device.is_made) continue;
    device.managed = each->Get("managed") == "yes";
    if (const XmlNode* alias = each->Child("alias")) device.alias = alias->Get("name");
    device.bus = BusOf(each->Child("address"));
    out.push_back(std::move(device));
  }
  return out;
}

XmlNode NativeElement(const Hostdev& hostdev) {
  XmlNode out = WriteHostdev(hostdev);
  for (const char* chosen : {"alias", "address"}) (void)TakeOut(out, chosen);
  XmlNode& source = *out.Child("source");
  if (hostdev.vf.empty()) source.Unset("vf");
  return out;
}

}  // namespace vgpud::tools
