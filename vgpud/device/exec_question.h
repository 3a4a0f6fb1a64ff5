// SPDX-License-Identifier: Apache-2.0
// A vgpud-exec that is asked something about the GPU, and ends again. It is started as those of VFs are: in namespaces
// and as a user of its own, where the host gives these.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/exec_link.h"
#include "base/jail/refusals.h"
#include "vgpud/device/gpu_choice.h"
#include "vgpud/host/child.h"
#include "vgpud/host/confinement.h"

namespace vgpud::daemon {

// How executors are started on this host.
struct ExecStart {
  std::string program;  // vgpud-exec
  VfConfinement confinement;
};

class ExecQuestion {
 public:
  // Starts one with `arguments` (ExecArguments) and those of `choice`.
  [[nodiscard]] static Result<ExecQuestion> Ask(const GpuChoice& choice, const ExecStart& start,
                                                std::vector<std::string> arguments);

  // Returns when its driver has started: up to a minute, for each GPU takes seconds without persistence mode. Other
  // limits count from then. Errors as of Await.
  [[nodiscard]] Result<void> AwaitReady();
  // All that it said, log lines among it, until it ended with status 0. An error: its last line, or why there is none.
  // It is killed when it has not ended within `limit`: timed_out.
  [[nodiscard]] Result<std::string> Await(Ns limit);
  // Returns when it has said this line. Errors as above.
  [[nodiscard]] Result<void> AwaitLine(const std::string& line, Ns limit);
  // The first line that begins with this word. Errors as above.
  [[nodiscard]] Result<std::string> LineThatBegins(const std::string& word, Ns limit);
  // The calls without a row in its jail that it has made so far, if it is in one: "getcwd, socket".
  std::string refused() const;
  int pidfd() const { return child_.pidfd(); }
  // Kills it. How long it took until it was gone; an error: it was not within `limit`.
  [[nodiscard]] Result<Ns> Kill(Ns limit);

 private:
  ExecQuestion(Child child, UniqueFd answer, UniqueFd handed)
      : child_(std::move(child)), answer_(std::move(answer)), handed_(std::move(handed)) {}
  // Answers its jail meanwhile. False: nothing to be read by then.
  bool AwaitWords(TimePoint end);
  // More of what it says; false: that was all.
  Result<bool> Read(TimePoint end);
  // Reaps it. False: it has not ended by then.
  bool Ended(TimePoint end, bool* clean);

  Child child_;
  UniqueFd answer_;
  UniqueFd handed_;  // where the watch of its jail comes from
  std::optional<Refusals> refusals_;
  std::string text_;
};

}  // namespace vgpud::daemon
