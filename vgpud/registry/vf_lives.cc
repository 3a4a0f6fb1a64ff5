// SPDX-License-Identifier: Apache-2.0
#include "vgpud/registry/vf_lives.h"

#include <fmt/core.h>

#include <memory>
#include <utility>

#include "base/log.h"
#include "vgpud/host/when_all.h"
#include "vgpud/tenants/owner.h"

namespace vgpud::daemon {
namespace {

// One that its guest has taken over, or that a fault brings down at once, is not given one attempt after the other.
constexpr Ns kNotAgainFor = std::chrono::seconds{60};

}  // namespace

Reply<VfReport> VfLives::Told(const char* kind, const std::string& by, Reply<VfReport> done) const {
  return [this, kind, by, done = std::move(done)](ApiResult<VfReport> vf) {
    if (vf) chronicle_.Add({.kind = kind, .vf = vf->name, .gpu = vf->gpu, .by = by});
    done(std::move(vf));
  };
}

void VfLives::Create(const Admission::Choice& choice, const std::string& by, Reply<VfReport> answer) {
  const VfSpec& spec = choice.spec;
  const auto done = [answer = Told(event_kind::kCreated, by, std::move(answer)),
                     why = choice.why](ApiResult<VfReport> vf) {
    if (vf) vf->placed = why;
    answer(std::move(vf));
  };
  if (store_.Keeps(spec) && !store_.problem().empty())
    return done(ApiFail(ErrorKind::kUnavailable,
                        fmt::format("vf \"{}\" would not be back after a restart, as it could not be written down: {}; "
                                    "vgpuctl create --transient makes one that ends with vgpud",
                                    spec.name, store_.problem())));
  Start(choice.id, gpus_.UuidFor(spec.name, *choice.gpu), spec, {},
        [this, done, spec](const ApiResult<VfReport>& started) {
          const auto vf = started ? vfs_.Find(spec.name) : nullptr;
          if (vf == nullptr || !store_.Keeps(spec)) return done(started);
          store_.Keep(vf->definition(),
                      [this, done, name = spec.name, weak = std::weak_ptr<Vf>(vf)](const Result<void>& kept) {
                        const auto self = weak.lock();
                        if (kept)
                          return done(self != nullptr ? ApiResult<VfReport>(self->Report())
                                                      : ApiFail(ErrorKind::kFailed, "the vf is gone"));
                        done(ApiFail(ErrorKind::kFailed,
                                     fmt::format("vf \"{}\" could not be written down and is ended again: {}; vgpuctl "
                                                 "create --transient makes one that ends with vgpud",
                                                 name, kept.error().context)));
                        store_.RemoveRest(name);
                        if (self != nullptr && vfs_.Find(name) == self)
                          End(name, true, [](const ApiResult<VfReport>&) {});
                      });
        });
}

void VfLives::Start(VfId id, const Uuid& uuid, const VfSpec& spec, std::optional<Adoption::Ready> ready,
                    Reply<VfReport> done) {
  const auto found = gpus_.Find(spec.gpu);
  if (!found) return done(tl::unexpected(found.error()));
  ServedGpu& gpu = **found;
  const auto vf = std::make_shared<Vf>(gpu.of_vfs(), id, uuid, spec);
  vfs_.Add(vf);
  outside_turns_.Begin();
  gpu.telemetry().Joined(id, spec.name, uuid, ready ? std::optional{ready->past} : std::nullopt, spec.tenant,
                         UsersOf(spec));
  gpu.telemetry().SetDomain(id, spec.domain);
  vf->SetPast(gpu.telemetry().PastOf(id));
  gpu.Turnout();
  auto there = [this, done, name = spec.name, weak = std::weak_ptr<Vf>(vf)](const ApiResult<uint64_t>& started) {
    const auto self = weak.lock();
    if (started && self != nullptr) return done(self->Report());
    done(tl::unexpected(started ? ApiError{ErrorKind::kFailed, "the vf is gone", {}} : started.error()));
    // A VF that never served is not kept.
    if (self != nullptr && self->state() == Vf::State::kFailed) loop_.Post([this, name] { End(name); });
  };
  if (ready)
    vf->Resume(std::move(ready->kept), std::move(ready->slices), std::move(ready->ledger), std::move(there));
  else
    vf->Start(std::move(there));
}

void VfLives::Reset(const std::string& name, bool force, const std::string& by, Reply<VfReport> answer) {
  const auto done = Told(event_kind::kReset, by, std::move(answer));
  const auto vf = vfs_.Get(name);
  if (force && !vf && vfs_.lost().Find(name) != nullptr) return MakeLostAgain(name, done);
  if (!vf) return done(tl::unexpected(vf.error()));
  if (force && (*vf)->state() == Vf::State::kFailed) return MakeAgain(**vf, done);
  (*vf)->ResetByOperator([done, vf = *vf](const ApiResult<uint64_t>& round) {
    if (!round) return done(tl::unexpected(round.error()));
    done(vf->Report());
  });
}

void VfLives::MakeLostAgain(const std::string& name, Reply<VfReport> done) {
  store_.Reread(name, [this, name, done = std::move(done)](const ApiResult<VfDefinition>& definition) {
    const LostVfs::Lost* const lost = vfs_.lost().Find(name);
    if (lost == nullptr || vfs_.closed())
      return done(ApiFail(ErrorKind::kConflict, fmt::format("vf \"{}\" is not lost any more: nothing was done", name)));
    if (!definition) {
      vfs_.lost().Add(name, {lost->file, definition.error().error, lost->uuid, {}});
      return done(ApiFail(ErrorKind::kConflict, vfs_.lost().Reason(name)));
    }
    vfs_.lost().Remove(name);
    remaking_.insert(name);
    StartAgain(*definition, done);
  });
}

void VfLives::MakeAgain(const Vf& vf, Reply<VfReport> done) {
  const std::string name = vf.spec().name;
  remaking_.insert(name);
  End(name, false, [this, definition = vf.definition(), done = std::move(done)](const ApiResult<VfReport>& ended) {
    const std::string& own_name = definition.spec.name;
    if (ended && !vfs_.closed()) return StartAgain(definition, done);
    if (remaking_.erase(own_name) != 0 && !vfs_.closed()) store_.Lose(definition, ended.error().error);
    done(ended ? ApiFail(ErrorKind::kUnavailable, "vgpud is stopping") : ended);
  });
}

void VfLives::StartAgain(const VfDefinition& definition, Reply<VfReport> done) {
  const auto fail = [this, definition, done](const ApiError& why) {
    const std::string& name = definition.spec.name;
    if (remaking_.erase(name) == 0 || vfs_.closed()) return done(tl::unexpected(why));
    store_.Lose(definition, why.error);
    done(ApiFail(why.kind, vfs_.lost().Reason(name)));
  };
  if (!remaking_.contains(definition.spec.name))
    return fail({ErrorKind::kConflict, fmt::format("vf \"{}\" was destroyed meanwhile", definition.spec.name), {}});
  const auto id = admission_.RoomAgain(definition);
  if (!id) return fail(id.error());
  Start(*id, definition.uuid, definition.spec, {},
        [this, name = definition.spec.name, fail, done](const ApiResult<VfReport>& started) {
          if (!started) return fail(started.error());
          remaking_.erase(name);
          chronicle_.Add({.kind = event_kind::kRemade, .vf = name, .gpu = started->gpu});
          const auto vf = vfs_.Find(name);
          // Its number may be another one; otherwise the disk has it already.
          if (vf != nullptr && store_.Keeps(vf->spec()))
            store_.Keep(vf->definition(), [name](const Result<void>& kept) {
              if (!kept) LOG(kError, "vf={}: {}", name, kept.error().context);
            });
          done(started);
        });
}

void VfLives::Destroy(const std::string& name, const std::string& uuid, const std::string& by, Reply<VfReport> answer) {
  const auto done = Told(event_kind::kDestroyed, by, std::move(answer));
  const auto vf = vfs_.Find(name);
  if (!uuid.empty() && (vf == nullptr || vf->Report().uuid != uuid))
    return done(ApiFail(ErrorKind::kConflict,
                        fmt::format("vf \"{}\" is not the one of uuid {}: nothing was done", name, uuid), "uuid"));
  remaking_.erase(name);
  remade_.erase(name);
  if (vf == nullptr && vfs_.lost().Find(name) != nullptr) return store_.Forget(name, done);
  const bool forget = vf != nullptr && store_.Keeps(vf->spec()) && vf->state() != Vf::State::kClosing && !vfs_.closed();
  if (!forget) return End(name, !vfs_.closed(), done);
  struct Answers {
    ApiResult<VfReport> forgotten, ended;
  };
  const auto answers = std::make_shared<Answers>();
  const auto over = WhenAll(2, [answers, done] {
    done(answers->ended && !answers->forgotten ? std::move(answers->forgotten) : std::move(answers->ended));
  });
  store_.Forget(name, [answers, over](ApiResult<VfReport> gone) {
    answers->forgotten = std::move(gone);
    over();
  });
  End(name, true, [answers, over](ApiResult<VfReport> gone) {
    answers->ended = std::move(gone);
    over();
  });
}

void VfLives::End(const std::string& name, bool for_good, Reply<VfReport> done) {
  const auto found = vfs_.Get(name);
  if (!found) return done(tl::unexpected(found.error()));
  Vf& vf = **found;
  if (vf.state() == Vf::State::kClosing)
    return done(ApiFail(ErrorKind::kConflict, fmt::format("vf \"{}\" is being destroyed already", name)));
  const VfId id = vf.id();
  // Answers once: when the VF is gone, or when destroying it has failed.
  const auto answer = [once = std::make_shared<Reply<VfReport>>(std::move(done))](ApiResult<VfReport> report) {
    if (const auto reply = std::exchange(*once, nullptr)) reply(std::move(report));
  };
  // Not inside the callback that found the last process gone: that one still belongs to the VF.
  const auto closed = [this, id, for_good, answer] {
    loop_.Post([this, id, for_good, answer] { OnEnded(id, for_good, answer); });
  };
  const auto stuck = [this, id, name, answer] {
    stuck_.insert(id);
    answer(ApiFail(ErrorKind::kFailed,
                   fmt::format("vf \"{}\": its processes do not end although they were killed, something outside holds "
                               "them in the kernel; it is gone when they end (see vgpud's log)",
                               name)));
    MaybeAllEnded();
  };
  vf.Close(closed, stuck);
}

void VfLives::OnEnded(VfId id, bool for_good, const Reply<VfReport>& done) {
  auto vf = vfs_.Find(id);
  if (vf == nullptr) return;
  ServedGpu& gpu = gpus_.Of(*vf);
  gpu.telemetry().Removed(id, for_good);
  const VfReport report = vf->Report();
  vfs_.Remove(id);
  vf.reset();  // with its sockets: the next one of its name makes them anew
  stuck_.erase(id);
  gpu.Turnout();
  done(report);
  MaybeAllEnded();
}

void VfLives::EndAll(std::function<void()> done) {
  all_ended_ = std::move(done);
  MaybeAllEnded();
  // A VF that is being destroyed already ends as it would have.
  for (const auto& [id, vf] : std::map(vfs_.all())) End(vf->spec().name);
}

void VfLives::MaybeAllEnded() {
  if (vfs_.all().size() != stuck_.size()) return;
  if (const auto done = std::exchange(all_ended_, nullptr)) done();
}

void VfLives::Remake(const std::string& name) {
  const auto vf = vfs_.Find(name);
  if (vfs_.closed() || vf == nullptr || vf->state() != Vf::State::kFailed) return;
  // A VM that had the VF can't connect again: then it stays failed for an operator to see, unless VFs outlive vgpud.
  if (!(outlived_ && !vf->spec().transient) && !vf->crashed_without_vm()) return;
  const TimePoint now = Now();
  const auto before = remade_.find(name);
  if (before != remade_.end() && now - before->second < kNotAgainFor) {
    chronicle_.Add({.kind = event_kind::kAlarm,
                    .vf = name,
                    .gpu = vf->gpu_name(),
                    .text = "its vgpud-vf died again within a minute: vgpud does not make it again"});
    LOG(kError, "vf={}: its vgpud-vf died again within a minute: it stays failed (back with: vgpuctl reset --force {})",
        name, name);
    return;
  }
  remade_[name] = now;
  MakeAgain(*vf, [name](const ApiResult<VfReport>& made) {
    if (made)
      LOG(kWarning,
          "vf={}: made again for the next client. QEMU does not connect a second time: if a VM had this VF, unplug the "
          "device from it and plug it in again",
          name);
  });
}

}  // namespace vgpud::daemon
