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

VfStore::VfStore(const std::string& state_dir, bool outlived, LostVfs& lost, TaskQueue& replies)
    : directory_(state_dir + "/vfs"),
      outlived_(outlived),
      lost_(lost),
      files_(directory_, std::string(kSuffix), replies) {}

std::string VfStore::Path(const std::string& name) const { return fmt::format("{}/{}", directory_, FileOf(name)); }

ApiResult<VfDefinition> VfStore::Parse(const std::string& name, const Result<std::string>& text) {
  if (!text) return ApiFail(ErrorKind::kFailed, text.error().context);
  VfDefinition definition = TRY(ParseDefinition(*text));
  if (definition.spec.name != name)
    return ApiFail(ErrorKind::kInvalid, fmt::format("it is the definition of vf \"{}\"", definition.spec.name));
  return definition;
}

std::vector<VfDefinition> VfStore::Open() {
  std::vector<VfDefinition> found;
  std::set<Uuid> uuids;
  for (const StateFiles::File& file : files_.Open(kReadLimit, "definitions of VFs", "--state-dir")) {
    const std::string name = file.name.substr(0, file.name.size() - kSuffix.size());
    if (!control::IsValidName(name)) {
      LOG(kWarning, "a file in {} has a name that no VF can have: it is left alone", directory_);
      continue;
    }
    auto definition = Parse(name, file.text);
    if (!definition)
      lost_.Add(name, {Path(name), definition.error().error, {}, {}});
    else if (!uuids.insert(definition->uuid).second)
      Lose(*definition, "another VF has its uuid");
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
    if (lost_.Find(name) != nullptr) report = lost_.Report(name);
    report.name = name;
    lost_.Remove(name);
    done(report);
  });
}

void VfStore::RemoveRest(const std::string& name) {
  files_.Remove(FileOf(name), [](const Result<void>&) {});
}

void VfStore::Reread(const std::string& name, Reply<VfDefinition> done) {
  const LostVfs::Lost* const lost = lost_.Find(name);
  if (lost != nullptr && lost->file.empty() && lost->definition) return done(*lost->definition);
  files_.Read(FileOf(name),
              [name, done = std::move(done)](const Result<std::string>& text) { done(Parse(name, text)); });
}

void VfStore::Lose(const VfDefinition& definition, const std::string& why) {
  const VfSpec& spec = definition.spec;
  lost_.Add(spec.name, {Keeps(spec) ? Path(spec.name) : "", why, {}, definition});
}

}  // namespace vgpud::daemon
