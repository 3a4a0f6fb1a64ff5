// SPDX-License-Identifier: Apache-2.0
// Definitions of VFs on the disk: written before an answer says so, and made VFs again at the next start.
#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "vgpud/model/api.h"
#include "vgpud/registry/definition_text.h"
#include "vgpud/registry/vf_registry.h"

namespace vgpud::daemon {
namespace {

constexpr Ns kReadLimit = std::chrono::seconds{10};
constexpr size_t kStartedAtOnce = 4;  // each start has a limit of its own

}  // namespace

struct VfRegistry::Restoring {
  std::vector<VfDefinition> kept;     // their processes are there
  std::vector<VfDefinition> waiting;  // of those that are made anew; the next one last
  size_t starting = 0;
  size_t all = 0;
  std::function<void()> done;
  std::unique_ptr<Adoption> adoption;
};

std::string VfRegistry::DefinitionPath(const std::string& name) const {
  return fmt::format("{}/vfs/{}{}", around_.config.state_dir, name, kDefinitionSuffix);
}

void VfRegistry::Lose(const std::string& name, const std::string& uuid, const std::string& why, const VfSpec& spec) {
  lost_[name] = {uuid, why, spec};
  LOG(kError, "vf={}: {}", name, ReportLost(name).reason);
}

bool VfRegistry::IsKept(const VfSpec& spec) const {
  return !spec.transient || (spec.domain.ends_vf && around_.keeper != nullptr && definitions_.problem().empty());
}

VfReport VfRegistry::ReportLost(const std::string& name) const {
  const Lost& lost = lost_.at(name);
  VfReport report;
  report.name = name;
  report.uuid = lost.uuid;
  report.tenant = lost.spec.tenant;
  report.state = "lost";
  report.reason = fmt::format(
      "vf \"{}\" could not be made again from {}, which is kept: {}; put that right and restart vgpud, or give the VF "
      "up with vgpuctl destroy {}",
      name, DefinitionPath(name), lost.why, name);
  return report;
}

void VfRegistry::Restore(KeptVfs kept, std::function<void()> done) {
  auto restoring = std::make_shared<Restoring>();
  restoring->adoption = std::make_unique<Adoption>(around_.keeper, std::move(kept));
  Ns longest{0};
  for (const auto& gpu : gpus_) longest = std::max(longest, gpu->config().scheduler.switcher.preempt_timeout);
  restoring->adoption->AwaitIdle(longest);
  restoring->done = std::move(done);
  std::set<Uuid> uuids;
  for (const StateFiles::File& file : definitions_.Open(kReadLimit, "definitions of VFs", "--state-dir")) {
    const std::string name = file.name.substr(0, file.name.size() - std::string_view(kDefinitionSuffix).size());
    if (!control::IsValidName(name)) {
      LOG(kWarning, "a file in {}/vfs has a name that no VF can have: it is left alone", around_.config.state_dir);
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
      (restoring->adoption->WhyNot(*definition).empty() ? restoring->kept : restoring->waiting)
          .push_back(std::move(*definition));
  }
  if (!definitions_.problem().empty())
    LOG(kError, "{}; running on without VFs of earlier, and new ones have to be transient", definitions_.problem());
  restoring->all = restoring->kept.size() + restoring->waiting.size();
  // By number: as they were in the rotation, and those of the same number in the order of their names.
  for (auto* each : {&restoring->kept, &restoring->waiting})
    std::stable_sort(each->begin(), each->end(),
                     [](const VfDefinition& a, const VfDefinition& b) { return a.number < b.number; });
  std::reverse(restoring->waiting.begin(), restoring->waiting.end());
  // Programs that compute go on together: whoever is taken over first would get turns that the others miss.
  for (const auto& gpu : gpus_) gpu->thread().Hold();
  for (const VfDefinition& definition : restoring->kept) RestoreOne(definition, restoring);
  for (const auto& gpu : gpus_) gpu->thread().Release();
  RestoreNext(restoring);
}

void VfRegistry::RestoreNext(const std::shared_ptr<Restoring>& restoring) {
  while (!restoring->waiting.empty() && restoring->starting < kStartedAtOnce) {
    const VfDefinition definition = std::move(restoring->waiting.back());
    restoring->waiting.pop_back();
    RestoreOne(definition, restoring);
  }
  if (!restoring->waiting.empty() || restoring->starting > 0) return;
  if (const auto done = std::exchange(restoring->done, nullptr)) {
    restoring->adoption->EndRest();
    if (restoring->all + lost_.size() > 0)
      LOG(kInfo, "{} VFs of earlier are back, {} are lost", vfs_.size(), lost_.size());
    done();
  }
}

void VfRegistry::RestoreOne(const VfDefinition& definition, const std::shared_ptr<Restoring>& restoring) {
  ++restoring->starting;
  RestoreOne(definition, *restoring->adoption, [this, restoring] {
    around_.loop.Post([this, restoring] {
      --restoring->starting;
      RestoreNext(restoring);
    });
  });
}

void VfRegistry::RestoreOne(const VfDefinition& written, Adoption& adoption, std::function<void()> done) {
  VfDefinition definition = written;
  VfSpec& spec = definition.spec;
  // As written by a vgpud that had one GPU, or where that one still has no name.
  if (spec.gpu.empty()) spec.gpu = FindGpu(kUnnamedGpu) ? kUnnamedGpu : gpus_.front()->name();
  const auto lose = [this, spec, uuid = ToText(definition.uuid), done](const ApiError& why) {
    if (closed_ == nullptr) Lose(spec.name, uuid, why.error, spec);
    done();
  };
  const auto gpu = FindGpu(spec.gpu);
  if (!gpu) return lose(gpu.error());
  const auto id = FreeId(spec, VfId{definition.number});
  if (!id) return lose(id.error());
  if (const auto weighed = WeighOn(**gpu, *id, spec); !weighed) return lose(weighed.error());
  std::optional<Adoption::Ready> ready;
  if (Raw(*id) == definition.number) ready = adoption.Take(definition);
  // What runs goes on. What is made anew has to fit into the host; it may be more than its tenant would get today.
  if (!ready)
    if (const auto why_not = WhyNotInRam(spec)) return lose(*why_not);
  for (const auto& why_not : {WhyNotForTenant(spec, false), WhyNotForSite(spec, false)})
    if (why_not) LOG(kWarning, "vf={}: keeps what it has, and would not get it now: {}", spec.name, why_not->error);
  if (!ready && spec.transient) return Forget(spec.name, [done](const ApiResult<VfReport>&) { done(); });
  if (!ready) spec.domain = {};  // whoever had it lost it with its processes
  StartVf(*id, definition.uuid, spec, std::move(ready),
          [this, definition, lose, done](const ApiResult<VfReport>& started) {
            const auto vf = started ? Find(definition.spec.name) : nullptr;
            if (!started) return lose(started.error());
            if (vf == nullptr) return done();
            const std::string& was = definition.vfio_user_socket;
            if (started->vfio_user_socket != was)
              LOG(kWarning, "vf={}: its socket is {} now, which was elsewhere before: tell its VM",
                  definition.spec.name, started->vfio_user_socket);
            // Its number or its socket may be another one; otherwise the disk has it already.
            Keep(*vf, [name = definition.spec.name, done](const Result<void>& kept) {
              if (!kept) LOG(kError, "vf={}: {}", name, kept.error().context);
              done();
            });
          });
}

void VfRegistry::Keep(const Vf& vf, std::function<void(const Result<void>&)> done) {
  definitions_.Put(vf.spec().name + kDefinitionSuffix, ToText(vf.definition()), std::move(done));
}

void VfRegistry::KeepChanged(const std::vector<Wanted>& changed, std::function<void(const Result<void>&)> done) {
  struct Gathered {
    size_t left = 1;
    Result<void> result;
  };
  const auto gathered = std::make_shared<Gathered>();
  const auto one = [gathered, done = std::move(done)](const Result<void>& result) {
    if (!result) gathered->result = result;
    if (--gathered->left == 0) done(gathered->result);
  };
  for (const Wanted& wanted : changed) {
    if (!IsKept(wanted.vf->spec())) continue;
    ++gathered->left;
    Keep(*wanted.vf, one);
  }
  one({});
}

void VfRegistry::Forget(const std::string& name, Reply<VfReport> done) {
  definitions_.Remove(name + kDefinitionSuffix, [this, name, done = std::move(done)](const Result<void>& removed) {
    if (!removed)
      return done(
          ApiFail(ErrorKind::kFailed, fmt::format("vf \"{}\" would be back after a restart of vgpud: {}: remove "
                                                  "that file",
                                                  name, removed.error().context)));
    VfReport report;
    if (lost_.contains(name)) report = ReportLost(name);
    report.name = name;
    lost_.erase(name);
    done(report);
  });
}

}  // namespace vgpud::daemon
