// SPDX-License-Identifier: Apache-2.0
// A vgpud-exec that is asked something about the GPU, and ends again.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/exec_link.h"
#include "vgpud/device/gpu_choice.h"
#include "vgpud/host/child.h"

namespace vgpud::daemon {

class ExecQuestion {
 public:
  // Starts `exec_program` (vgpud-exec) with `arguments` (ExecArguments) and those of `choice`.
  [[nodiscard]] static Result<ExecQuestion> Ask(const GpuChoice& choice, const std::string& exec_program,
                                                std::vector<std::string> arguments);

  // All that it said, log lines among it, until it ended with status 0. An error: its last line, or why there is none.
  // It is killed when it has not ended within `limit`: timed_out.
  [[nodiscard]] Result<std::string> Await(Ns limit);
  // Returns when it has said this line. Errors as above.
  [[nodiscard]] Result<void> AwaitLine(const std::string& line, Ns limit);
  // The first line that begins with this word. Errors as above.
  [[nodiscard]] Result<std::string> LineThatBegins(const std::string& word, Ns limit);
  int pidfd() const { return child_.pidfd(); }
  // Kills it. How long it took until it was gone; an error: it was not within `limit`.
  [[nodiscard]] Result<Ns> Kill(Ns limit);

 private:
  ExecQuestion(Child child, UniqueFd answer) : child_(std::move(child)), answer_(std::move(answer)) {}
  // More of what it says; false: that was all.
  Result<bool> Read(TimePoint end);
  // Reaps it. False: it has not ended by then.
  bool Ended(TimePoint end, bool* clean);

  Child child_;
  UniqueFd answer_;
  std::string text_;
};

}  // namespace vgpud::daemon
