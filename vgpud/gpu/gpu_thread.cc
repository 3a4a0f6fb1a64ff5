// SPDX-License-Identifier: Apache-2.0
#include "vgpud/gpu/gpu_thread.h"

#include <pthread.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "vgpud/gpu/vf_ledger.h"

namespace vgpud::daemon {
namespace {

// A drain that outlasts its spin is looked at this often: executors signal their stop, but a dead one cannot.
constexpr Ns kDrainLook{200'000};
// How often one looks at a VF that has work to come, and whose bell cannot be heard.
constexpr Ns kMutedLook{200'000};
constexpr Ns kUnheardLook{1'000'000};
// How long one looks for more work of the VF on the GPU before one sleeps until its bell rings.
constexpr Ns kCloseLook{50'000};

// std::function wants copyable callables.
template <class T>
std::shared_ptr<T> Share(T value) {
  return std::make_shared<T>(std::move(value));
}

uint64_t& At(std::vector<uint64_t>& counts, VfId vf) {
  if (Raw(vf) >= counts.size()) counts.resize(Raw(vf) + size_t{1});
  return counts[Raw(vf)];
}

}  // namespace

GpuThread::GpuThread(const Options& options, std::unique_ptr<Policy> policy, Events events, TaskQueue& replies)
    : options_(options),
      replies_(replies),
      on_left_(events.on_left),
      channels_(options.channel_turns ? std::make_unique<ChannelWorker>(*options.channel_turns, [this] { WakeUp(); })
                                      : nullptr),
      waiter_(options.waiter),
      policy_(std::move(policy)),
      world_(options.switcher.preempt_timeout,
             {.at_boundary = [this](TimePoint now) { OnBoundary(now); },
              .wants_boundary = [this] { return !at_boundary_.empty(); },
              .on_killed = [this, f = events.on_killed](
                               VfId vf, const std::string& name,
                               const SliceWorld::Hang& hang) { replies_.Post([=] { f(vf, name, hang); }); },
              .on_parked = [this, f = events.on_parked](VfId vf) { Parked(vf, f); }}),
      trace_(options.trace_slices),
      switcher_(world_, *policy_, options.switcher),
      tasks_([this] { WakeUp(); }),
      thread_([this] { Main(); }) {}

GpuThread::~GpuThread() {
  stop_.store(true);
  WakeUp();
  thread_.join();
}

void GpuThread::WakeUp() {
  calls_.fetch_add(1, std::memory_order_seq_cst);
  FutexWakeAll(&calls_);
}

void GpuThread::AtBoundary(BoundaryTask task) {
  tasks_.Post([this, task = std::move(task)] { at_boundary_.push_back(task); });
}

void GpuThread::OnBoundary(TimePoint now) {
  if (const uint64_t turns = world_.turns(); turns != 0)
    switch_cost_ns_.store(static_cast<int64_t>(switcher_.AccountAt(now).switch_ns() / turns),
                          std::memory_order_relaxed);
  (void)CollectOne();
  std::vector<BoundaryTask> tasks;
  tasks.swap(at_boundary_);
  for (const auto& task : tasks) task(now);
}

void GpuThread::Answer(const Done& done) {
  replies_.Post([done, round = policy_->round()] { done(round); });
}

void GpuThread::TakeTheGpuFrom(VfId vf) {
  tasks_.Post([this, vf] {
    if (switcher_.current() == vf) switcher_.Revoke(Now());
  });
}

void GpuThread::AddVf(const VfView& view, const std::string& name, SliceMemory slices, Done done,
                      std::shared_ptr<VfLedger> ledger) {
  tasks_.Post([this, vf = view.vf, name, ledger, shared = Share(std::move(slices))] {
    world_.Add(vf, name, std::move(*shared));
    if (ledger == nullptr) return;
    world_.SetParked(vf, ledger->parked());
    if (const auto last = ledger->Read()) {
      world_.SetCounted(vf, last->counted, last->at_ns);
      std::vector<TimePoint> hangs;
      for (const uint64_t ns : last->hung_at_ns)
        if (ns != 0) hangs.push_back(TimePoint{Ns{static_cast<int64_t>(ns)}});
      switcher_.SetHangs(vf, hangs);
    }
    if (Raw(vf) >= ledgers_.size()) ledgers_.resize(Raw(vf) + size_t{1});
    ledgers_[Raw(vf)] = ledger;
  });
  AtBoundary([this, view, ledger, done = std::move(done)](TimePoint now) {
    world_.Join(view);
    if (const auto last = ledger != nullptr ? ledger->Read() : std::nullopt)
      policy_->Resume(view, Ns{static_cast<int64_t>(last->now.debt_ns)}, last->round, now);
    WriteLedger(view.vf, now);
    Answer(done);
  });
}

void GpuThread::Hold() {
  tasks_.Post([this] { world_.Hold(true); });
}

void GpuThread::Release() {
  AtBoundary([this](TimePoint) { world_.Hold(false); });
}

void GpuThread::WriteLedger(VfId vf, TimePoint now) {
  if (Raw(vf) >= ledgers_.size() || ledgers_[Raw(vf)] == nullptr) return;
  VfLedger::Entry entry;
  entry.now = LastOf(vf, now);
  entry.round = policy_->round();
  entry.at_ns = ToNs(now);
  entry.counted = world_.CountedOf(vf);
  const std::span<const TimePoint> hangs = switcher_.HangsOf(vf);
  const auto last = hangs.last(std::min(hangs.size(), entry.hung_at_ns.size()));
  std::transform(last.begin(), last.end(), entry.hung_at_ns.begin(), [](TimePoint at) { return ToNs(at); });
  ledgers_[Raw(vf)]->Write(entry);
}

// Whose turn has ended, who has the GPU now, and one of the others in turn.
void GpuThread::WriteLedgers() {
  const uint64_t turns = trace_.appended();
  if (ledgers_.empty() || turns == ledger_turns_) return;
  ledger_turns_ = turns;
  const TimePoint now = Now();
  const VfId before = std::exchange(ledger_vf_, switcher_.current());
  WriteLedger(before, now);
  const VfId other{static_cast<uint32_t>(turns % ledgers_.size())};
  if (other != before) WriteLedger(other, now);
}

void GpuThread::Apply(Change change, Done done) {
  if (change.policy != nullptr && change.policy->Forced()) tasks_.Post([this] { switcher_.ExpectForce(Now()); });
  const std::vector<VfView> vfs = change.vfs;
  AtBoundary([this, shared = Share(std::move(change)), done = std::move(done)](TimePoint now) {
    if (shared->policy != nullptr) {
      switcher_.SetPolicy(*shared->policy, now);
      policy_.swap(shared->policy);  // the old one goes with this task
    } else if (shared->options) {
      policy_->SetOptions(*shared->options, now);
    }
    for (const VfView& view : shared->vfs) world_.Change(view);
    Answer(done);
  });
  for (const VfView& view : vfs)
    if (view.paused) TakeTheGpuFrom(view.vf);
}

void GpuThread::RemoveVf(VfId vf, Done done) {
  AtBoundary([this, vf, done = std::move(done)](TimePoint now) {
    while (CollectOne()) {
    }
    if (on_left_) replies_.Post([this, vf, last = LastOf(vf, now)] { on_left_(vf, last); });
    world_.Remove(vf);
    switcher_.Forget(vf);
    if (Raw(vf) < ledgers_.size()) ledgers_[Raw(vf)].reset();
    Answer(done);
  });
  TakeTheGpuFrom(vf);
}

// A parking that the main thread finds in its queue after it asked for a pardon is one that the pardon undoes.
void GpuThread::Parked(VfId vf, const std::function<void(VfId)>& on_parked) {
  replies_.Post([this, vf, on_parked, pardons = At(pardons_done_, vf)] {
    if (pardons == At(pardons_asked_, vf)) on_parked(vf);
  });
}

void GpuThread::Reinstate(VfId vf, Done done) {
  ++At(pardons_asked_, vf);
  AtBoundary([this, vf, done = std::move(done)](TimePoint) {
    world_.SetParked(vf, false);
    switcher_.Reinstate(vf);
    ++At(pardons_done_, vf);
    Answer(done);
  });
}

void GpuThread::AddExecutor(VfId vf, uint32_t slot, SliceWorld::Executor executor) {
  tasks_.Post(
      [this, vf, slot, shared = Share(std::move(executor))] { world_.AddExecutor(vf, slot, std::move(*shared)); });
}

void GpuThread::RemoveExecutor(VfId vf, uint32_t slot, uint64_t generation) {
  tasks_.Post([=, this] { world_.RemoveExecutor(vf, slot, generation); });
}

void GpuThread::AddChannels(VfId vf, uint32_t slot, uint64_t generation, ChannelSource source) {
  tasks_.Post([=, this, shared = Share(channels_->Add(std::move(source)))] {
    world_.SetChannels(vf, slot, generation, std::move(*shared));
  });
}

void GpuThread::ReadStats(std::vector<VfId> vfs, std::function<void(const GpuStats&)> done) {
  auto collection = Share(Collection{std::move(vfs), std::move(done), {}, 0});
  collection->stats.vfs.resize(collection->vfs.size());
  tasks_.Post([this, collection = std::move(collection)] { Collect(collection); });
}

void GpuThread::ReadAccounts(std::vector<VfId> vfs, std::function<void(const GpuAccounts&)> done) {
  tasks_.Post([this, vfs = std::move(vfs), done = std::move(done)] {
    const TimePoint now = Now();
    const Account& account = switcher_.AccountAt(now);
    GpuAccounts accounts{now, {account.run_ns(), account.switch_ns(), account.idle_ns(), account.stall_ns()}, {}};
    for (const VfId vf : vfs) accounts.vfs.push_back(account.Of(vf));
    replies_.Post([done, accounts = std::move(accounts)] { done(accounts); });
  });
}

void GpuThread::CollectVf(VfId vf, VfStats* stats) {
  stats->times = switcher_.AccountAt(Now()).TimesOf(vf);
  stats->work = world_.WorkOf(vf);
  stats->latency = world_.LatencyOf(vf);
  stats->conduct = world_.ConductOf(vf);
  stats->late = world_.LateOf(vf);
  stats->channels = world_.ChannelsOf(vf);
}

VfStats GpuThread::LastOf(VfId vf, TimePoint now) {
  VfStats stats;
  stats.account = switcher_.AccountAt(now).Of(vf);
  stats.debt_ns = static_cast<uint64_t>(policy_->Debt(vf).count());
  CollectVf(vf, &stats);
  return stats;
}

void GpuThread::Collect(std::shared_ptr<Collection> collection) {
  const TimePoint now = Now();
  const Account& account = switcher_.AccountAt(now);
  GpuStats& stats = collection->stats;
  stats.now_ns = ToNs(now);
  stats.round = policy_->round();
  stats.switch_ns = account.switch_ns();
  stats.idle_ns = account.idle_ns();
  stats.run_ns = account.run_ns();
  stats.stall_ns = account.stall_ns();
  stats.leaving_ns = account.leave_ns();
  stats.impossible_events = switcher_.impossible_events();
  stats.switches = account.switches();
  stats.slice_ends = world_.slice_ends();
  stats.wake_ups = waiter_.wake_ups().late();
  stats.spin = waiter_.Spin(switcher_.slice());
  stats.fifo = is_fifo();
  for (size_t i = 0; i < collection->vfs.size(); ++i) {
    stats.vfs[i].account = account.Of(collection->vfs[i]);
    stats.vfs[i].debt_ns = static_cast<uint64_t>(policy_->Debt(collection->vfs[i]).count());
  }
  collecting_.push_back(std::move(collection));
}

bool GpuThread::CollectOne() {
  if (collecting_.empty()) return false;
  Collection& first = *collecting_.front();
  if (first.next < first.vfs.size()) {
    CollectVf(first.vfs[first.next], &first.stats.vfs[first.next]);
    WriteLedger(first.vfs[first.next], Now());  // what was reported never goes back, should this vgpud be killed now
    ++first.next;
  }
  if (first.next < first.vfs.size()) return true;
  // The main thread frees it.
  replies_.Post([done = std::move(collecting_.front())] { done->done(done->stats); });
  collecting_.erase(collecting_.begin());
  return true;
}

// Not while a switch is under way, nor shortly before the end of a slice.
bool GpuThread::TimeToCollect() const {
  const WsState state = switcher_.state();
  if (state == WsState::kRun) return switcher_.NextPoll() - Now() > 2 * waiter_.Spin(switcher_.slice());
  return state == WsState::kOff || state == WsState::kFinish;
}

void GpuThread::Prepare() {
  pthread_setname_np(pthread_self(), options_.thread_name.substr(0, 15).c_str());
  waiter_.Prepare();
  fifo_.store(waiter_.fifo());
  own_cpu_.store(waiter_.cpu());
  if (waiter_.cpu() >= 0) world_.SetSchedulerCpu(static_cast<uint32_t>(waiter_.cpu()) + 1);
}

void GpuThread::Main() {
  Prepare();
  switcher_.SetTrace(&trace_);
  if (options_.on_cpu) world_.ComputesOnCpu();
  while (!stop_.load()) {
    // Whoever rings after this ends the next sleep: first listen, then look.
    calls_seen_ = calls_.load(std::memory_order_seq_cst);
    const VfId listened_to = switcher_.current();
    bell_ = world_.Bell(listened_to, Now());
    tasks_.RunAll();
    while (switcher_.PollOnce(Now())) {
    }
    if (options_.shares_card) world_.ShareCard();
    WriteLedgers();
    if (TimeToCollect() && CollectOne()) continue;
    if (switcher_.state() != WsState::kOff && switcher_.current() != listened_to) continue;
    Wait();
  }
  switcher_.Revoke(Now());
}

void GpuThread::Wait() {
  const WsState state = switcher_.state();
  if (state != waited_in_) busy_since_ = Now();
  waited_in_ = state;
  if (state == WsState::kOff) return WaitForWork();

  const TimePoint next = switcher_.NextPoll();
  if (state == WsState::kRun) {
    return next < switcher_.slice_end() ? WaitForMore(next) : WaitForTurn(next);
  }
  const TimePoint now = Now();
  if (now - busy_since_ < waiter_.Spin(switcher_.slice())) return Relax();
  bells_ = {{&calls_, calls_seen_}};
  if (bell_.word != nullptr) bells_.push_back(bell_);
  Woken(waiter_.UntilEvent(std::min(next, now + kDrainLook), bells_));
}

// The VF on the GPU has nothing to do. At first it is watched closely: most programs are back soon, and to ring for
// them would take as long. The program of one that is not may need this CPU.
void GpuThread::WaitForMore(TimePoint next) {
  const Ns close = switcher_.others_wait() ? kCloseLook : 2 * kCloseLook;
  if (Now() - switcher_.idle_since() < close) return Relax();
  const VfId vf = switcher_.current();
  world_.WatchForWork(vf, true);
  bells_ = {{&calls_, calls_seen_}};
  if (bell_.word != nullptr) bells_.push_back(bell_);
  const TimePoint wake = bell_.word != nullptr ? next : std::min(next, Now() + kMutedLook);
  if (!world_.HasWork(vf)) Woken(waiter_.UntilEvent(wake, bells_));
  world_.WatchForWork(vf, false);
}

void GpuThread::Woken(std::optional<size_t> bell) {
  if (bell && *bell != 0) world_.Woken(bells_[*bell].word);  // the first is our own
}

void GpuThread::WaitForTurn(TimePoint next) {
  if (switcher_.stays()) return WaitForOthers(next);
  // After a gap a short kernel may follow, and another gap: to sleep and be rung for would take as long. Whoever has
  // the GPU to himself is spared that; beside others his program needs this CPU more.
  if (!switcher_.others_wait() && Now() - switcher_.back_since() < kCloseLook) return Relax();
  bells_ = {{&calls_, calls_seen_}};
  if (bell_.word != nullptr) bells_.push_back(bell_);
  if (world_.someone_wants_memory()) (void)world_.AllBells(Now(), &bells_, switcher_.current());
  const TimePoint look = Now() + kMutedLook;
  if (bell_.word == nullptr && look + waiter_.Spin(switcher_.slice()) < next)
    return Woken(waiter_.UntilEvent(look, bells_));
  Woken(waiter_.UntilDeadline(next, switcher_.slice(), bells_));
}

// Nobody waits for the end of the slice: it may be seen late. Who comes rings, and so does the VF itself when it has
// had nothing to do.
void GpuThread::WaitForOthers(TimePoint next) {
  const VfId vf = switcher_.current();
  world_.WatchForWork(true, vf);
  if (switcher_.rests()) {
    world_.WatchForWork(vf, true);
    waiter_.Rest();
  }
  bells_ = {{&calls_, calls_seen_}};
  if (bell_.word != nullptr) bells_.push_back(bell_);
  const bool all = world_.AllBells(Now(), &bells_, vf) && bell_.word != nullptr;
  const bool same = world_.MayStay(vf) && (!switcher_.rests() || !world_.HasWork(vf));
  if (same) Woken(waiter_.UntilEvent(all ? next : std::min(next, Now() + kUnheardLook), bells_));
  world_.WatchForWork(false, vf);
  world_.WatchForWork(vf, false);
}

// It is nobody's turn, until somebody gets work or the policy wants to be asked again. Order matters: first ask to be
// told, then look once more, then sleep.
void GpuThread::WaitForWork() {
  if (!at_boundary_.empty()) return;
  world_.WatchForWork(true);
  bells_ = {{&calls_, calls_seen_}};
  const bool all = world_.AllBells(Now(), &bells_);
  if (!world_.WorkChanged() && tasks_.empty()) {
    waiter_.Rest();
    const TimePoint wake = all ? switcher_.NextPoll() : std::min(switcher_.NextPoll(), Now() + kUnheardLook);
    Woken(waiter_.UntilEvent(wake, bells_));
  }
  world_.WatchForWork(false);
}

}  // namespace vgpud::daemon
