// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/topology.h"

#include <fmt/core.h>

extern "C" {
#include <pci/pci.h>
}

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>

#include "vgpud/host/thread_priority.h"

namespace vgpud::daemon {
namespace {

namespace fs = std::filesystem;

constexpr int kDisplay = 0x03;  // pci.ids, class of class
constexpr int kAccelerator = 0x12;
constexpr size_t kMostProcessors = CPU_SETSIZE;

std::string FirstLine(const fs::path& path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line;
}

std::vector<int> OwnProcessors() {
  const cpu_set_t all = AllProcessors();
  std::vector<int> own;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &all)) own.push_back(cpu);
  return own;
}

std::vector<NumaNode> ReadNodes(const std::string& sys) {
  constexpr std::string_view kNode = "node";
  std::vector<NumaNode> nodes;
  std::error_code error;
  for (fs::directory_iterator it(sys + "/devices/system/node", error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    NumaNode node;
    const char* const last = name.data() + name.size();
    if (!name.starts_with(kNode)) continue;
    if (const auto [to, bad] = std::from_chars(name.data() + kNode.size(), last, node.number);
        bad != std::errc{} || to != last)
      continue;
    if (auto processors = ParseCpuList(FirstLine(it->path() / "cpulist"))) node.processors = std::move(*processors);
    nodes.push_back(std::move(node));
  }
  std::sort(nodes.begin(), nodes.end(), [](const NumaNode& a, const NumaNode& b) { return a.number < b.number; });
  if (nodes.empty()) nodes.push_back({0, OwnProcessors()});
  return nodes;
}

// libpci ends the process otherwise.
[[noreturn]] void Throw(char* format, ...) {
  std::array<char, 256> text{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  throw std::runtime_error(text.data());
}

void Ignore(char*, ...) {}

struct EndAccess {
  void operator()(pci_access* access) const { pci_cleanup(access); }
};

PciGpu Describe(pci_access* access, pci_dev* device) {
  PciGpu gpu;
  gpu.address = fmt::format("{:04x}:{:02x}:{:02x}.{}", device->domain, device->bus, device->dev, device->func);
  gpu.vendor = device->vendor_id;
  gpu.device = device->device_id;
  gpu.device_class = device->device_class;
  std::array<char, 256> name{};
  const char* found =
      pci_lookup_name(access, name.data(), static_cast<int>(name.size()),
                      PCI_LOOKUP_VENDOR | PCI_LOOKUP_DEVICE | PCI_LOOKUP_NO_HWDB, device->vendor_id, device->device_id);
  gpu.name = found != nullptr ? found : fmt::format("{:04x}:{:04x}", gpu.vendor, gpu.device);
  if ((device->known_fields & PCI_FILL_NUMA_NODE) != 0 && device->numa_node >= 0) gpu.node = device->numa_node;
  const char* const driver = pci_get_string_property(device, PCI_FILL_DRIVER);
  gpu.kernel_driver = driver != nullptr ? driver : "";
  std::copy_n(std::begin(device->size), gpu.bar_bytes.size(), gpu.bar_bytes.begin());
  return gpu;
}

std::vector<PciGpu> ReadPci(const std::string& sys) {
  std::unique_ptr<pci_access, EndAccess> access{pci_alloc()};
  access->method = PCI_ACCESS_SYS_BUS_PCI;
  // Of a function that does not return, as libpci has it where the compiler can say so.
  access->error = reinterpret_cast<decltype(access->error)>(&Throw);
  access->warning = &Ignore;
  std::string path = fmt::format("{}/bus/pci", sys);
  std::string key = "sysfs.path";
  if (!fs::exists(path + "/devices")) throw std::runtime_error("this host has no PCI bus");
  pci_set_param(access.get(), key.data(), path.data());
  pci_init(access.get());
  pci_scan_bus(access.get());
  std::vector<PciGpu> gpus;
  for (pci_dev* device = access->devices; device != nullptr; device = device->next) {
    pci_fill_info(device, PCI_FILL_IDENT | PCI_FILL_CLASS | PCI_FILL_NUMA_NODE | PCI_FILL_DRIVER | PCI_FILL_BASES |
                              PCI_FILL_SIZES);
    const int base = device->device_class >> 8;
    if (base == kDisplay || base == kAccelerator) gpus.push_back(Describe(access.get(), device));
  }
  std::sort(gpus.begin(), gpus.end(), [](const PciGpu& a, const PciGpu& b) { return a.address < b.address; });
  return gpus;
}

}  // namespace

const NumaNode* Topology::Find(int node) const {
  const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const NumaNode& n) { return n.number == node; });
  return found != nodes.end() ? &*found : nullptr;
}

