// SPDX-License-Identifier: Apache-2.0
#include "vgpud/device/gpu_facts.h"

#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <map>
#include <memory>
#include <sstream>

extern "C" {
#include <pci/pci.h>
}

#include "vgpud/device/exec_question.h"

namespace vgpud::daemon {
namespace {

constexpr Ns kAnswerLimit = std::chrono::seconds{60};

std::string PciName(pci_access* bus, pci_dev* device) {
  std::array<char, 256> text{};
  const char* name = pci_lookup_name(bus, text.data(), static_cast<int>(text.size()),
                                     PCI_LOOKUP_VENDOR | PCI_LOOKUP_DEVICE, device->vendor_id, device->device_id);
  return name != nullptr ? name : "";
}

void AskBus(GpuFacts& facts) {
  unsigned domain = 0, bus = 0, slot = 0, function = 0;
  if (std::sscanf(facts.address.c_str(), "%x:%x:%x.%u", &domain, &bus, &slot, &function) != 4) return;
  // Without a bus at all the library would end this process.
  if (::access("/sys/bus/pci/devices", R_OK) != 0) return;
  const std::unique_ptr<pci_access, void (*)(pci_access*)> access(pci_alloc(), &pci_cleanup);
  pci_init(access.get());
  pci_scan_bus(access.get());
  for (pci_dev* device = access->devices; device != nullptr; device = device->next) {
    if (device->domain != static_cast<int>(domain) || device->bus != bus || device->dev != slot ||
        device->func != function)
      continue;
    (void)pci_fill_info(device, PCI_FILL_IDENT | PCI_FILL_NUMA_NODE | PCI_FILL_DRIVER);
    facts.pci_name = PciName(access.get(), device);
    facts.numa_node = device->numa_node;
    const char* driver = pci_get_string_property(device, PCI_FILL_DRIVER);
    facts.kernel_driver = driver != nullptr ? driver : "";
  }
}

}  // namespace

Result<GpuFacts> ParseGpuFacts(const std::string& lines) {
  std::map<std::string, std::string> said;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);)
    if (const size_t equals = line.find('='); equals != std::string::npos)
      said[line.substr(0, equals)] = line.substr(equals + 1);
  GpuFacts facts;
  const struct {
    const char* key;
    std::string* text;
    uint64_t* number;
  } kFields[] = {{"name", &facts.name, nullptr},
                 {"address", &facts.address, nullptr},
                 {"capability", &facts.capability, nullptr},
                 {"driver", &facts.driver, nullptr},
                 {"memory", nullptr, &facts.memory_bytes},
                 {"context_bytes", nullptr, &facts.context_bytes}};
  for (const auto& field : kFields) {
    const auto it = said.find(field.key);
    if (it == said.end())
      return Fail(std::errc::bad_message, fmt::format("vgpud-exec did not tell the GPU's {}", field.key));
    if (field.text != nullptr) {
      *field.text = it->second;
      continue;
    }
    const char* end = it->second.data() + it->second.size();
    const auto [stopped, error] = std::from_chars(it->second.data(), end, *field.number);
    if (error != std::errc{} || stopped != end)
      return Fail(std::errc::bad_message, fmt::format("vgpud-exec told {}={}", field.key, it->second));
  }
  return facts;
}

Result<GpuFacts> AskGpu(const GpuChoice& choice, const std::string& exec_program) {
  ExecQuestion question = TRY(ExecQuestion::Ask(choice, exec_program, {"--describe-gpu"}));
  const auto text = question.Await(kAnswerLimit);
  if (!text && text.error().code == std::errc::timed_out)
    return Fail(std::errc::timed_out, "the CUDA driver did not answer within a minute");
  if (!text) return Fail(text.error().code, fmt::format("--gpu {}: {}", choice.gpu, text.error().context));
  GpuFacts facts = TRY(ParseGpuFacts(*text));
  AskBus(facts);
  return facts;
}

}  // namespace vgpud::daemon
