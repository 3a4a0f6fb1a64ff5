// SPDX-License-Identifier: Apache-2.0
#include "base/foreign_fd.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string_view>

#include "base/detached_thread.h"

namespace vgpud {
namespace {

#ifndef SO_PASSRIGHTS
constexpr int SO_PASSRIGHTS = 83;  // asm-generic/socket.h
#endif

class Closers {
 public:
  void Start() {
    const std::lock_guard lock(mutex_);
    started_ = true;
  }
  // Nothing of `fd` is left when it was not taken.
  void Close(UniqueFd fd) {
    std::unique_lock lock(mutex_);
    if (!started_) {
      lock.unlock();
      fd.Reset();
      return;
    }
    queue_.push_back(std::move(fd));
    // All of them may be stuck: one more then. When there can be no more, it waits; the caller never does.
    if (queue_.size() > idle_ && threads_ < kMostClosers && StartThread()) ++threads_;
    lock.unlock();
    filled_.notify_one();
  }
  size_t waiting() {
    const std::lock_guard lock(mutex_);
    return queue_.size();
  }

 private:
  bool StartThread() {
    return StartDetachedThread("vgpu-closer", [this] { Run(); });
  }
  void Run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      filled_.wait(lock, [this] { return !queue_.empty(); });
      --idle_;
      UniqueFd fd = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      fd.Reset();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<UniqueFd> queue_;
  size_t threads_ = 0;
  size_t idle_ = 0;
  bool started_ = false;
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
