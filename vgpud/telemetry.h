// What the daemon knows about the past: the figures of earlier runs, the fairness of the last second and minute, the
// last turns, the usage history. Looks at the scheduler thread ten times a second while there are VFs, and writes the
// history every few seconds and at the end. Main thread.
//
// Nothing here can stop the GPU service: without a usable history the daemon runs on and says so.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "sched/fairness.h"
#include "vgpud/gpu_thread.h"
#include "vgpud/history.h"
#include "vgpud/trace_dump.h"
#include "vgpud/uuid.h"

namespace vgpud {

class Telemetry {
 public:
  struct Options {
    std::string state_dir;  // made if it is not there
    Ns write_every = std::chrono::seconds{5};
    std::function<int64_t()> unix_seconds;  // what day it is; default: the system's clock
  };
  // `loop` and `gpu` outlive this.
  Telemetry(EventLoop& loop, GpuThread& gpu, Options options);
  ~Telemetry();
  Telemetry(const Telemetry&) = delete;
  Telemetry& operator=(const Telemetry&) = delete;

  // The life of a VF. The UUID of the VF of that name that was there when the last daemon ended, or a new one.
  Uuid UuidFor(const std::string& name);
  // It exists from now on; its turns and figures are its own.
  void Joined(VfId vf, const std::string& name, const Uuid& uuid);
  // It has left the rotation with these figures.
  void Left(VfId vf, const GpuThread::VfStats& last);
  // It is gone; `destroyed` by an operator: the next one of that name is another VF.
  void Removed(VfId vf, bool destroyed);
  // The daemon is about to end and all VFs have left: `done` when all is written.
  void Finish(std::function<void()> done);

  // Adds what earlier runs counted. `vfs`: whose figures stats.vfs are.
  void AddPast(const std::vector<VfId>& vfs, GpuThread::Stats* stats) const;

  struct Window {
    const char* name;  // "1s"
    FairnessWindow::Figures figures;
  };
  // Of the last second and minute.
  std::vector<Window> Fairness() const;
  // Whose part in such a window is whose.
  uint64_t KeyOf(VfId vf) const;

  struct HistoryState {
    const char* name = "off";  // on; failing: it is tried again; off: until vgpud is restarted
    std::string error;         // empty: none
    std::string path;
  };
  HistoryState history_state() const { return {kStateNames[state_], error_, path_}; }
  // Brings the history up to date and reads it.
  void Report(const std::string& day, std::function<void(Result<std::vector<History::Day>>)> done);
  // What it has of that day.
  Result<std::vector<History::Day>> ReadDay(const std::string& day);

  // The turns of the last `length`.
  std::shared_ptr<TraceDump> DumpTrace(const std::string& gpu, Ns length) const;

 private:
  enum State { kOn, kFailing, kOff };
  static constexpr const char* kStateNames[] = {"on", "failing", "off"};
  struct Life {
    std::string name;
    std::string uuid;
    uint64_t key = 0;
    GpuThread::VfStats past;     // of earlier runs, and all once it has left
    uint64_t written_turns = 0;  // what the history has
    uint64_t written_waited_ns = 0;
    TimePoint since{};
  };
  struct Look {
    TimePoint at{};
    uint64_t appended = 0;  // turns so far
  };
  std::vector<VfId> Ids() const;
  void OpenHistory(const std::string& state_dir);
  void LookAround();
  std::optional<History::Vf> Known(const std::string& name);
  void ArmWriter();
  int64_t WhatDay() const;
  void WriteAt(int64_t unix_seconds, std::function<void()> done);
  void WriteNow(std::function<void()> done) { WriteAt(WhatDay(), std::move(done)); }
  void Write(const std::vector<VfId>& vfs, GpuThread::Stats stats, int64_t unix_seconds);
  void Failed(const Error& error);
  void Forget(TimePoint before);
  void RememberGone(History::Vf vf);

  EventLoop& loop_;
  GpuThread& gpu_;
  const Options options_;
  std::map<VfId, Life> lives_;
  std::deque<History::Vf> gone_;  // and not written yet, kMostGone at most
  uint64_t given_up_ = 0;         // of them, since the history could be written last
  std::deque<Tenure> tenures_;    // of VFs that are gone, as far as the trace may show them
  uint64_t next_key_ = 1;
  FairnessWindow second_{std::chrono::seconds{1}, std::chrono::milliseconds{100}};
  FairnessWindow minute_{std::chrono::seconds{60}, std::chrono::seconds{1}};
  std::deque<Look> looks_;
  std::unique_ptr<History> history_;
  History::Gpu past_gpu_;
  State state_ = kOff;
  std::string error_;
  std::string path_;
  int64_t armed_at_ = 0;  // write_timer_, by options_.unix_seconds
  EventLoop::WatchPtr look_timer_;
  EventLoop::WatchPtr write_timer_;
};

}  // namespace vgpud
