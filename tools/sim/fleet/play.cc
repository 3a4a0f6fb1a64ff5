// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/fleet/play.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "tools/sim/fleet/waiting.h"

namespace vgpud::tools::fleet {
namespace {

constexpr Seconds kNever = INT64_MAX;

class Player {
 public:
  Player(const JobList& jobs, const FleetRules& rules, const FleetPolicy& policy)
      : list_(jobs),
        rules_(rules),
        policy_(policy),
        hosts_(rules.size),
        tally_(jobs, rules.size, rules.from),
        places_(jobs.jobs.size()),
        held_(jobs.tenants.size()),
        quota_(static_cast<int64_t>(rules.quota * rules.size.gpus * rules.size.slots)),
        no_room_((rules.size.per_host + 1) * (rules.size.slots + 1)) {}

  FleetOutcome Run() {
    size_t next = 0;
    while (true) {
      const Seconds arrival = next < list_.jobs.size() ? list_.jobs[next].arrival : kNever;
      const Seconds end = running_.empty() ? kNever : running_.begin()->first;
      const Seconds now = std::min({arrival, end, opens_});
      if (now == kNever) break;
      tally_.Advance(now, hosts_);
      now_ = now;
      const bool ended = EndDue();
      const bool opened = opens_ == now;
      if (opened) opens_ = kNever;
      if (ended || opened) LookThrough();
      for (; next < list_.jobs.size() && list_.jobs[next].arrival == now; ++next) Submit(static_cast<uint32_t>(next));
    }
    CHECK(waiting_.count() == 0);
    tally_.Advance(std::max(now_, list_.end), hosts_);
    FleetOutcome outcome = tally_.Finish();
    outcome.engine = policy_.engine;
    outcome.policy = policy_.name;
    return outcome;
  }

 private:
  struct SetAside {
    uint32_t job, host;
    Seconds until;  // when the host has room for it at the latest
  };
  enum class Tried : uint8_t { kStarted, kHeldBack, kNoRoom };

  Shape ShapeOf(const FleetJob& job) const {
    if (policy_.whole || job.gpus > 1) return {job.gpus, rules_.size.slots};
    return {1, std::max<uint32_t>((job.part * rules_.size.slots + kWholeGpu - 1) / kWholeGpu, 1)};
  }
  static int64_t Slots(Shape shape) { return int64_t{shape.gpus} * shape.slots; }
  uint64_t LineOf(const FleetJob& job) const {
    const Shape shape = ShapeOf(job);
    const uint64_t line = (shape.gpus * uint64_t{128} + shape.slots) * 2 + job.training;
    return policy_.quota ? line << 32 | job.tenant : line;
  }

  bool Night() const {
    const Seconds time = now_ % kDay;
    const Seconds from = rules_.night_from, to = rules_.night_to;
    return from < to ? from <= time && time < to : from <= time || time < to;
  }
  Seconds NextNight() const {
    const Seconds today = now_ - now_ % kDay + rules_.night_from;
    return today > now_ ? today : today + kDay;
  }

  // Why it can never run; empty if it can.
  std::string Never(const FleetJob& job) const {
    const uint32_t most = std::min(rules_.size.per_host, rules_.size.gpus);
    if (job.gpus > most) return fmt::format("asks for {} GPUs of one host, the largest has {}", job.gpus, most);
    const int64_t slots = Slots(ShapeOf(job));
    if (policy_.quota && slots > quota_)
      return fmt::format("asks for {} VFs, the quota of a tenant is {}", slots, quota_);
    return {};
  }

  bool EndDue() {
    bool any = false;
    for (; !running_.empty() && running_.begin()->first == now_; any = true) {
      const uint32_t number = running_.begin()->second;
      running_.erase(running_.begin());
      const FleetJob& job = list_.jobs[number];
      const Shape shape = ShapeOf(job);
      hosts_.Release(places_[number], shape.slots);
      held_[job.tenant] -= Slots(shape);
      tally_.Ended(job, now_);
    }
    return any;
  }

