// SPDX-License-Identifier: Apache-2.0
// What vgpud-keep holds of each VF, so that the next vgpud can go on with it: everything that this process has of the
// VF's processes and cannot get a second time. The rest stands in the VF's definition (model/definition.h).
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <utility>
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

// Keeps what there is of one VF. Does nothing without a keeper: then VFs end with vgpud.
class VfKeeping {
 public:
  // `keeper` outlives this; null: none.
  VfKeeping(Keeper* keeper, std::string vf) : keeper_(keeper), vf_(std::move(vf)) {}
  bool on() const { return keeper_ != nullptr; }
  void Keep(const KeptVf& kept) const;
  // Of vgpud-vf's jail.
  void KeepWatch(int watch) const;
  void KeepExecutor(const KeptExecutor& executor) const;
  // Of the executor of that generation.
  void KeepChannels(uint64_t generation, const ChannelFiles& channels) const;
  void ForgetExecutor(uint64_t generation) const;
  // All of it.
  void Forget() const;

 private:
  Keeper* const keeper_;
  const std::string vf_;
};

}  // namespace vgpud::daemon
