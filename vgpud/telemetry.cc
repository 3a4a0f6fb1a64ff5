#include "vgpud/telemetry.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <utility>

#include "base/log.h"
#include "vgpud/day.h"

namespace vgpud {
namespace {

constexpr Ns kLookEvery = std::chrono::milliseconds{100};
constexpr size_t kMostGone = 2'000;                 // some 4 KiB each
constexpr Ns kRemember = std::chrono::minutes{10};  // the longest trace that can be asked for

// Made with mode 0750 if it is not there. One of another user is refused: that user could put anything in it.
Result<void> MakeStateDir(const std::string& path) {
  namespace fs = std::filesystem;
  const auto fail = [&](const std::string& why) {
    return Fail(std::errc::permission_denied,
                fmt::format("usage history: {}; make it, or name another --state-dir", why));
  };
  std::error_code error;
  const bool made = fs::create_directories(path, error);
  if (error) return fail(fmt::format("cannot create {}: {}", path, error.message()));
  if (made) fs::permissions(path, static_cast<fs::perms>(0750), error);
  if (error) return fail(fmt::format("cannot set the mode of {}: {}", path, error.message()));
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) return FailErrno(fmt::format("usage history: cannot look at {}", path));
  if (st.st_uid == ::geteuid() || st.st_uid == 0) return {};
  return Fail(
      std::errc::permission_denied,
      fmt::format("usage history: {} belongs to uid {}, vgpud runs as uid {}: change its owner (chown), or name "
                  "another --state-dir, and restart vgpud",
                  path, st.st_uid, ::geteuid()));
}

}  // namespace

Telemetry::Telemetry(EventLoop& loop, GpuThread& gpu, Options options)
    : loop_(loop), gpu_(gpu), options_([&] {
        if (!options.unix_seconds) options.unix_seconds = [] { return static_cast<int64_t>(::time(nullptr)); };
        return std::move(options);
      }()) {
  look_timer_ = loop_.Timer([this] { LookAround(); });
  write_timer_ = loop_.Timer([this] {
    const int64_t day = WhatDay();
    ArmWriter();
    if (!lives_.empty() || !gone_.empty()) WriteAt(day, [] {});
  });
  OpenHistory(options_.state_dir);
  ArmWriter();
}

Telemetry::~Telemetry() = default;

void Telemetry::OpenHistory(const std::string& state_dir) {
  path_ = state_dir + "/usage.db";
  const auto dir = MakeStateDir(state_dir);
  auto opened = dir ? History::Open(path_) : Result<std::unique_ptr<History>>(tl::unexpected(dir.error()));
  if (opened) {
    history_ = std::move(*opened);
    state_ = kOn;
    if (auto gpu = history_->ReadGpu()) past_gpu_ = std::move(*gpu);
    return;
  }
  error_ = opened.error().context;
  LOG(kError, "{}; running on without it", error_);
}

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

// The VF of that name that was not destroyed.
std::optional<History::Vf> Telemetry::Known(const std::string& name) {
  const auto gone = std::find_if(gone_.rbegin(), gone_.rend(), [&](const auto& vf) { return vf.name == name; });
  if (gone != gone_.rend()) return gone->destroyed ? std::nullopt : std::optional(*gone);
  if (!history_) return std::nullopt;
  auto known = history_->Find(name);
  if (known) return std::move(*known);
  Failed(known.error());
  return std::nullopt;
}

Uuid Telemetry::UuidFor(const std::string& name) {
  const auto known = Known(name);
  const auto uuid = known ? UuidFromText(known->uuid) : std::nullopt;
  return uuid ? *uuid : RandomUuid();
}

void Telemetry::Joined(VfId vf, const std::string& name, const Uuid& uuid) {
  Life life;
  life.name = name;
  life.uuid = ToText(uuid);
  life.key = next_key_++;
  life.since = Now();
  if (const auto known = Known(name); known && known->uuid == life.uuid) life.past = known->usage;
  std::erase_if(gone_, [&](const History::Vf& gone) { return gone.uuid == life.uuid; });
  lives_.insert_or_assign(vf, std::move(life));
  if (lives_.size() == 1) LookAround();
}

void Telemetry::Left(VfId vf, const GpuThread::VfStats& last) {
  if (const auto it = lives_.find(vf); it != lives_.end()) AddUsage(it->second.past, last);
}

void Telemetry::Removed(VfId vf, bool destroyed) {
  const auto it = lives_.find(vf);
  if (it == lives_.end()) return;
  const Life& life = it->second;
  if (history_) RememberGone({life.uuid, life.name, life.past, destroyed});
  tenures_.push_back({vf, life.name, life.since, Now()});
  lives_.erase(it);
  // Soon after the name may be taken by a VF that must not be mistaken for this one.
  if (destroyed) WriteNow([] {});
}

// While the disk is full they are kept until there is room; not without end, as anybody may create and destroy VFs.
void Telemetry::RememberGone(History::Vf vf) {
  gone_.push_back(std::move(vf));
  if (gone_.size() <= kMostGone) return;
  if (given_up_++ == 0)
    LOG(kError, "usage history {}: cannot be written and more than {} VFs are gone since: the oldest are given up",
        path_, kMostGone);
  gone_.pop_front();
}

void Telemetry::Finish(std::function<void()> done) { WriteNow(std::move(done)); }

