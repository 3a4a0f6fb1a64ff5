// SPDX-License-Identifier: Apache-2.0
// The usage history on a thread of its own, so that a disk that is slow, or hangs, delays nobody: nothing here waits
// for it but Open and Leave, which have a limit. At most one write is under way; what is not written yet is kept here,
// as far as there is room, and what has to be given up is counted. Main thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vgpud/history/history.h"
#include "vgpud/host/worker.h"
#include "vgpud/model/stats_report.h"

namespace vgpud::daemon {

class HistoryKeeper {
 public:
  static constexpr size_t kMostVfs = 2'000;  // that are known by name, and gone and not written; some 4 KiB each
  static constexpr size_t kMostReads = 64;   // that wait
  static constexpr Ns kHangs = std::chrono::seconds{2};  // a disk that has not answered for so long

  // `replies`: of the main thread; outlives this, and a thread that had to be left behind.
  HistoryKeeper(std::string state_dir, TaskQueue& replies);
  ~HistoryKeeper();
  HistoryKeeper(const HistoryKeeper&) = delete;
  HistoryKeeper& operator=(const HistoryKeeper&) = delete;

  // Opens the file and reads what earlier daemons left. Waits for it at most so long; without it vgpud runs on.
  void Open(Ns limit);
  bool on() const { return state_ != kOff; }
  const History::Gpu& past_gpu() const { return past_gpu_; }
  // The VF of that name that was not destroyed. From memory.
  std::optional<History::Vf> Known(const std::string& name) const;
  // A VF that is gone: written with the next Write, and until then kept.
  void Gone(History::Vf vf);
  // One that was gone is there again.
  void Back(const std::string& uuid);
  bool anything_gone() const { return !gone_.empty(); }

  // Writes `rows` and all that are gone; `done(true)` when that is on its way to the disk, `done(false)` when it failed
  // and is to be tried again. Only while not writing().
  void Write(std::vector<History::Vf> rows, const History::Gpu& gpu, int64_t unix_seconds,
             std::function<void(bool)> done);
  bool writing() const { return writing_; }
  // A part of what the file has.
  struct Query {
    std::string from, to;  // days, both included
    History::Place after = {};
    size_t most = History::kAll;
  };
  struct Page {
    std::string text;                    // as `render` made it of the rows
    std::optional<History::Place> next;  // where the next one begins, if this one is full
  };
  // Runs on the history's thread.
  using Render = std::function<std::string(std::vector<History::Day>)>;
  // At once an error when the disk hangs or too many wait.
  void Read(const Query& query, Render render, std::function<void(Result<Page>)> done);

  HistoryState state() const;
  bool hangs() const { return Waited() >= kHangs; }
  // Says so in the log, once, when the disk hangs.
  void LookForHang();
  // Closes the file, waiting at most so long. False: left behind as it is, which was said in the log.
  bool Leave(Ns limit);

 private:
  enum StateOf { kOn, kFailing, kOff };
  static constexpr const char* kStateNames[] = {"on", "failing", "off"};
  // Used by the worker's thread alone; kept by its tasks.
  struct OnThread {
    std::unique_ptr<History> history;
  };
  void Written(const Result<void>& written, uint64_t up_to);
  void Failed(const Error& error);
  // For how long the disk has not answered.
  Ns Waited() const;
  std::string HangText() const;

  const std::string state_dir_;
  const std::string path_;
  std::shared_ptr<OnThread> on_thread_ = std::make_shared<OnThread>();
  History::Gpu past_gpu_;
  std::deque<History::Vf> known_;  // and not there now; the one that was there last is at the end
  std::deque<History::Vf> gone_;   // and not written yet
  uint64_t gone_ever_ = 0;         // number of the last of gone_
  uint64_t given_up_ = 0;          // since it could be written last
  uint64_t lost_vfs_ = 0;
  bool writing_ = false;
  TimePoint writing_since_{};
  bool told_of_hang_ = false;
  StateOf state_ = kOff;
  std::string error_;
  Worker worker_;
};

}  // namespace vgpud::daemon