  void Submit(uint32_t number) {
    const FleetJob& job = list_.jobs[number];
    if (std::string why = Never(job); !why.empty()) return tally_.Refused(job, why);
    const Tried tried = Try(number, true);
    if (tried == Tried::kStarted) return;
    waiting_.Push(LineOf(job), number);
    if (tried == Tried::kNoRoom && policy_.set_aside && !set_aside_) SetOneAside(number);
  }

  // Room came free: who can start?
  void LookThrough() {
    if (waiting_.count() == 0) return;
    std::fill(no_room_.begin(), no_room_.end(), false);
    const std::optional<SetAside> before = std::exchange(set_aside_, std::nullopt);
    waiting_.ForEach([&](uint32_t number) {
      const Shape shape = ShapeOf(list_.jobs[number]);
      const size_t at = shape.gpus * (rules_.size.slots + 1) + shape.slots;
      const Tried tried = Try(number, !no_room_[at]);
      if (tried == Tried::kStarted) return Waiting::Answer::kStarted;
      if (tried == Tried::kNoRoom) no_room_[at] = true;
      if (tried == Tried::kNoRoom && policy_.set_aside && !set_aside_) {
        if (before && before->job == number)
          set_aside_ = before;
        else
          SetOneAside(number);
      }
      return Waiting::Answer::kStays;
    });
  }

  // `anywhere`: false if it is known that only the host that is set aside may have room.
  Tried Try(uint32_t number, bool anywhere) {
    const FleetJob& job = list_.jobs[number];
    const Shape shape = ShapeOf(job);
    if (policy_.night && job.training && !Night()) {
      opens_ = NextNight();
      return Tried::kHeldBack;
    }
    if (policy_.quota && held_[job.tenant] + Slots(shape) > quota_) return Tried::kHeldBack;
    std::optional<Place> place;
    if (anywhere)
      place = hosts_.Find(shape, policy_.choice, set_aside_ ? std::optional(set_aside_->host) : std::nullopt);
    if (!place && set_aside_ && now_ + job.duration <= set_aside_->until)
      place = hosts_.FindOn(set_aside_->host, shape, policy_.choice);
    if (!place) return Tried::kNoRoom;
    hosts_.Take(*place, shape.slots);
    places_[number] = *place;
    held_[job.tenant] += Slots(shape);
    running_.emplace(now_ + job.duration, number);
    tally_.Started(job, now_);
    return Tried::kStarted;
  }

  // The host that has room for `number` first as running jobs end.
  void SetOneAside(uint32_t number) {
    const Shape shape = ShapeOf(list_.jobs[number]);
    Hosts later = hosts_;
    for (const auto& [end, other] : running_) {
      later.Release(places_[other], ShapeOf(list_.jobs[other]).slots);
      if (!later.FindOn(places_[other].host, shape, policy_.choice)) continue;
      set_aside_ = {number, places_[other].host, end};
      return;
    }
    CHECK(false);  // Never() would have refused it
  }

  const JobList& list_;
  const FleetRules& rules_;
  const FleetPolicy& policy_;
  Hosts hosts_;
  Tally tally_;
  Waiting waiting_;
  std::set<std::pair<Seconds, uint32_t>> running_;  // end, number
  std::vector<Place> places_;                       // of jobs that run, by number
  std::vector<int64_t> held_;                       // slots, by tenant
  const int64_t quota_;                             // slots
  std::vector<bool> no_room_;                       // by shape: nowhere but on the host that is set aside
  std::optional<SetAside> set_aside_;
  Seconds now_ = 0;
  Seconds opens_ = kNever;  // when trainings that wait for the night may start
};

}  // namespace

FleetOutcome Play(const JobList& jobs, const FleetRules& rules, const FleetPolicy& policy) {
  return Player(jobs, rules, policy).Run();
}

}  // namespace vgpud::tools::fleet
