// SPDX-License-Identifier: Apache-2.0
#include "base/foreign_fd.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <deque>
#include <string_view>

#include "base/detached_thread.h"
#include "base/locks/mutex.h"

namespace vgpud {
namespace {

#ifndef SO_PASSRIGHTS
constexpr int SO_PASSRIGHTS = 83;  // asm-generic/socket.h
#endif

class Closers {
 public:
  void Start() {
    MutexLock lock(mutex_);
    started_ = true;
  }
  // Nothing of `fd` is left when it was not taken.
  void Close(UniqueFd fd) {
    if (!Queue(fd)) return fd.Reset();
    filled_.NotifyOne();
  }
  size_t waiting() {
    MutexLock lock(mutex_);
    return queue_.size();
  }

 private:
  // Takes `fd`; false: it is the caller's to close.
  bool Queue(UniqueFd& fd) {
    MutexLock lock(mutex_);
    if (!started_) return false;
    queue_.push_back(std::move(fd));
    // All of them may be stuck: one more then. When there can be no more, it waits; the caller never does.
    if (queue_.size() > idle_ && threads_ < kMostClosers && StartThread()) ++threads_;
    return true;
  }
  bool StartThread() {
    return StartDetachedThread("vgpu-closer", [this] { Run(); });
  }
  void Run() {
    for (;;) Next().Reset();
  }
  UniqueFd Next() {
    MutexLock lock(mutex_);
    ++idle_;
    while (queue_.empty()) filled_.Wait(mutex_);
    --idle_;
    UniqueFd fd = std::move(queue_.front());
    queue_.pop_front();
    return fd;
  }

  static constexpr LockRank kRank{"descriptors to close", 960};  // whatever is held, one may go
  Mutex mutex_{kRank};
  CondVar filled_;
  std::deque<UniqueFd> queue_ GUARDED_BY(mutex_);
  size_t threads_ GUARDED_BY(mutex_) = 0;
  size_t idle_ GUARDED_BY(mutex_) = 0;
  bool started_ GUARDED_BY(mutex_) = false;
};

// Never destroyed: its threads may outlive everything else.
Closers& TheClosers() {
  static Closers& closers = *new Closers;
  return closers;
}

}  // namespace

void CloseElsewhere(UniqueFd fd) {
  if (fd) TheClosers().Close(std::move(fd));
}

void StartClosers() { TheClosers().Start(); }

size_t WaitingToClose() { return TheClosers().waiting(); }

bool ManyToClose() { return WaitingToClose() >= kManyToClose; }

bool RefuseFds(int socket) {
  const int no = 0;
  return ::setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof no) == 0;
}

// Names of files of a file system begin with a slash.
bool IsFilterWatch(int fd) {
  constexpr std::string_view kName = "anon_inode:seccomp notify";
  std::array<char, 64> name;
  const ssize_t n = ::readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), name.data(), name.size());
  return n >= 0 && std::string_view(name.data(), static_cast<size_t>(n)) == kName;
}

}  // namespace vgpud
