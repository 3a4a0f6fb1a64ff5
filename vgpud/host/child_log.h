// What the processes of one VF write to their stderr, on its way into the daemon's log. Each has a pipe of its own and
// never the log itself: a process that was taken over can neither truncate nor fill it, nor write a line that looks
// like somebody else's. Lines come out with the VF and the pid in front, escaped and bounded (base/log.h), within a
// budget per VF; what is beyond is dropped and counted. Main thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/event_loop.h"
#include "base/fd.h"
#include "base/token_bucket.h"

namespace vgpud {

class ChildLog {
 public:
  static constexpr uint32_t kLinesPerSecond = 50;
  static constexpr uint32_t kLinesAtOnce = 500;
  // Read, and thrown away when there is no line left in the budget. What is beyond that stays in the pipe.
  static constexpr uint32_t kBytesPerSecond = 256 * 1024;

  using Sink = std::function<void(std::string_view origin, std::string_view line)>;
  // `sink`: where lines go (LogRelayed). `loop` outlives this.
  ChildLog(EventLoop& loop, std::string vf, Sink sink);
  ~ChildLog();
  ChildLog(const ChildLog&) = delete;
  ChildLog& operator=(const ChildLog&) = delete;

  // From now on takes what arrives at `read`, the reading end of the pipe that process `pid` has as its stderr.
  void Follow(pid_t pid, UniqueFd read);
  // The process has ended: what it wrote last is taken (at most a pipe full), then its pipe is closed. Not inside a
  // Sink.
  void Ended(pid_t pid);
  // Lines that were not passed on.
  uint64_t dropped() const { return dropped_; }

 private:
  struct Writer {
    UniqueFd pipe;
    EventLoop::WatchPtr watch;
    std::string line;  // as far as it has arrived; what is beyond kMaxLogText is thrown away
  };
  void OnReadable(pid_t pid);
  // Reads once; false: there is nothing.
  bool ReadSome(pid_t pid, Writer& writer);
  void Take(pid_t pid, Writer& writer, std::string_view bytes);
  void Emit(pid_t pid, Writer& writer);
  void PauseAll(Ns how_long);

  EventLoop& loop_;
  const std::string vf_;
  const Sink sink_;
  TokenBucket lines_;
  TokenBucket bytes_;
  std::map<pid_t, Writer> writers_;
  EventLoop::WatchPtr resume_;
  bool paused_ = false;
  uint64_t dropped_ = 0;
  uint64_t said_ = 0;  // of dropped_
};

}  // namespace vgpud
