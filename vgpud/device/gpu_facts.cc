// SPDX-License-Identifier: Apache-2.0
#include "vgpud/device/gpu_facts.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
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

#include "base/clock.h"
#include "base/exec_link.h"
#include "vgpud/host/child.h"

namespace vgpud::daemon {
namespace {

constexpr Ns kAnswerLimit = std::chrono::seconds{60};
constexpr size_t kMostText = 64 << 10;

// What the child writes until it ends.
Result<std::string> ReadAll(int fd) {
  std::string text;
  const TimePoint end = Now() + kAnswerLimit;
  for (;;) {
    pollfd readable{fd, POLLIN, 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Now()).count();
    if (left <= 0) return Fail(std::errc::timed_out, "the CUDA driver did not answer within a minute");
    if (::poll(&readable, 1, static_cast<int>(left)) <= 0) continue;
    std::array<char, 4096> piece;
    const ssize_t n = ::read(fd, piece.data(), piece.size());
    if (n == 0) return text;
    if (n > 0 && text.size() < kMostText) text.append(piece.data(), static_cast<size_t>(n));
  }
}

// The last line, without who says it.
std::string LastWords(const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "it said nothing";
  const size_t begin = text.rfind('\n', end);
  const std::string line = text.substr(begin == std::string::npos ? 0 : begin + 1, end - begin);
  const size_t said = line.find("error: ");
  return said == std::string::npos ? line : line.substr(said + 7);
}

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
  const UniqueFd channel = TRY(choice.ConnectChannel());
  Pipe answer = TRY(MakePipe());
  Child::Spec spec;
  spec.program = exec_program;
  spec.arguments = {"vgpud-exec", "--describe-gpu"};
  for (auto& argument : choice.ExecutorArguments(exec_link::kNestedChannelFd)) spec.arguments.push_back(argument);
  spec.files = {{answer.write.get(), STDERR_FILENO}};
  if (channel) spec.files.push_back({channel.get(), exec_link::kNestedChannelFd});
  Child child = TRY(Child::Spawn(spec));
  answer.write.Reset();
  const auto text = ReadAll(answer.read.get());
  if (!text) {
    child.Kill(SIGKILL);
    return tl::unexpected(text.error());
  }
  pollfd ended{child.pidfd(), POLLIN, 0};
  ::poll(&ended, 1, static_cast<int>(kAnswerLimit / std::chrono::milliseconds{1}));
  const auto ending = child.Reap();
  if (!ending || !ending->clean)
    return Fail(std::errc::no_such_device, fmt::format("--gpu {}: {}", choice.gpu, LastWords(*text)));
  GpuFacts facts = TRY(ParseGpuFacts(*text));
  AskBus(facts);
  return facts;
}

}  // namespace vgpud::daemon