std::vector<VfId> Telemetry::Ids() const {
  std::vector<VfId> ids;
  for (const auto& [vf, life] : lives_) ids.push_back(vf);
  return ids;
}

uint64_t Telemetry::KeyOf(VfId vf) const {
  const auto it = lives_.find(vf);
  return it != lives_.end() ? it->second.key : 0;
}

void Telemetry::AddPast(const std::vector<VfId>& vfs, GpuThread::Stats* stats) const {
  for (size_t i = 0; i < vfs.size(); ++i)
    if (const auto it = lives_.find(vfs[i]); it != lives_.end()) AddUsage(stats->vfs[i], it->second.past);
  stats->run_ns += past_gpu_.run_ns;
  stats->switch_ns += past_gpu_.switch_ns;
  stats->idle_ns += past_gpu_.idle_ns;
  stats->switches.Merge(past_gpu_.switches);
}

void Telemetry::LookAround() {
  if (lives_.empty()) return;
  look_timer_->Arm(kLookEvery);
  std::vector<VfId> ids = Ids();
  std::vector<uint64_t> keys;
  for (const VfId vf : ids) keys.push_back(KeyOf(vf));
  const uint64_t appended = gpu_.trace().appended();
  gpu_.ReadAccounts(std::move(ids), [this, keys, appended](TimePoint now, const std::vector<VfAccount>& accounts) {
    std::vector<FairnessWindow::Sample> samples;
    for (size_t i = 0; i < keys.size(); ++i) samples.push_back({keys[i], accounts[i]});
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

std::vector<Telemetry::Window> Telemetry::Fairness() const {
  std::vector<Window> windows;
  windows.push_back({"1s", second_.Judge()});
  windows.push_back({"60s", minute_.Judge()});
  return windows;
}

std::shared_ptr<TraceDump> Telemetry::DumpTrace(const std::string& gpu, Ns length) const {
  const TimePoint zero = Now() - length;
  std::vector<Tenure> tenures(tenures_.begin(), tenures_.end());
  for (const auto& [vf, life] : lives_) tenures.push_back({vf, life.name, life.since});
  std::sort(tenures.begin(), tenures.end(), [](const Tenure& a, const Tenure& b) { return a.from < b.from; });
  uint64_t first = 0;
  for (const Look& look : looks_)
    if (look.at <= zero) first = look.appended;
  return std::make_shared<TraceDump>(gpu_.trace(), gpu, std::move(tenures), zero, first);
}

void Telemetry::WriteAt(int64_t unix_seconds, std::function<void()> done) {
  if (!history_) return done();
  std::vector<VfId> ids = Ids();
  gpu_.ReadStats(ids, [this, ids, unix_seconds, done = std::move(done)](const GpuThread::Stats& stats) {
    Write(ids, stats, unix_seconds);
    done();
  });
}

void Telemetry::Write(const std::vector<VfId>& vfs, GpuThread::Stats stats, int64_t unix_seconds) {
  if (!history_) return;
  AddPast(vfs, &stats);
  std::vector<History::Vf> rows(gone_.begin(), gone_.end());
  std::vector<VfId> live;
  for (size_t i = 0; i < vfs.size(); ++i) {
    const auto it = lives_.find(vfs[i]);
    if (it == lives_.end()) continue;
    const VfAccount& account = stats.vfs[i].account;
    // One that neither ran nor waited has nothing new; without any turn it is written, to be found again.
    if (account.slices == it->second.written_turns && account.waited_ns == it->second.written_waited_ns &&
        account.slices != 0)
      continue;
    rows.push_back({it->second.uuid, it->second.name, stats.vfs[i], false});
    live.push_back(vfs[i]);
  }
  const History::Gpu gpu{stats.run_ns, stats.switch_ns, stats.idle_ns, stats.switches};
  if (auto written = history_->Write(rows, gpu, unix_seconds); !written) return Failed(written.error());
  gone_.clear();
  for (size_t i = 0, row = rows.size() - live.size(); i < live.size(); ++i, ++row) {
    Life& life = lives_.at(live[i]);
    life.written_turns = rows[row].usage.account.slices;
    life.written_waited_ns = rows[row].usage.account.waited_ns;
  }
  if (std::exchange(state_, kOn) == kFailing)
    LOG(kInfo, "usage history {}: written again, {}", path_,
        given_up_ == 0 ? "nothing is lost" : fmt::format("without {} VFs that had gone meanwhile", given_up_));
  given_up_ = 0;
  error_.clear();
}

void Telemetry::Failed(const Error& error) {
  const bool known = error_ == error.context;
  error_ = error.context;
  if (error.code == std::errc::bad_message) {
    history_.reset();
    gone_.clear();
    state_ = kOff;
    LOG(kError, "{}; running on without it", error_);
    return;
  }
  state_ = kFailing;
  if (!known) LOG(kError, "{}; tried again every {} ms", error_, options_.write_every / std::chrono::milliseconds{1});
}

void Telemetry::Report(const std::string& day, std::function<void(Result<std::vector<History::Day>>)> done) {
  WriteNow([this, day, done = std::move(done)] { done(ReadDay(day)); });
}

Result<std::vector<History::Day>> Telemetry::ReadDay(const std::string& day) {
  if (!history_) return Fail(std::errc::no_such_device, error_);
  return history_->Report(day, day);
}

}  // namespace vgpud
