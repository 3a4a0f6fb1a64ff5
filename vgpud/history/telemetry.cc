// SPDX-License-Identifier: Apache-2.0
#include "vgpud/history/telemetry.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/log.h"
#include "vgpud/history/day.h"

namespace vgpud::daemon {
namespace {

constexpr Ns kLookEvery = std::chrono::milliseconds{100};
constexpr Ns kLookAtRest = std::chrono::milliseconds{500};  // each look wakes the scheduler thread
constexpr Ns kRemember = std::chrono::minutes{10};          // the longest trace that can be asked for

}  // namespace

Telemetry::Telemetry(EventLoop& loop, GpuThread& gpu, TaskQueue& replies, Options options)
    : loop_(loop),
      gpu_(gpu),
      options_([&] {
        if (!options.unix_seconds) options.unix_seconds = [] { return static_cast<int64_t>(::time(nullptr)); };
        return std::move(options);
      }()),
      history_(options_.state_dir, replies) {
  look_timer_ = loop_.Timer([this] { LookAround(); });
  write_timer_ = loop_.Timer([this] {
    const int64_t day = WhatDay();
    ArmWriter();
    history_.LookForHang();
    if (!lives_.empty() || history_.anything_gone()) WriteAt(day, nullptr);
  });
  soon_timer_ = loop_.Timer([this] { WriteForAll(); });
  history_.Open(options_.open_limit);
  ArmWriter();
}

Telemetry::~Telemetry() = default;

// At the latest when the day ends.
void Telemetry::ArmWriter() {
  armed_at_ = options_.unix_seconds();
  write_timer_->Arm(std::min<Ns>(options_.write_every, std::chrono::seconds{NextDay(armed_at_) - armed_at_}));
}

// The first write after midnight is about what was used before it.
int64_t Telemetry::WhatDay() const {
  const int64_t now = options_.unix_seconds();
  const int64_t midnight = NextDay(armed_at_);
  const int64_t latest = midnight + options_.write_every / std::chrono::seconds{1} + 1;
  return now >= midnight && now <= latest ? armed_at_ : now;
}

std::optional<Uuid> Telemetry::KnownUuid(const std::string& name) {
  const auto known = history_.Known(name);
  return known ? UuidFromText(known->uuid) : std::nullopt;
}

Uuid Telemetry::UuidFor(const std::string& name) { return KnownUuid(name).value_or(RandomUuid()); }

void Telemetry::Joined(VfId vf, const std::string& name, const Uuid& uuid, const std::optional<VfStats>& past,
                       const std::string& tenant, const std::string& users) {
  Life life;
  life.name = name;
  life.tenant = tenant;
  life.users = users;
  life.uuid = ToText(uuid);
  life.key = next_key_++;
  life.since = Now();
  if (const auto known = history_.Known(name); known && known->uuid == life.uuid) {
    life.past = known->usage;
    life.domain = known->domain;
  }
  if (past) life.past = *past;
  life.is_new = !past && !history_.Known(name);
  history_.Back(life.uuid);
  lives_.insert_or_assign(vf, std::move(life));
  if (lives_.size() == 1) LookAround();
}

void Telemetry::SetDomain(VfId vf, const VfDomain& domain) {
  const auto it = lives_.find(vf);
  if (it == lives_.end()) return;
  // Whoever had it last: what was used is theirs.
  if (!domain.name.empty()) it->second.domain = domain;
}

VfStats Telemetry::PastOf(VfId vf) const {
  const auto it = lives_.find(vf);
  return it != lives_.end() ? it->second.past : VfStats{};
}

void Telemetry::Left(VfId vf, const VfStats& last) {
  if (const auto it = lives_.find(vf); it != lives_.end()) AddUsage(it->second.past, last);
}

void Telemetry::Removed(VfId vf, bool destroyed) {
  const auto it = lives_.find(vf);
  if (it == lives_.end()) return;
  const Life& life = it->second;
  history_.Gone({life.uuid, life.name, life.past, destroyed, life.domain, life.tenant,
                 life.is_new ? Now() - life.since : Ns::max(), life.users});
  tenures_.push_back({vf, life.name, life.since, Now(), life.domain});
  lives_.erase(it);
  // Soon after the name may be taken by a VF that must not be mistaken for this one.
  if (destroyed) WriteSoon(nullptr);
}

void Telemetry::Finish(std::function<void()> done) {
  // Once, whichever comes first.
  auto finish = std::make_shared<std::function<void()>>(std::move(done));
  const auto once = [finish] {
    if (const auto call = std::exchange(*finish, nullptr)) call();
  };
  finish_timer_ = loop_.Timer(once);
  finish_timer_->Arm(options_.finish_limit);
  // It is the last one, also for those who wait for a later one.
  soon_timer_.reset();
  soon_.push_back(once);
  WriteForAll();
  writes_soon_ = true;
}

std::vector<VfId> Telemetry::Ids() const {
  std::vector<VfId> ids;
  for (const auto& [vf, life] : lives_) ids.push_back(vf);
  return ids;
}

uint64_t Telemetry::KeyOf(VfId vf) const {
  const auto it = lives_.find(vf);
  return it != lives_.end() ? it->second.key : 0;
}

void Telemetry::AddPast(const std::vector<VfId>& vfs, GpuStats* stats) const {
  for (size_t i = 0; i < vfs.size(); ++i)
    if (const auto it = lives_.find(vfs[i]); it != lives_.end()) AddUsage(stats->vfs[i], it->second.past);
  stats->run_ns += history_.past_gpu().run_ns;
  stats->switch_ns += history_.past_gpu().switch_ns;
  stats->idle_ns += history_.past_gpu().idle_ns;
  stats->switches.Merge(history_.past_gpu().switches);
}

void Telemetry::LookAround() {
  if (lives_.empty()) return;
  look_timer_->Arm(at_rest_ ? kLookAtRest : kLookEvery);
  std::vector<VfId> ids = Ids();
  std::vector<uint64_t> keys;
  for (const VfId vf : ids) keys.push_back(KeyOf(vf));
  const uint64_t appended = gpu_.trace().appended();
  gpu_.ReadAccounts(std::move(ids), [this, keys, appended](const GpuAccounts& accounts) {
    const TimePoint now = accounts.at;
    std::vector<FairnessWindow::Sample> samples;
    uint64_t counted = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      samples.push_back({keys[i], accounts.vfs[i]});
      counted += accounts.vfs[i].received_ns + accounts.vfs[i].runnable_ns;
    }
    at_rest_ = counted == std::exchange(counted_, counted);
    last_second_.Look(now, accounts.gpu, samples);
    second_.Add(now, samples);
    minute_.Add(now, samples);
    looks_.push_back({now, appended});
    Forget(now - kRemember);
  });
}

