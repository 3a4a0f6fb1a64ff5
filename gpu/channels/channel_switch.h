// SPDX-License-Identifier: Apache-2.0
// Takes all that a process has on the GPU off it, and lets it on again, by the driver's own controls
// (docs/cuda-channels.md): disable its channels; where the driver does not do that, unschedule its channel groups and
// preempt them. Whoever has the process's own control file can do it, the process need not help.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "gpu/channels/driver_traits.h"
#include "gpu/channels/rm_file.h"
#include "gpu/channels/rm_objects.h"

namespace vgpud::rm {

enum class Way { kDisable, kUnschedule };
const char* Name(Way way);

// What an attempt came to: the last answer, and what it was an answer to.
struct Outcome {
  Answer answer;
  std::string call;
  bool ok() const { return answer.ok(); }
  // "disable 12 channels: NOT_SUPPORTED (0x56): ...".
  std::string Words() const;
};

// One thread.
class ChannelSwitch {
 public:
  // `file`: the one by which the objects were made; it outlives this.
  ChannelSwitch(const RmFile& file, uint32_t driver_major);

  // All channels are off the GPU and stay off. Failed: the way that was tried last, and why; what was switched off
  // until then is on again, unless the GPU is lost. WhatThen(answer) says what to do.
  Outcome Off(const ClientChannels& channels);
  // While it is off: channels that were not there before are switched off, too.
  Outcome HoldNewcomers(const ClientChannels& channels);
  // All that is off comes on again. Channels that are gone since are none.
  Outcome On(const ClientChannels& channels);
  // The same one by one: what the driver does not know any more is passed over.
  Outcome OnEach(const ClientChannels& channels);
  // Somebody before, in whichever way, may have switched all of these off.
  void AssumeOff(const ClientChannels& channels);

  bool is_off() const { return off_; }
  Way way() const { return way_; }
  // Channels or groups, by way(), that are switched off.
  size_t held() const { return held_.size(); }

  // The controls by themselves, of which the above are made.
  Outcome Disable(const ClientChannels& channels, const std::vector<uint32_t>& handles, bool disable) const;
  Outcome Schedule(const ClientChannels& channels, uint32_t group, bool on);
  Outcome PreemptGroup(const ClientChannels& channels, uint32_t group, std::chrono::microseconds limit) const;

 private:
  Outcome ApplyTo(Way way, const ClientChannels& channels, const std::vector<uint32_t>& handles, bool off);
  std::vector<uint32_t> Wanted(Way way, const ClientChannels& channels) const;

  const RmFile& file_;
  uint32_t schedule_bytes_;
  Way way_;
  bool off_ = false;
  bool assumed_ = false;     // by AssumeOff
  std::set<uint32_t> held_;  // channels or groups, by way_
};

}  // namespace vgpud::rm
