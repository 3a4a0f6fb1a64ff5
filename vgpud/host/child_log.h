// SPDX-License-Identifier: Apache-2.0
// What the processes of one VF write to their stderr, on its way into the daemon's log. Each has a pipe of its own and
// never the log itself: a process that was taken over can neither truncate nor fill it, nor write a line that looks
// like somebody else's. Lines come out with the pid, bounded (base/log.h), within a budget of lines per VF and one of
// bytes per tenant; what is beyond is dropped and counted, and the next line that is passed on says how much. A line
// that a process repeats is passed on once, and then how often it came.
//
// Whoever writes to a pipe holds its lock while the kernel copies from that process's memory, which may take for ever:
// so each VF's pipes are read and closed by a thread of its own, which nobody waits for. Main thread, but for that.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"
#include "vgpud/host/share_limits.h"
#include "vgpud/host/shares.h"

namespace vgpud::daemon {

// The bytes of the log that the VFs of one owner have together (tenants/owner.h). Any thread.
class LogBudget {
 public:
  [[nodiscard]] bool TryTake(const Sharer& who, size_t bytes);

 private:
  std::mutex mutex_;
  Rates bytes_{share_limits::kLogBytes, Now()};
};

class ChildLog {
 public:
  static constexpr uint32_t kLinesPerSecond = share_limits::kLogLines.each_per_second;
  static constexpr uint32_t kLinesAtOnce = share_limits::kLogLines.each_at_once;
  // What a line has in front of it counts as so much.
  static constexpr size_t kOriginBytes = 64;
  // How often a line that is repeated all the time is told.
  static constexpr Ns kTellRepeatsEvery = std::chrono::minutes{1};
  // Read, and thrown away when there is no line left in the budget. What is beyond that stays in the pipe.
  static constexpr uint32_t kBytesPerSecond = 256 * 1024;
  // Pipes that wait for the thread. While it hangs, what further processes write goes nowhere.
  static constexpr size_t kMostWaiting = 128;

  // Runs on the log's own thread, perhaps still after this is gone.
  using Sink = std::function<void(pid_t pid, std::string_view line)>;
  // `sink`: where lines go, with the process that wrote them. `whose`: whose budget it is, of all logs that have this
  // one.
  ChildLog(Sink sink, Sharer whose = {}, std::shared_ptr<LogBudget> budget = std::make_shared<LogBudget>());
  // What processes that have ended wrote last is still taken, within kLastWords; the thread ends on its own.
  static constexpr Ns kLastWords = std::chrono::milliseconds{50};
  ~ChildLog();
  ChildLog(const ChildLog&) = delete;
  ChildLog& operator=(const ChildLog&) = delete;

  // From now on takes what arrives at `read`, the reading end of the pipe that process `pid` has as its stderr.
  void Follow(pid_t pid, UniqueFd read);
  // The process has ended: what it wrote last is taken (at most a pipe full), then its pipe is closed.
  void Ended(pid_t pid);
  // Lines that were not passed on.
  uint64_t dropped() const;
  // Waits until the thread has done what it was told so far, at most so long. False: it hangs.
  bool Settle(Ns limit);

 private:
  class Reader;
  const std::shared_ptr<Reader> reader_;
  std::set<pid_t> followed_;
};

}  // namespace vgpud::daemon