const PciGpu* Topology::FindGpu(const std::string& address) const {
  unsigned domain = 0, bus = 0, slot = 0, function = 0;
  const bool with_domain = std::sscanf(address.c_str(), "%x:%x:%x.%u", &domain, &bus, &slot, &function) == 4;
  if (!with_domain) {
    domain = 0;
    if (std::sscanf(address.c_str(), "%x:%x.%u", &bus, &slot, &function) != 3) return nullptr;
  }
  const std::string wanted = fmt::format("{:04x}:{:02x}:{:02x}.{}", domain, bus, slot, function);
  const auto found = std::find_if(gpus.begin(), gpus.end(), [&](const PciGpu& gpu) { return gpu.address == wanted; });
  return found != gpus.end() ? &*found : nullptr;
}

Topology ReadTopology(const std::string& sys) {
  Topology topology;
  topology.nodes = ReadNodes(sys);
  try {
    topology.gpus = ReadPci(sys);
  } catch (const std::exception& error) {
    topology.pci_problem = error.what();
  }
  return topology;
}

Result<std::vector<int>> ParseCpuList(std::string_view text) {
  std::vector<int> processors;
  const auto bad = [&] {
    return Fail(std::errc::invalid_argument, fmt::format("\"{}\" is no list of processors", text.substr(0, 40)));
  };
  for (std::string_view left = text; !left.empty();) {
    const std::string_view part = left.substr(0, left.find(','));
    left.remove_prefix(std::min(left.size(), part.size() + 1));
    const char* const end = part.data() + part.size();
    size_t from = 0, to = 0;
    auto parsed = std::from_chars(part.data(), end, from);
    if (parsed.ec != std::errc{}) return bad();
    to = from;
    if (parsed.ptr != end && *parsed.ptr == '-') parsed = std::from_chars(parsed.ptr + 1, end, to);
    if (parsed.ec != std::errc{} || parsed.ptr != end || to < from || to >= kMostProcessors) return bad();
    for (; from <= to; ++from) processors.push_back(static_cast<int>(from));
  }
  return processors;
}

std::string CpuListText(const std::vector<int>& processors) {
  std::string text;
  for (size_t i = 0; i < processors.size();) {
    size_t last = i;
    while (last + 1 < processors.size() && processors[last + 1] == processors[last] + 1) ++last;
    const std::string part =
        last > i ? fmt::format("{}-{}", processors[i], processors[last]) : fmt::format("{}", processors[i]);
    text = text.empty() ? part : fmt::format("{},{}", text, part);
    i = last + 1;
  }
  return text;
}

std::optional<cpu_set_t> ProcessorsNear(const Topology& topology, std::optional<int> node, const cpu_set_t& allowed) {
  const NumaNode* const near = node && topology.nodes.size() > 1 ? topology.Find(*node) : nullptr;
  if (near == nullptr) return std::nullopt;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : near->processors)
    if (CPU_ISSET(static_cast<size_t>(cpu), &allowed)) CPU_SET(static_cast<size_t>(cpu), &set);
  return CPU_COUNT(&set) > 0 ? std::optional{set} : std::nullopt;
}

}  // namespace vgpud::daemon
