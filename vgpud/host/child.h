// SPDX-License-Identifier: Apache-2.0
// A process that vgpud started and watches through its pidfd. Main thread only.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/jail/confine.h"

namespace vgpud::daemon {

class Child {
 public:
  struct Spec {
    struct File {
      int fd;      // ours
      int number;  // its
    };
    std::string program;
    std::vector<std::string> arguments;  // arguments[0] included
    // It gets no other than these, but stdin and stdout, which are /dev/null, and our stderr if 2 is not among them.
    std::vector<File> files;
    // Of the namespaces that this names, it gets its own of each; the rest is its own business (base/jail/confine.h).
    Confinement confinement = Confinement::kNothing;
    // kUserNamespace: the user and group outside of the namespace, which it knows as 0. Needs CAP_SETUID and CAP_SETGID
    // unless it is our own user.
    uid_t user = ::geteuid();
  };
  // Starts it, with default signal handling but for SIGPIPE, which stays ignored: who reads its stderr may end first.
  // Never copies our memory. Returns when it is running its own program.
  [[nodiscard]] static Result<Child> Spawn(const Spec& spec);
  // Goes on with one that another vgpud, which has ended, started. Somebody else reaps it, so that its number may come
  // to mean another process once it has ended; `pidfd` never does. How it ends is not known.
  [[nodiscard]] static Child Adopt(pid_t pid, UniqueFd pidfd) { return Child{pid, std::move(pidfd), true}; }
  Child(Child&& other) noexcept : pid_(other.pid_), adopted_(other.adopted_), pidfd_(std::move(other.pidfd_)) {
    other.pid_ = -1;
  }
  Child& operator=(Child&&) = delete;
  // A child still there is killed, and reaped when it ends within kLastWait: one that somebody holds in the kernel does
  // not.
  static constexpr int kLastWaitMs = 1000;
  ~Child();

  pid_t pid() const { return pid_; }
  // Readable when the process has ended.
  int pidfd() const { return pidfd_->get(); }
  // The same, for other threads. As long as somebody has it, the number of the process comes to mean no other one.
  std::shared_ptr<const UniqueFd> HoldPid() const { return pidfd_; }
  void Kill(int signal) const;
  // Kills it, and does not wait for its end.
  void Abandon();
  // How it ended ("exit 0", "signal 9"); nullopt while it runs. It is reaped when this and all of HoldPid are gone.
  struct Ending {
    bool clean = false;  // exit status 0
    std::string text;
  };
  std::optional<Ending> Reap();
  bool adopted() const { return adopted_; }

 private:
  Child(pid_t pid, UniqueFd pidfd, bool adopted);
  pid_t pid_;
  bool adopted_;
  std::shared_ptr<const UniqueFd> pidfd_;
};

}  // namespace vgpud::daemon
