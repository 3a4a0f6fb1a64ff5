// SPDX-License-Identifier: Apache-2.0
// What vgpud has of an executor's channels (docs/adr/0010-control-files-are-handed-over.md): the control files that it
// handed over, and its board. Main thread.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "vgpud/gpu/channel_worker.h"

namespace vgpud::daemon {

struct ChannelFiles {
  UniqueFd board;
  std::vector<UniqueFd> files;

  [[nodiscard]] Result<ChannelFiles> Copy() const;
  // For the scheduler. `name`: for the log. `resumed`: an earlier vgpud may have left it switched off.
  [[nodiscard]] Result<ChannelSource> Source(std::string name, bool resumed) const;
  // Before there is a scheduler: what the executor has on the GPU is off it, or on it again, whatever the vgpud before
  // did. Errors: why not.
  [[nodiscard]] Result<void> TakeOff() const;
  [[nodiscard]] Result<void> LetOn() const;
};

// An executor that is just being started gets `board` and `theirs` (base/exec_link.h).
struct ChannelOffer {
  UniqueFd board, theirs, ours;
};
[[nodiscard]] Result<ChannelOffer> MakeChannelOffer(const std::string& vf);
// `ours` is readable: its one message. What it sends first it has sent before it read anything of a guest; the rest is
// never read.
[[nodiscard]] Result<ChannelFiles> TakeHandOver(UniqueFd ours, UniqueFd board);

}  // namespace vgpud::daemon
