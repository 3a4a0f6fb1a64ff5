// SPDX-License-Identifier: Apache-2.0
// Work on files that clients of the host share with us. Whoever has such a file can keep everybody else from writing to
// it and from freeing a part of it for as long as it likes (a write of its own from memory that a FUSE server or a
// userfaultfd has yet to bring). So this work is done by threads that nobody waits for, one per client that has some.
#pragma once

#include <functional>
#include <memory>

#include "base/event_loop.h"

namespace vgpud::vfio {

// Of the loop's thread.
class FileWork {
 public:
  // Who shares the file: alive, by whatever refers to it, as long as anything is left to do for it.
  using Client = std::shared_ptr<const void>;

  explicit FileWork(EventLoop& loop);
  ~FileWork();
  FileWork(const FileWork&) = delete;
  FileWork& operator=(const FileWork&) = delete;

  // Runs `work` on another thread after everything that was asked for this client before, and then `done` on the loop,
  // unless this FileWork is gone by then. What `work` uses has to be its own. Where there can be no more threads it
  // waits for one; nothing is lost.
  void Do(Client client, std::function<void()> work, std::function<void()> done = {});

 private:
  struct Shared;
  void Retry();

  const std::shared_ptr<Shared> shared_;
  const EventLoop::WatchPtr finished_;
  const EventLoop::WatchPtr retry_;
};

}  // namespace vgpud::vfio
