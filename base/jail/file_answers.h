// SPDX-License-Identifier: Apache-2.0
// Puts files into a watched process and lets the call go on that it needs them for. The kernel makes whoever puts one
// there wait until the thread that asked runs again, which may be never: so a thread of our own does it, for which
// nobody waits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/fd.h"
#include "base/result.h"

namespace vgpud {

using WatchFd = std::shared_ptr<const UniqueFd>;  // the descriptor from EnterJail

// The answer to one notification: true when the thread that waits for it has got it. Does not wait where no file is
// to be given.
[[nodiscard]] bool SendAnswer(int watched, uint64_t id, int error, bool go);

class FileAnswers {
 public:
  // Starts the thread, which takes no signals. EAGAIN: there can be no more threads.
  [[nodiscard]] static Result<std::unique_ptr<FileAnswers>> Start(WatchFd watched);
  // The thread ends when it can.
  ~FileAnswers();

  // Gives `file` to the process as its descriptor `number`, then lets the call go on. One at a time: the next one after
  // Took() had an answer.
  void Give(uint64_t id, UniqueFd file, int number);
  // Readable once that is done.
  int done() const;
  // Is it? Then: has the call been let go?
  [[nodiscard]] std::optional<bool> Took();

 private:
  struct Shared;
  explicit FileAnswers(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  static void* Main(void* shared);

  std::shared_ptr<Shared> shared_;
};

}  // namespace vgpud
