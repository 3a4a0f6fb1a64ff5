// SPDX-License-Identifier: Apache-2.0
// What the daemon knows about the past: the figures of earlier runs, the fairness of the last second and minute, the
// last turns, the usage history. Looks at the scheduler thread ten times a second, twice while all VFs are at rest, and
// writes the history every few seconds and at the end. Main thread.
//
// Nothing here can stop the GPU service: without a usable history the daemon runs on and says so.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "sched/fairness.h"
#include "vgpud/gpu/gpu_thread.h"
#include "vgpud/gpu/trace_dump.h"
#include "vgpud/history/history_keeper.h"
#include "vgpud/history/last_second.h"
#include "vgpud/model/uuid.h"
#include "vgpud/model/vf_domain.h"

namespace vgpud::daemon {

class Telemetry {
 public:
  struct Options {
    std::string state_dir;  // made if it is not there
    Ns write_every = std::chrono::seconds{5};
    Ns write_spacing = std::chrono::seconds{1};  // between writes that somebody asked for
    std::function<int64_t()> unix_seconds;       // what day it is; default: the system's clock
    Ns open_limit = std::chrono::seconds{10};
    Ns finish_limit = std::chrono::seconds{3};
  };
  // `loop`, `gpu` and `replies`, which is of this thread, outlive this. Waits for the disk, at most open_limit.
  Telemetry(EventLoop& loop, GpuThread& gpu, TaskQueue& replies, Options options);
  ~Telemetry();
  Telemetry(const Telemetry&) = delete;
  Telemetry& operator=(const Telemetry&) = delete;

  // The life of a VF. The UUID of the VF of that name that was there when the last daemon ended, or a new one.
  Uuid UuidFor(const std::string& name);
  // The same without a new one.
  std::optional<Uuid> KnownUuid(const std::string& name);
  // It exists from now on; its turns and figures are its own.
  // `users`: who made it (tenants/owner.h). `past`: what was counted of it before, if somebody knows that better than
  // the history.
  void Joined(VfId vf, const std::string& name, const Uuid& uuid, const std::optional<VfStats>& past = {},
              const std::string& tenant = {}, const std::string& users = {});
  // Whose it is, in traces and in the history.
  void SetDomain(VfId vf, const VfDomain& domain);
  VfStats PastOf(VfId vf) const;
  // It has left the rotation with these figures.
  void Left(VfId vf, const VfStats& last);
  // It is gone; `destroyed` by an operator: the next one of that name is another VF.
  void Removed(VfId vf, bool destroyed);
  // The daemon is about to end and all VFs have left: `done` when all is written, at the latest after finish_limit.
  void Finish(std::function<void()> done);
  // Closes the history, waiting at most so long for the disk (history_keeper.h).
  void Leave(Ns limit) { (void)history_.Leave(limit); }

  // Adds what earlier runs counted. `vfs`: whose figures stats.vfs are.
  void AddPast(const std::vector<VfId>& vfs, GpuStats* stats) const;

  // Of the last second and minute.
  std::vector<FairnessReport> Fairness() const;
  // What was done during the last second, moved at each look. Of a VF by its KeyOf.
  const LastSecond& last_second() const { return last_second_; }
  // Whose part in such a window is whose.
  uint64_t KeyOf(VfId vf) const;

  HistoryState history_state() const { return history_.state(); }
  // Brings the history up to date: what was used until now is in what is read when `done` is called. One write serves
  // all that ask within write_spacing. `done` at once, without a write, when the disk hangs or too many wait.
  void Refresh(std::function<void()> done);
  void Read(const HistoryKeeper::Query& query, HistoryKeeper::Render render,
            std::function<void(Result<HistoryKeeper::Page>)> done) {
    history_.Read(query, std::move(render), std::move(done));
  }

  // The turns of the last `length`.
  std::shared_ptr<TraceDump> DumpTrace(const std::string& gpu, Ns length) const;

 private:
  struct Life {
    std::string name;
    std::string uuid;
    std::string tenant;
    std::string users;
    VfDomain domain;
    bool is_new = false;  // nothing was counted of it before
    uint64_t key = 0;
    VfStats past;                // of earlier runs, and all once it has left
    uint64_t written_turns = 0;  // what the history has
    uint64_t written_waited_ns = 0;
    TimePoint since{};
  };
  struct Look {
    TimePoint at{};
    uint64_t appended = 0;  // turns so far
  };
  std::vector<VfId> Ids() const;
  void LookAround();
  void ArmWriter();
  int64_t WhatDay() const;
  // `done`, if any, when all that is there now is written, or failed.
  void WriteAt(int64_t unix_seconds, std::function<void()> done);
  void WriteNow(std::function<void()> done) { WriteAt(WhatDay(), std::move(done)); }
  // The same, with all others that want that until then; not within write_spacing of the last write.
  void WriteSoon(std::function<void()> done);
  void WriteForAll();
  void Write(const std::vector<VfId>& vfs, GpuStats stats, int64_t unix_seconds);
  void Wrote(const std::map<std::string, VfAccount>& written);
  void Forget(TimePoint before);

  EventLoop& loop_;
  GpuThread& gpu_;
  const Options options_;
  std::map<VfId, Life> lives_;
  std::deque<Tenure> tenures_;  // of VFs that are gone, as far as the trace may show them
  uint64_t next_key_ = 1;
  FairnessWindow second_{std::chrono::seconds{1}, std::chrono::milliseconds{100}};
  FairnessWindow minute_{std::chrono::seconds{60}, std::chrono::seconds{1}};
  LastSecond last_second_;
  std::deque<Look> looks_;
  uint64_t counted_ = 0;  // time of all VFs on the GPU and with work, at the last look
  bool at_rest_ = false;  // nobody had either since the look before
  HistoryKeeper history_;
  bool writing_ = false;                        // or about to
  std::vector<std::function<void()>> awaited_;  // who waits for what is being written
  std::vector<std::function<void()>> next_;     // and for the write after it
  std::optional<int64_t> next_at_;              // if there is to be one: what time it is about
  std::vector<std::function<void()>> soon_;     // who waits for WriteForAll
  bool writes_soon_ = false;                    // soon_timer_ is armed
  TimePoint wrote_{};                           // when the last write began
  int64_t armed_at_ = 0;                        // write_timer_, by options_.unix_seconds
  EventLoop::WatchPtr look_timer_;
  EventLoop::WatchPtr write_timer_;
  EventLoop::WatchPtr soon_timer_;
  EventLoop::WatchPtr finish_timer_;
};

}  // namespace vgpud::daemon
