// SPDX-License-Identifier: Apache-2.0
#include "vgpud/device/gpu_facts.h"

#include <fmt/core.h>

#include <charconv>
#include <cstdio>
#include <map>
#include <sstream>

#include "vgpud/host/topology.h"

namespace vgpud::daemon {
namespace {

constexpr Ns kAnswerLimit = std::chrono::seconds{60};

}  // namespace

uint32_t DriverVersionOf(const GpuFacts& facts) {
  uint32_t major = 0, minor = 0;
  return std::sscanf(facts.driver.c_str(), "%u.%u", &major, &minor) == 2 ? 1000 * major + 10 * minor : 0;
}

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
                 {"mig_instance", &facts.mig_instance, nullptr},
                 {"host_memory", &facts.host_memory, nullptr},
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

Result<GpuFacts> AskGpu(const GpuChoice& choice, const ExecStart& start) {
  ExecQuestion question = TRY(ExecQuestion::Ask(choice, start, ExecArguments().Add(ExecOption::kDescribeGpu).Take()));
  const auto text = question.Await(kAnswerLimit);
  if (!text && text.error().code == std::errc::timed_out)
    return Fail(std::errc::timed_out, "the CUDA driver did not answer within a minute");
  if (!text) return Fail(text.error().code, fmt::format("--gpu {}: {}", choice.gpu, text.error().context));
  GpuFacts facts = TRY(ParseGpuFacts(*text));
  const Topology topology = ReadTopology();
  if (const PciGpu* const found = topology.FindGpu(facts.address); found != nullptr) facts.on_bus = *found;
  return facts;
}

}  // namespace vgpud::daemon
