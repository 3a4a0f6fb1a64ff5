// SPDX-License-Identifier: Apache-2.0
#include "vgpud/registry/new_vfs.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace vgpud::daemon {
namespace {

WaitingRoom::Gpus NamesOf(const ServedGpus& gpus) {
  const std::vector<std::string> names = gpus.names();
  return {names.begin(), names.end()};
}

}  // namespace

NewVfs::NewVfs(EventLoop& loop, const ServedGpus& gpus, const VfLimits& limits, const Admission& admission,
               VfLives& lives)
    : loop_(loop), gpus_(gpus), limits_(limits), admission_(admission), lives_(lives), waiting_(NamesOf(gpus)) {}

void NewVfs::Create(const VfWish& wish, Reply<VfReport> done) {
  const auto choice = admission_.Locate(wish);
  choice ? lives_.Create(*choice, wish.by, std::move(done)) : done(tl::unexpected(choice.error()));
}

bool NewVfs::TryNow(const VfWish& wish, const WaitingRoom::Gpus& taken, const Reply<VfReport>& done) {
  if (const auto number = admission_.FreeNumber(wish.spec.name, wish.whose); !number) {
    done(tl::unexpected(number.error()));
    return true;
  }
  if (const auto why_not = wish.why_not()) {
    done(tl::unexpected(*why_not));
    return true;
  }
  const auto choice = admission_.Locate(wish, taken);
  if (choice) lives_.Create(*choice, wish.by, done);
  if (choice || choice.error().kind != ErrorKind::kInvalid) return choice.has_value();
  done(tl::unexpected(choice.error()));
  return true;
}

bool NewVfs::Could(const VfWish& wish, const ServedGpu& gpu) const {
  return (wish.spec.gpu.empty() || wish.spec.gpu == gpu.name()) && !admission_.WhyNever(gpu, wish);
}

bool NewVfs::Wants(const VfWish& wish, const std::string& name) const {
  const auto gpu = gpus_.Find(name);
  if (!gpu || !Could(wish, **gpu)) return false;
  VfSpec there = *wish.on((*gpu)->profiles());
  there.gpu = name;
  return !limits_.WhyNotForTenant(there, false);
}

std::function<void()> NewVfs::CreateInTurn(const VfWish& wish, Reply<VfReport> done) {
  const auto nothing = [] {};
  const auto& gpus = gpus_.all();
  if (std::none_of(gpus.begin(), gpus.end(), [&](const auto& gpu) { return Could(wish, *gpu); })) {
    Create(wish, std::move(done));  // which says why not
    return nothing;
  }
  const auto number = waiting_.Enter(
      {.priority = static_cast<uint8_t>(limits_.PriorityOf(wish.spec)),
       .wants = [this, wish](const std::string& gpu) { return Wants(wish, gpu); },
       .try_now = [this, wish, done](const WaitingRoom::Gpus& taken) { return TryNow(wish, taken, done); },
       .whose = wish.whose,
       .refuse =
           [done] {
             done(
                 ApiFail(ErrorKind::kTooMany,
                         "its place among the VFs that wait for room went to somebody who had fewer of them: try again "
                         "later, or let fewer wait at once"));
           }});
  if (!number) {
    done(ApiFail(ErrorKind::kTooMany, number.error().context));
    return nothing;
  }
  return [this, number = *number] {
    waiting_.Leave(number);
    LookForRoom();  // it may have kept others away
  };
}

void NewVfs::LookForRoom() {
  if (waiting_.size() == 0 || std::exchange(looks_for_room_, true)) return;
  loop_.Post([this] {
    looks_for_room_ = false;
    waiting_.LookAgain();
  });
}

}  // namespace vgpud::daemon