void Telemetry::Forget(TimePoint before) {
  while (looks_.size() > 1 && looks_[1].at <= before) looks_.pop_front();
  while (!tenures_.empty() && tenures_.front().until < before) tenures_.pop_front();
}

std::vector<FairnessReport> Telemetry::Fairness() const {
  std::vector<FairnessReport> windows;
  windows.push_back({"1s", second_.Judge()});
  windows.push_back({"60s", minute_.Judge()});
  return windows;
}

std::shared_ptr<TraceDump> Telemetry::DumpTrace(const std::string& gpu, Ns length) const {
  const TimePoint zero = Now() - length;
  std::vector<Tenure> tenures(tenures_.begin(), tenures_.end());
  for (const auto& [vf, life] : lives_) tenures.push_back({vf, life.name, life.since, TimePoint::max(), life.domain});
  std::sort(tenures.begin(), tenures.end(), [](const Tenure& a, const Tenure& b) { return a.from < b.from; });
  uint64_t first = 0;
  for (const Look& look : looks_)
    if (look.at <= zero) first = look.appended;
  return std::make_shared<TraceDump>(gpu_.trace(), gpu, std::move(tenures), zero, first);
}

void Telemetry::WriteAt(int64_t unix_seconds, std::function<void()> done) {
  if (!history_.on()) return done ? done() : void();
  if (writing_) {
    if (done) next_.push_back(std::move(done));
    // The first of them: what was used before midnight must not count for the day after it.
    if (!next_at_) next_at_ = unix_seconds;
    return;
  }
  writing_ = true;
  wrote_ = Now();
  if (done) awaited_.push_back(std::move(done));
  std::vector<VfId> ids = Ids();
  gpu_.ReadStats(ids, [this, ids, unix_seconds](const GpuStats& stats) { Write(ids, stats, unix_seconds); });
}

void Telemetry::Write(const std::vector<VfId>& vfs, GpuStats stats, int64_t unix_seconds) {
  AddPast(vfs, &stats);
  std::vector<History::Vf> rows;
  std::map<std::string, VfAccount> written;
  for (size_t i = 0; i < vfs.size(); ++i) {
    const auto it = lives_.find(vfs[i]);
    if (it == lives_.end()) continue;
    const VfAccount& account = stats.vfs[i].account;
    // One that neither ran nor waited has nothing new; without any turn it is written, to be found again.
    if (account.slices == it->second.written_turns && account.waited_ns == it->second.written_waited_ns &&
        account.slices != 0)
      continue;
    rows.push_back({it->second.uuid, it->second.name, stats.vfs[i], false, it->second.domain, it->second.tenant});
    written.emplace(it->second.uuid, account);
  }
  const History::Gpu gpu{stats.run_ns, stats.switch_ns, stats.idle_ns, stats.switches};
  history_.Write(std::move(rows), gpu, unix_seconds, [this, written = std::move(written)](bool all) {
    Wrote(all ? written : std::map<std::string, VfAccount>{});
  });
}

void Telemetry::Wrote(const std::map<std::string, VfAccount>& written) {
  for (auto& [vf, life] : lives_) {
    const auto it = written.find(life.uuid);
    if (it == written.end()) continue;
    life.written_turns = it->second.slices;
    life.written_waited_ns = it->second.waited_ns;
  }
  writing_ = false;
  auto done = std::exchange(awaited_, std::exchange(next_, {}));
  if (!history_.on()) done.insert(done.end(), awaited_.begin(), awaited_.end());
  if (const auto at = std::exchange(next_at_, std::nullopt)) WriteAt(*at, nullptr);
  for (const auto& each : done) each();
}

void Telemetry::WriteSoon(std::function<void()> done) {
  if (done) soon_.push_back(std::move(done));
  if (std::exchange(writes_soon_, true)) return;
  soon_timer_->Arm(wrote_ == TimePoint{} ? Ns{0} : std::max(Ns{0}, wrote_ + options_.write_spacing - Now()));
}

void Telemetry::WriteForAll() {
  writes_soon_ = false;
  WriteNow([all = std::exchange(soon_, {})] {
    for (const auto& each : all) each();
  });
}

void Telemetry::Refresh(std::function<void()> done) {
  // Who would have to wait too long is told so at once.
  if (!history_.on() || history_.hangs() || awaited_.size() + next_.size() + soon_.size() >= HistoryKeeper::kMostReads)
    return done();
  WriteSoon(std::move(done));
}

}  // namespace vgpud::daemon
