// SPDX-License-Identifier: Apache-2.0
// The other side of a watched jail (base/jail/jail.h): hears of each system call of the jailed process that has no row
// or asks, and decides. Lives in the event loop of the process that watches.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/event_loop.h"
#include "base/fd.h"
#include "base/jail/file_answers.h"

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
      kRefuse,  // fails with `error`; 0: it hears that all went well, and nothing has happened
      kGo,  // the kernel does it; sound only where all that counts is in the arguments themselves, not behind pointers
    };
    Kind kind = Kind::kLeave;
    int error = 0;
    int file = -1;    // kGo: a descriptor of ours that the process gets first, ...
    int number = -1;  // ... as this one of its own
  };
  using Judge = std::function<Verdict(const Call&)>;
  // The last verdict did not reach the thread: a signal has interrupted its call, which may come once more, or it could
  // not be given its file, and the call has failed.
  using Undelivered = std::function<void()>;

  // `watched`: the descriptor from EnterJail. `judge` and `undelivered` run in the loop and must not destroy this.
  // Nothing is judged between an answer with a file and the moment when the thread that asked has taken it; nothing
  // else in the loop waits for that.
  SyscallWatch(
      EventLoop& loop, UniqueFd watched, Judge judge, Undelivered undelivered = [] {});

 private:
  void OnCall();
  // False when nobody has got it.
  [[nodiscard]] bool Answer(uint64_t id, const Verdict& verdict);
  [[nodiscard]] Result<void> GiveFile(uint64_t id, const Verdict& verdict);
  void OnGiven();

  EventLoop& loop_;
  WatchFd watched_;
  Judge judge_;
  Undelivered undelivered_;
  EventLoop::WatchPtr readable_;
  std::unique_ptr<FileAnswers> files_;  // from the first file on
  EventLoop::WatchPtr given_;
};

}  // namespace vgpud
