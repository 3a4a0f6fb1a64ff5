// A process that vgpud started and watches through its pidfd. Main thread only.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"

namespace vgpud {

class Child {
 public:
  // Starts `program` with `args` (args[0] included): stdin and stdout /dev/null, stderr ours, `link` as fd number
  // `link_number`, no other fd, default signal handling. Never forks our memory.
  [[nodiscard]] static Result<Child> Spawn(const std::string& program, const std::vector<std::string>& args,
                                           const UniqueFd& link, int link_number);
  Child(Child&& other) noexcept : pid_(other.pid_), pidfd_(std::move(other.pidfd_)) { other.pid_ = -1; }
  Child& operator=(Child&&) = delete;
  // A child still there is killed and reaped.
  ~Child();

  pid_t pid() const { return pid_; }
  // Readable when the process has ended.
  int pidfd() const { return pidfd_.get(); }
  void Kill(int signal) const;
  // How it ended ("exit 0", "signal 9"), after which it no longer exists; nullopt while it runs.
  struct Ending {
    bool clean = false;  // exit status 0
    std::string text;
  };
  std::optional<Ending> Reap();

 private:
  Child(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  pid_t pid_;
  UniqueFd pidfd_;
};

}  // namespace vgpud
