// SPDX-License-Identifier: Apache-2.0
// A GPU with virtual time for scheduler tests: VFs that bring work at given moments, overrun their slices by given
// amounts, hang in given states. Records every turn. Checks by itself that no two worlds ever run.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "base/check.h"
#include "sched/strict.h"
#include "sched/switcher.h"

namespace vgpud {

inline constexpr Ns kEndless = std::chrono::hours{24 * 365};

// What all uses of the GPU add up to.
inline uint64_t AllTime(const Account& account) {
  return account.run_ns() + account.switch_ns() + account.idle_ns() + account.stall_ns() + account.leave_ns();
}

class SimWorlds final : public WorldBackend {
 public:
  struct Arrival {
    Ns at{0};  // since the start
    Ns work{0};
  };
  struct SimVf {
    VfView view;
    Ns work{0};                     // left to do
    std::vector<Arrival> arrivals;  // in time order
    std::vector<Ns> overruns;       // of its turns in a row, repeated; empty = none. Without force: rest of the kernel
    // A program that waits for each kernel: `kernel` of work again so long after the one before, the times in a row,
    // repeated. It begins with `work`.
    Ns kernel{0};
    std::vector<Ns> thinks;
    size_t kernels = 0;  // that have ended
    std::optional<TimePoint> next_kernel;
    bool parked = false;
    size_t turns = 0;
    Ns served{0};
    std::optional<TimePoint> waiting_since;
    Ns worst_wait{0};
  };
  struct Turn {
    VfId vf{};
    TimePoint start{};
    TimePoint end{};
    Ns debt_before{0};  // in the policy's books, after the pick
    bool operator==(const Turn&) const = default;
  };

  explicit SimWorlds(TimePoint start) : start_(start), now_(start) {}

  SimVf& Add(uint32_t weight, Ns work, Ns slice = Ns{0}) {
    SimVf vf;
    vf.view = {VfId{static_cast<uint32_t>(vfs_.size())}, weight, slice, false};
    vf.work = work;
    vfs_.push_back(vf);
    return vfs_.back();
  }
  SimVf& vf(size_t i) { return vfs_[i]; }
  size_t size() const { return vfs_.size(); }
  const std::vector<Turn>& turns() const { return turns_; }
  TimePoint now() const { return now_; }

  Ns switch_cost{0};
  std::optional<WsState> hung_in;  // Complete never comes there until an FLR
  bool flr_hangs = false;
  bool excused = false;      // the answer of Excused
  bool left_behind = false;  // the answer of LeaveBehind
  Ns host_delay{0};          // the answer of HostDelay
  bool may_idle = false;     // with somebody runnable: limits
  int flrs = 0;
  int parks = 0;
  TimePoint last_deadline{};  // as given to Run
  std::function<void()> at_boundary;

  // Of all tests of the process.
  static uint64_t& steps() {
    static uint64_t count = 0;
    return count;
  }

  // Lets `length` of virtual time pass.
  void Drive(Switcher& switcher, Ns length) {
    const TimePoint end = now_ + length;
    while (now_ < end) {
      Arrive();
      switcher.Poll(now_);
      CHECK(may_idle || switcher.state() != WsState::kOff || !AnyRunnable());
      steps() += 1;
      const TimePoint next = std::min({switcher.NextPoll(), NextChange(), end});
      Pass(std::max(next, now_ + Ns{1}));
    }
  }

