// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/print.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/units.h"
#include "tools/vgpuctl/knobs.h"
#include "tools/vgpuctl/table.h"

namespace vgpud::tools {
namespace {

bool IsPart(const std::string& field) {
  const control::KnobInfo* knob = control::FindKnob(field);
  return field == "share" || field == "utilization" || (knob != nullptr && knob->unit == control::Unit::kPart);
}

// "slice_us" is "slice" where the value has its unit.
std::string Label(const std::string& field) {
  return field.ends_with("_us") || field.ends_with("_ns") ? field.substr(0, field.size() - 3) : field;
}

constexpr const char* kUnnamedGpu = "soft0";

std::string Cell(const CtlJson& object, const char* field) {
  const auto it = object.find(field);
  return it == object.end() ? "-" : Readable(field, *it);
}

void PrintList(const std::string& name, const CtlJson& list, const std::string& when) {
  for (const CtlJson& change : list) {
    const std::string field = Text(change, "field"), vf = Text(change, "vf");
    const std::string gpu = Text(change, "gpu");
    fmt::print("{} {} {} -> {}{}\n",
               !vf.empty()   ? vf
               : gpu.empty() ? name
                             : gpu,
               field.ends_with("_bytes") ? field.substr(0, field.size() - 6) : Label(field),
               ReadableChange(field, change.value("old", CtlJson())),
               ReadableChange(field, change.value("new", CtlJson())), when);
  }
}

}  // namespace

std::string ReadableChange(const std::string& field, const CtlJson& value) {
  return value.is_number_unsigned() && field.ends_with("_bytes") ? FormatBytes(value.get<uint64_t>())
                                                                 : Readable(field, value);
}

std::string Readable(const std::string& field, const CtlJson& value) {
  if (value.is_null()) return "none";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() && IsPart(field)) return FormatPart(value.get<double>());
  if (value.is_number_unsigned() && field.ends_with("_us")) return FormatMicroseconds(value.get<uint64_t>());
  if (value.is_number_unsigned() && field.ends_with("_ns")) return FormatNanoseconds(value.get<uint64_t>());
  if (value.is_number_unsigned() && field.ends_with("_percent")) return fmt::format("{}%", value.get<uint64_t>());
  return value.dump();
}

int PrintFields(const CtlJson& object) {
  for (const auto& item : object.items()) {
    if (item.key() == "apiVersion") continue;
    fmt::print("{:18} {}\n", Label(item.key()), Readable(item.key(), item.value()));
  }
  return kExitOk;
}

int PrintGpus(const CtlJson& answer) {
  Table table{{"NAME", "KIND", "CAPABILITY", "POLICY", "VFS", "VRAM", "PROMISED", "NODE"}};
  for (const CtlJson& gpu : answer.value("gpus", CtlJson::array()))
    table.Row({Text(gpu, "name"), Text(gpu, "kind"), Text(gpu, "compute_capability"), Text(gpu, "policy"),
               Cell(gpu, "vfs"), Number(gpu, "vram_bytes") == 0 ? "no limit" : FormatBytes(Number(gpu, "vram_bytes")),
               FormatBytes(Number(gpu, "vram_promised_bytes")), Cell(gpu, "numa_node")});
  const int printed = PrintRaw(table.Text());
  if (const uint64_t waiting = Number(answer, "waiting"); waiting != 0)
    fmt::print("{} new VFs wait for room\n", waiting);
  return printed;
}

int PrintVfs(const CtlJson& vfs) {
  // A GPU that nobody has named is the only one.
  const bool named = std::any_of(vfs.begin(), vfs.end(), [](const CtlJson& vf) {
    const std::string gpu = Text(vf, "gpu");
    return !gpu.empty() && gpu != kUnnamedGpu;
  });
  std::vector<std::string> columns = {"NAME",      "STATE", "UTIL", "WEIGHT", "SLICE",     "SHARE", "PRIORITY", "GROUP",
                                      "GUARANTEE", "LIMIT", "VRAM", "USED",   "EXECUTORS", "VM",    "DOMAIN"};
  if (named) columns.insert(columns.begin() + 1, "GPU");
  Table table{columns};
  for (const CtlJson& vf : vfs) {
    if (Text(vf, "state") == "lost") {
      std::vector<std::string> row(columns.size(), "-");
      row[0] = Text(vf, "name");
      row[named ? 2 : 1] = "lost";
      table.Row(row);
      continue;
    }
    std::vector<std::string> row{Text(vf, "name"),
                                 Text(vf, "state"),
                                 Cell(vf, "utilization"),
                                 Cell(vf, "weight"),
                                 Cell(vf, "slice_us"),
                                 Cell(vf, "share"),
                                 Cell(vf, "priority"),
                                 Cell(vf, "group"),
                                 Cell(vf, "guarantee"),
                                 Cell(vf, "limit"),
                                 FormatBytes(Number(vf, "vram_bytes")),
                                 FormatBytes(Number(vf, "vram_used_bytes")),
                                 Cell(vf, "executors"),
                                 vf.value("client_connected", false) ? "yes" : "no",
                                 Cell(vf, "domain")};
    if (named) row.insert(row.begin() + 1, Text(vf, "gpu"));
    table.Row(row);
  }
  const int printed = PrintRaw(table.Text());
  for (const CtlJson& vf : vfs)
    if (Text(vf, "state") == "lost") fmt::print("{}\n", Text(vf, "reason"));
  return printed;
}

int PrintProfiles(const CtlJson& profiles) {
  Table table{{"NAME", "VRAM", "HOST-MEMORY", "SETTINGS"}};
  for (const CtlJson& profile : profiles) {
    std::string settings;
    for (const auto& item : profile.items())
      if (control::FindKnob(item.key()) != nullptr)
        settings +=
            fmt::format("{}{}={}", settings.empty() ? "" : " ", Label(item.key()), Readable(item.key(), item.value()));
    const auto bytes = [&](const char* field) {
      return profile.contains(field) ? FormatBytes(Number(profile, field)) : std::string("-");
    };
    table.Row({Text(profile, "name"), bytes("vram_bytes"), bytes("host_memory_bytes"), settings});
  }
  return PrintRaw(table.Text());
}

int PrintChange(const std::string& name, const CtlJson& answer) {
  const CtlJson changes = answer.value("changes", CtlJson::array()),
                effects = answer.value("effects", CtlJson::array());
  const bool dry_run = answer.value("dry_run", false);
  if (changes.empty() && effects.empty()) fmt::print("{}: nothing changes\n", name);
  if (const std::string placed = Text(answer, "placed"); !placed.empty())
    fmt::print("{} would be placed on {}\n", name, placed);
  PrintList(name, changes, dry_run ? ", not done" : fmt::format(", effective at round {}", Number(answer, "round")));
  for (const CtlJson& warning : answer.value("warnings", CtlJson::array()))
    fmt::print(stderr, "vgpuctl: warning: {}\n", Readable("", warning));
  PrintList(name, effects, dry_run ? ", as a consequence, not done" : ", as a consequence");
  return kExitOk;
}

}  // namespace vgpud::tools
