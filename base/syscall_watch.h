// The other side of a watched jail (base/jail.h): hears of each system call of the jailed process that has no row or
// asks, and decides. Lives in the event loop of the process that watches.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/event_loop.h"
#include "base/fd.h"

namespace vgpud {

class SyscallWatch {
 public:
  struct Call {
    int number = 0;
    uint64_t arguments[6] = {};
    std::string Name() const;  // "ptrace"; "system call 999" when it has none
  };
  struct Verdict {
    enum class Kind {
      kLeave,   // no answer: the thread waits for the end of its process, which the caller of this brings about
      kRefuse,  // fails with `error`
      kGo,  // the kernel does it; sound only where all that counts is in the arguments themselves, not behind pointers
    };
    Kind kind = Kind::kLeave;
    int error = 0;
    int file = -1;    // kGo: a descriptor of ours that the process gets first, ...
    int number = -1;  // ... as this one of its own
  };
  using Judge = std::function<Verdict(const Call&)>;
  // The last verdict did not reach the thread: a signal has interrupted its call, which may come once more.
  using Undo = std::function<void()>;

  // `watched`: the descriptor from EnterJail. `judge` runs in the loop and must not destroy this.
  SyscallWatch(
      EventLoop& loop, UniqueFd watched, Judge judge, Undo undo = [] {});

 private:
  void OnCall();
  // False when there is nobody any more to take it.
  [[nodiscard]] bool Answer(uint64_t id, const Verdict& verdict);

  UniqueFd watched_;
  Judge judge_;
  Undo undo_;
  EventLoop::WatchPtr readable_;
};

}  // namespace vgpud