  std::span<const VfView> TurnBoundary(TimePoint) override {
    CHECK(!running_);
    if (at_boundary) at_boundary();
    views_.clear();
    for (SimVf& v : vfs_) {
      v.view.runnable = v.work > Ns{0} && !v.parked && !v.view.paused;
      views_.push_back(v.view);
    }
    return views_;
  }
  bool HasWork(VfId vf) override { return At(vf).work > Ns{0}; }
  void Load(VfId) override {}
  void Run(VfId vf, TimePoint deadline) override {
    CHECK(!running_);
    last_deadline = deadline;
    running_ = vf;
    SimVf& v = At(vf);
    if (v.waiting_since) v.worst_wait = std::max(v.worst_wait, now_ - *v.waiting_since);
    v.waiting_since.reset();
    turns_.push_back({vf, now_, now_, Ns{0}});
  }
  void Finish(VfId vf) override {
    finished_at_ = now_ + NextOverrun(At(vf));
    finished_ = true;
  }
  void Drain(VfId vf) override {
    off_at_ = now_;
    if (!finished_) off_at_ += NextOverrun(At(vf));
    finished_ = false;
  }
  void Save(VfId) override {
    EndRunning();
    saved_at_ = now_ + switch_cost;
  }
  void Flr(VfId) override {
    ++flrs;
    hung_in.reset();
    if (!flr_hangs) EndRunning();
  }
  void Park(VfId vf) override {
    ++parks;
    EndRunning();
    At(vf).parked = true;
  }
  bool Complete(WsState state, VfId) override {
    if (hung_in == state) return false;
    if (state == WsState::kFinish) return now_ >= finished_at_ || At(*running_).work == Ns{0};
    if (state == WsState::kDrain) return now_ >= off_at_;
    if (state == WsState::kSave) return now_ >= saved_at_;
    if (state == WsState::kFlr) return !flr_hangs;
    return true;
  }

  bool Excused(VfId) override { return excused; }
  bool LeaveBehind(VfId) override { return left_behind; }
  Ns HostDelay(VfId) override { return host_delay; }

 private:
  SimVf& At(VfId vf) { return vfs_[Raw(vf)]; }
  bool AnyRunnable() const {
    return std::any_of(vfs_.begin(), vfs_.end(),
                       [](const SimVf& v) { return v.work > Ns{0} && !v.parked && !v.view.paused; });
  }
  void EndRunning() {
    if (!running_) return;
    turns_.back().end = now_;
    SimVf& v = At(*running_);
    running_.reset();
    if (v.work > Ns{0}) v.waiting_since = now_;
  }
  static Ns NextOverrun(SimVf& v) {
    const Ns overrun = v.overruns.empty() || v.work == Ns{0} ? Ns{0} : v.overruns[v.turns % v.overruns.size()];
    ++v.turns;
    return overrun;
  }
  void Arrive() {
    for (SimVf& v : vfs_) {
      while (!v.arrivals.empty() && start_ + v.arrivals.front().at <= now_) {
        if (v.work == Ns{0} && running_ != v.view.vf) v.waiting_since = now_;
        v.work += v.arrivals.front().work;
        v.arrivals.erase(v.arrivals.begin());
      }
      if (v.next_kernel && *v.next_kernel <= now_) {
        if (running_ != v.view.vf) v.waiting_since = now_;
        v.work = v.kernel;
        v.next_kernel.reset();
      }
    }
  }
  TimePoint NextChange() const {
    TimePoint next = TimePoint::max();
    const auto consider = [&](TimePoint t) {
      if (t > now_) next = std::min(next, t);
    };
    for (const SimVf& v : vfs_) {
      if (!v.arrivals.empty()) consider(start_ + v.arrivals.front().at);
      if (v.next_kernel) consider(*v.next_kernel);
      if (running_ == v.view.vf && v.work > Ns{0}) consider(now_ + v.work);
    }
    consider(finished_at_);
    consider(off_at_);
    consider(saved_at_);
    return next;
  }
  void Pass(TimePoint to) {
    if (running_) {
      SimVf& v = At(*running_);
      v.served += to - now_;
      const bool had_work = v.work > Ns{0};
      v.work = std::max(Ns{0}, v.work - (to - now_));
      if (had_work && v.work == Ns{0} && !v.thinks.empty())
        v.next_kernel = to + v.thinks[v.kernels++ % v.thinks.size()];
    }
    now_ = to;
  }

  const TimePoint start_;
  TimePoint now_;
  std::vector<SimVf> vfs_;
  std::vector<VfView> views_;
  std::vector<Turn> turns_;
  std::optional<VfId> running_;
  TimePoint finished_at_{};
  bool finished_ = false;  // this turn ended without force
  TimePoint off_at_{};
  TimePoint saved_at_{};
};

}  // namespace vgpud
