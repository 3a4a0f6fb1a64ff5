// SPDX-License-Identifier: Apache-2.0
#include "vgpud/registry/vf_store.h"

#include <fmt/core.h>

#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "vgpud/host/when_all.h"
#include "vgpud/model/api.h"
#include "vgpud/registry/definition_text.h"

namespace vgpud::daemon {
namespace {

constexpr Ns kReadLimit = std::chrono::seconds{10};
constexpr std::string_view kSuffix = ".json";

std::string FileOf(const std::string& name) { return fmt::format("{}{}", name, kSuffix); }

}  // namespace

VfStore::VfStore(const std::string& state_dir, bool outlived, TaskQueue& replies)
    : directory_(state_dir + "/vfs"), outlived_(outlived), files_(directory_, std::string(kSuffix), replies) {}

std::string VfStore::Path(const std::string& name) const { return fmt::format("{}/{}", directory_, FileOf(name)); }

std::vector<VfDefinition> VfStore::Open() {
  std::vector<VfDefinition> found;
  std::set<Uuid> uuids;
  for (const StateFiles::File& file : files_.Open(kReadLimit, "definitions of VFs", "--state-dir")) {
    const std::string name = file.name.substr(0, file.name.size() - kSuffix.size());
    if (!control::IsValidName(name)) {
      LOG(kWarning, "a file in {} has a name that no VF can have: it is left alone", directory_);
      continue;
    }
    if (!file.text) {
      Lose(name, {}, file.text.error().context);
      continue;
    }
    auto definition = ParseDefinition(*file.text);
    if (!definition)
      Lose(name, {}, definition.error().error);
    else if (definition->spec.name != name)
      Lose(name, {}, fmt::format("it is the definition of vf \"{}\"", definition->spec.name));
    else if (!uuids.insert(definition->uuid).second)
      Lose(name, ToText(definition->uuid), "another VF has its uuid", definition->spec);
    else
      found.push_back(std::move(*definition));
  }
  if (!problem().empty())
    LOG(kError, "{}; running on without VFs of earlier, and new ones have to be transient", problem());
  return found;
}

bool VfStore::Keeps(const VfSpec& spec) const {
  return !spec.transient || (spec.domain.ends_vf && outlived_ && problem().empty());
}

void VfStore::Keep(const VfDefinition& definition, Done done) {
  files_.Put(FileOf(definition.spec.name), ToText(definition), std::move(done));
}

void VfStore::Keep(const std::vector<VfDefinition>& definitions, Done done) {
  const auto result = std::make_shared<Result<void>>();
  const auto kept = WhenAll(definitions.size(), [result, done = std::move(done)] { done(*result); });
  for (const VfDefinition& definition : definitions)
    Keep(definition, [result, kept](const Result<void>& one) {
      if (!one) *result = one;
      kept();
    });
}

void VfStore::Forget(const std::string& name, Reply<VfReport> done) {
  files_.Remove(FileOf(name), [this, name, done = std::move(done)](const Result<void>& removed) {
    if (!removed)
      return done(
          ApiFail(ErrorKind::kFailed, fmt::format("vf \"{}\" would be back after a restart of vgpud: {}: remove "
                                                  "that file",
                                                  name, removed.error().context)));
    VfReport report;
    if (IsLost(name)) report = ReportLost(name);
    report.name = name;
    lost_.erase(name);
    done(report);
  });
}

void VfStore::RemoveRest(const std::string& name) {
  files_.Remove(FileOf(name), [](const Result<void>&) {});
}

void VfStore::Lose(const std::string& name, const std::string& uuid, const std::string& why, const VfSpec& spec) {
  lost_[name] = {uuid, why, spec};
  LOG(kError, "vf={}: {}", name, ReportLost(name).reason);
}

VfReport VfStore::ReportLost(const std::string& name) const {
  const Lost& lost = lost_.at(name);
  VfReport report;
  report.name = name;
  report.uuid = lost.uuid;
  report.tenant = lost.spec.tenant;
  report.state = "lost";
  report.reason = fmt::format(
      "vf \"{}\" could not be made again from {}, which is kept: {}; put that right and restart vgpud, or give the VF "
      "up with vgpuctl destroy {}",
      name, Path(name), lost.why, name);
  return report;
}

std::vector<VfReport> VfStore::ReportLost() const {
  std::vector<VfReport> reports;
  for (const auto& [name, lost] : lost_) reports.push_back(ReportLost(name));
  return reports;
}

std::vector<VfSpec> VfStore::LostSpecs() const {
  std::vector<VfSpec> specs;
  for (const auto& [name, lost] : lost_) specs.push_back(lost.spec);
  return specs;
}

}  // namespace vgpud::daemon
