// SPDX-License-Identifier: Apache-2.0
#include "vgpud/registry/lost_vfs.h"

#include <fmt/core.h>

#include <utility>

#include "base/log.h"

namespace vgpud::daemon {

void LostVfs::Add(const std::string& name, Lost lost) {
  if (lost.definition) lost.uuid = ToText(lost.definition->uuid);
  all_[name] = std::move(lost);
  LOG(kError, "{}", Reason(name));
  added_(name);
}

const LostVfs::Lost* LostVfs::Find(const std::string& name) const {
  const auto it = all_.find(name);
  return it != all_.end() ? &it->second : nullptr;
}

std::string LostVfs::Reason(const std::string& name) const {
  const Lost& lost = all_.at(name);
  const std::string from = lost.file.empty() ? "" : fmt::format(" from {}, which is kept", lost.file);
  return fmt::format(
      "vf \"{}\" is lost: it could not be made again{}: {}; put that right and make it with vgpuctl reset --force {}, "
      "or "
      "give it up with vgpuctl destroy {}",
      name, from, lost.why, name, name);
}

VfReport LostVfs::Report(const std::string& name) const {
  const Lost& lost = all_.at(name);
  VfReport report;
  report.name = name;
  report.uuid = lost.uuid;
  report.state = "lost";
  report.reason = Reason(name);
  report.settings_known = lost.definition.has_value();
  if (!lost.definition) return report;
  const VfSpec& spec = lost.definition->spec;
  report.gpu = spec.gpu;
  report.profile = spec.profile;
  report.transient = spec.transient;
  report.tenant = spec.tenant;
  report.owner = spec.owner;
  report.view = spec.view;
  report.vram_bytes = spec.vram_bytes;
  report.host_memory_bytes = spec.host_memory_bytes;
  return report;
}

std::vector<VfReport> LostVfs::Reports() const {
  std::vector<VfReport> reports;
  for (const auto& [name, lost] : all_) reports.push_back(Report(name));
  return reports;
}

std::vector<VfSpec> LostVfs::Specs() const {
  std::vector<VfSpec> specs;
  for (const auto& [name, lost] : all_)
    if (lost.definition) specs.push_back(lost.definition->spec);
  return specs;
}

}  // namespace vgpud::daemon
