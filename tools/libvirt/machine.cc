// SPDX-License-Identifier: Apache-2.0
// CheckMachine, HasSharedMemory
#include <fmt/core.h>

#include "tools/libvirt/domain.h"

namespace vgpud::tools {
namespace {

auto Refuse(const std::string& why) { return Fail(std::errc::operation_not_supported, why); }

bool IsQ35(const std::string& machine) { return machine == "q35" || machine.starts_with("pc-q35-"); }

// The first cell of the guest's NUMA with that memAccess.
bool HasCell(const XmlNode& domain, std::string_view access) {
  const XmlNode* numa = domain.At({"cpu", "numa"});
  if (numa == nullptr) return false;
  for (const XmlNode& cell : numa->children)
    if (cell.IsElement("cell") && cell.Get("memAccess") == access) return true;
  return false;
}

}  // namespace

bool HasSharedMemory(const XmlNode& domain) {
  const XmlNode* access = domain.At({"memoryBacking", "access"});
  const bool by_default = access != nullptr && access->Get("mode") == "shared";
  if (HasCell(domain, "private")) return false;
  return by_default || (HasCell(domain, "shared") && !HasCell(domain, ""));
}

bool HasHugePages(const XmlNode& domain) { return domain.At({"memoryBacking", "hugepages"}) != nullptr; }

Result<void> CheckMachine(const XmlNode& domain) {
  if (!domain.IsElement("domain"))
    return Refuse(fmt::format("this is a <{}>, not a <domain>: name a file with a domain", domain.name));
  const std::string type = domain.Get("type");
  if (type != "kvm" && type != "qemu")
    return Refuse(fmt::format("a domain of type '{}' has no VF: only QEMU's, 'kvm' and 'qemu', can", type));
  const XmlNode* os = domain.At({"os", "type"});
  const std::string arch = os == nullptr ? "" : os->Get("arch"), machine = os == nullptr ? "" : os->Get("machine");
  if (!arch.empty() && arch != "x86_64")
    return Refuse(fmt::format("the guest's architecture is {}; VFs are for x86_64", arch));
  if (!IsQ35(machine))
    return Refuse(
        fmt::format("its machine is {}, which has no PCIe root ports: write <type arch='x86_64' machine='q35'> "
                    "(a guest that is installed already may need its disks named anew)",
                    machine.empty() ? "libvirt's default" : "'" + machine + "'"));
  const XmlNode* access = domain.At({"memoryBacking", "access"});
  if ((access != nullptr && access->Get("mode") != "shared") || HasCell(domain, "private"))
    return Refuse(
        "its memory is private on purpose, and vgpud has to see the guest's queues there: take mode='private' and "
        "memAccess='private' out");
  const XmlNode* source = domain.At({"memoryBacking", "source"});
  if (source != nullptr && source->Get("type") == "anonymous")
    return Refuse("its memory is anonymous on purpose and can't be shared: take <source type='anonymous'/> out");
  if (HasHugePages(domain))
    return Refuse(
        "its memory is in huge pages, and vgpud can't share parts of them with the processes that need just those: "
        "take <hugepages> out of <memoryBacking>");
  return {};
}

}  // namespace vgpud::tools
