// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/print.h"

#include <fmt/core.h>

#include "base/units.h"
#include "tools/vgpuctl/knobs.h"

namespace vgpud::tools {
namespace {

bool IsPart(const std::string& field) {
  const control::KnobInfo* knob = control::FindKnob(field);
  return field == "share" || field == "utilization" || field.ends_with("_part") ||
         (knob != nullptr && knob->unit == control::Unit::kPart);
}

// "slice_us" is "slice" where the value has its unit.
std::string LabelOf(const std::string& field) {
  return field.ends_with("_us") || field.ends_with("_ns") ? field.substr(0, field.size() - 3) : field;
}

void PrintList(const std::string& name, const CtlJson& list, const std::string& when) {
  for (const CtlJson& change : list) {
    const std::string vf = Text(change, "vf"), gpu = Text(change, "gpu");
    fmt::print("{} {}{}\n", !vf.empty() ? vf : gpu.empty() ? name : gpu, ChangeText(change), when);
  }
}

}  // namespace

std::string ChangeText(const CtlJson& change) {
  const std::string field = Text(change, "field");
  return fmt::format("{} {} -> {}", field.ends_with("_bytes") ? field.substr(0, field.size() - 6) : LabelOf(field),
                     ReadableChange(field, change.value("old", CtlJson())),
                     ReadableChange(field, change.value("new", CtlJson())));
}

std::string ReadableChange(const std::string& field, const CtlJson& value) {
  return value.is_number_unsigned() && field.ends_with("_bytes") ? FormatBytes(value.get<uint64_t>())
                                                                 : Readable(field, value);
}

std::string Readable(const std::string& field, const CtlJson& value) {
  if (value.is_null()) return "none";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() && field.starts_with("share_error")) return fmt::format("{:+.2f}", 100 * value.get<double>());
  if (value.is_number() && IsPart(field)) return FormatPart(value.get<double>());
  if (value.is_number_unsigned() && field.ends_with("_us")) return FormatMicroseconds(value.get<uint64_t>());
  if (value.is_number_unsigned() && field.ends_with("_ns")) return FormatNanoseconds(value.get<uint64_t>());
  if (value.is_number_unsigned() && field.ends_with("_percent")) return fmt::format("{}%", value.get<uint64_t>());
  return value.dump();
}

int PrintFields(const CtlJson& object) {
  for (const auto& item : object.items()) {
    if (item.key() == "apiVersion" || item.key() == "recent_events") continue;
    fmt::print("{:18} {}\n", LabelOf(item.key()), Readable(item.key(), item.value()));
  }
  return kExitOk;
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
