// SPDX-License-Identifier: Apache-2.0
#include "vgpud/registry/restoration.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"

namespace vgpud::daemon {
namespace {

constexpr size_t kStartedAtOnce = 4;  // each start has a limit of its own

Ns LongestPreemption(const ServedGpus& gpus) {
  Ns longest{0};
  for (const auto& gpu : gpus.all()) longest = std::max(longest, gpu->config().scheduler.switcher.preempt_timeout);
  return longest;
}

}  // namespace

void Restoration::Begin(const Parts& parts, KeptVfs kept, std::function<void()> done) {
  std::shared_ptr<Restoration> { new Restoration(parts, std::move(kept), std::move(done)) } -> Begin();
}

Restoration::Restoration(const Parts& parts, KeptVfs kept, std::function<void()> done)
    : parts_(parts), done_(std::move(done)), adoption_(parts.keeper, std::move(kept)) {}

void Restoration::Begin() {
  adoption_.AwaitIdle(LongestPreemption(parts_.gpus));
  std::vector<VfDefinition> definitions = parts_.store.Open();
  all_ = definitions.size();
  // By number: as they were in the rotation, and those of the same number in the order of their names.
  std::stable_sort(definitions.begin(), definitions.end(),
                   [](const VfDefinition& a, const VfDefinition& b) { return a.number < b.number; });
  const auto rest = std::stable_partition(definitions.begin(), definitions.end(),
                                          [this](const VfDefinition& each) { return adoption_.WhyNot(each).empty(); });
  anew_.assign(rest, definitions.end());
  std::reverse(anew_.begin(), anew_.end());
  definitions.erase(rest, definitions.end());
  // Programs that compute go on together: whoever is taken over first would get turns that the others miss.
  for (const auto& gpu : parts_.gpus.all()) gpu->thread().Hold();
  for (const VfDefinition& definition : definitions) Make(definition);
  for (const auto& gpu : parts_.gpus.all()) gpu->thread().Release();
  MakeNext();
}

void Restoration::MakeNext() {
  while (!anew_.empty() && starting_ < kStartedAtOnce) {
    const VfDefinition definition = std::move(anew_.back());
    anew_.pop_back();
    Make(definition);
  }
  if (!anew_.empty() || starting_ > 0) return;
  const auto done = std::exchange(done_, nullptr);
  if (!done) return;
  adoption_.EndRest();
  const size_t lost = parts_.vfs.lost().size();
  if (all_ + lost > 0) LOG(kInfo, "{} VFs of earlier are back, {} are lost", parts_.vfs.all().size(), lost);
  done();
}

void Restoration::Make(const VfDefinition& definition) {
  ++starting_;
  Make(definition, [self = shared_from_this()] {
    self->parts_.loop.Post([self] {
      --self->starting_;
      self->MakeNext();
    });
  });
}

void Restoration::Make(const VfDefinition& written, std::function<void()> done) {
  const auto& [loop, keeper, gpus, vfs, store, limits, admission, lives, chronicle] = parts_;
  VfDefinition definition = written;
  VfSpec& spec = definition.spec;
  // As written by a vgpud that had one GPU, or where that one still has no name.
  if (spec.gpu.empty()) spec.gpu = gpus.Find(kUnnamedGpu) ? kUnnamedGpu : gpus.first().name();
  const auto lose = [this, definition, done](const ApiError& why) {
    if (!parts_.vfs.closed()) parts_.store.Lose(definition, why.error);
    done();
  };
  const auto gpu = gpus.Find(spec.gpu);
  if (!gpu) return lose(gpu.error());
  const auto id = admission.FreeNumber(spec.name, VfId{definition.number});
  if (!id) return lose(id.error());
  if (const auto allowed = admission.PreviewOn(**gpu, *id, spec); !allowed) return lose(allowed.error());
  std::optional<Adoption::Ready> ready;
  if (Raw(*id) == definition.number) ready = adoption_.Take(definition);
  // What runs goes on. What is made anew has to fit into the host; it may be more than its tenant would get today.
  if (!ready)
    if (const auto why_not = limits.WhyNotInRam(spec)) return lose(*why_not);
  for (const auto& why_not : {limits.WhyNotForTenant(spec, false), limits.WhyNotForSite(spec, false)})
    if (why_not) LOG(kWarning, "vf={}: keeps what it has, and would not get it now: {}", spec.name, why_not->error);
  if (!ready && spec.transient) return store.Forget(spec.name, [done](const ApiResult<VfReport>&) { done(); });
  if (!ready) spec.domain = {};  // whoever had it lost it with its processes
  lives.Start(*id, definition.uuid, spec, std::move(ready),
              [this, definition, lose, done](const ApiResult<VfReport>& started) {
                const std::string& name = definition.spec.name;
                const auto vf = started ? parts_.vfs.Find(name) : nullptr;
                if (!started) return lose(started.error());
                if (vf == nullptr) return done();
                parts_.chronicle.Add({.kind = event_kind::kRestored, .vf = name, .gpu = started->gpu});
                if (started->vfio_user_socket != definition.vfio_user_socket)
                  LOG(kWarning, "vf={}: its socket is {} now, which was elsewhere before: tell its VM", name,
                      started->vfio_user_socket);
                // Its number or its socket may be another one; otherwise the disk has it already.
                parts_.store.Keep(vf->definition(), [name, done](const Result<void>& kept) {
                  if (!kept) LOG(kError, "vf={}: {}", name, kept.error().context);
                  done();
                });
              });
}

}  // namespace vgpud::daemon
