// SPDX-License-Identifier: Apache-2.0
// What vgpud-keep holds of each VF, so that the next vgpud can go on with it: everything that this process has of the
// VF's processes and cannot get a second time. The rest stands in the VF's definition (model/definition.h).
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/vf_link.h"
#include "vgpud/gpu/channel_files.h"
#include "vgpud/keep/keeper.h"
#include "vgpud/model/uuid.h"

namespace vgpud::daemon {

// Notes are read by another release of vgpud: they are only ever appended to.
struct VfNote {
  uint32_t link_version = 0;  // of its vgpud-vf (base/vf_link.h)
  uint32_t slice_version = 0;
  int32_t pid = -1;
  uint32_t number = 0;
  Uuid uuid{};
};
struct ExecutorNote {
  int32_t pid = -1;
  uint32_t channel = 0;
  uint64_t generation = 0;
  uint32_t threads = 0;
  uint32_t mbz = 0;
};

struct KeptExecutor {
  ExecutorNote note;
  UniqueFd pidfd;
  UniqueFd log;  // the reading end of its stderr
};
struct KeptVf {
  VfNote note;
  UniqueFd link;
  UniqueFd pidfd;
  UniqueFd grant;  // its page can be written through it
  UniqueFd slots;
  UniqueFd log;
  UniqueFd ledger;
  UniqueFd watch;  // of vgpud-vf's jail, where there is one
  std::vector<KeptExecutor> executors;
  std::map<uint64_t, ChannelFiles> channels;  // by the executor's generation
  // Processes that an earlier vgpud started and nobody goes on with.
  void Kill() const;
};
using KeptVfs = std::map<std::string, KeptVf>;  // by name

// Whatever is no part of a whole VF is logged and dropped.
KeptVfs SortKept(std::vector<Keeper::Kept> all);

void KeepVf(Keeper& keeper, const std::string& vf, const KeptVf& kept);
void KeepWatch(Keeper& keeper, const std::string& vf, int watch);
void KeepExecutor(Keeper& keeper, const std::string& vf, const KeptExecutor& executor);
void KeepChannels(Keeper& keeper, const std::string& vf, uint64_t generation, const ChannelFiles& channels);
void ForgetVf(Keeper& keeper, const std::string& vf);
void ForgetExecutor(Keeper& keeper, const std::string& vf, uint64_t generation);

}  // namespace vgpud::daemon
