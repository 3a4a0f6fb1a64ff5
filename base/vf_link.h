// SPDX-License-Identifier: Apache-2.0
// Messages between vgpud and vgpud-vf (SOCK_SEQPACKET, base/message.h). vgpud-vf gets its end as fd number
// kVfLinkFd at start. Neither side waits for an answer of the other in a handler.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/event_budget.h"

namespace vgpud::vf_link {

inline constexpr int kVfLinkFd = 3;

// Of these messages. A vgpud goes on with a vgpud-vf of the release before its own and of the one after: both sides
// then send what the lower version has. kConfigure says vgpud's, kHello vgpud-vf's; kAdopt that of a vgpud that comes
// later. 1: kAdopt, kChannel, kInStep, and the versions. 2: kQuotas.
inline constexpr uint32_t kVersion = 2;
inline constexpr uint32_t kQuotasSince = 2;
// May a vgpud of version `ours` go on with a vgpud-vf that said `theirs`?
constexpr bool CanAdopt(uint32_t theirs, uint32_t ours = kVersion) {
  return theirs != 0 && theirs + 1 >= ours && theirs <= ours + 1;
}

enum class Kind : uint32_t {
  // vgpud -> vgpud-vf
  // Configure + fds {grant page (read-only), slot page}, which are mapped and closed; first message; answered by kHello
  kConfigure = 1,
  kExecutor = 2,        // Executor + fds {socket to the executor, pidfd}: answer to kNeedExecutor
  kInfo = 3,            // Info: figures shown in BAR0 changed
  kReset = 4,           // reset the VF as FLR does
  kShutdown = 5,        // end: close sockets, end executors, exit 0
  kExecutorFailed = 6,  // Executor (channel, generation): spawn failed, the channel is lost
  kPing = 7,            // Ping: answered with kPong and the same number, from the event loop
  // From a vgpud that goes on where another has ended: answered by what that one knew, kClient, kUsage, kEvents, a
  // kChannel for each channel, and kInStep.
  kAdopt = 8,  // Adopt
  // Quotas: what the VF may have from now on, all of it or nothing; answered with kQuotasSet, before anything that
  // follows from it
  kQuotas = 9,
  // vgpud-vf -> vgpud
  kHello = 16,          // Hello
  kNeedExecutor = 17,   // Executor (channel, generation): a channel was opened
  kChannelClosed = 18,  // Executor (channel, generation): the channel ended; its executor has been told to exit
  kClient = 19,         // Client: a vfio-user client came or went
  kUsage = 20,          // Usage: memory in use changed
  kEvents = 21,         // Events: at most once a second, when there were any
  kWatched = 23,        // Plain + fd of its jail's watch; once, where there is one
  kPong = 22,           // Ping
  kKillExecutor =
      24,  // Executor (channel, generation): it has to end at once, and vgpud-vf, in another pid namespace, can't
  kChannel = 25,    // Channel
  kInStep = 26,     // Plain: the answer to kAdopt is complete
  kQuotasSet = 27,  // QuotasSet
};

struct Configure {
  Kind kind = Kind::kConfigure;
  uint32_t watched =
      0;  // 1: this host can watch jails (base/jail/jail.h): this process answers kWatched, its executors as well
  uint64_t vram_bytes = 0;
  uint32_t slice_us = 0;
  uint32_t weight = 0;
  uint8_t uuid[16] = {};
  char name[64] = {};  // NUL padded
  uint64_t host_memory_bytes = 0;
  char gpu_name[64] = {};     // NUL padded: the model that programs see
  uint32_t capability = 0;    // compute capability times 10
  uint32_t cuda_version = 0;  // of the GPU's own driver, as cuDriverGetVersion counts; 0: it has none
};
struct Info {
  Kind kind = Kind::kInfo;
  uint32_t slice_us = 0;
  uint32_t weight = 0;
  uint32_t vf_state = 0;     // VGPU_VF_*
  uint32_t gpu_percent = 0;  // part of the last second in which the VF had the GPU; vgpuds before it send less
};
inline constexpr size_t kInfoLeast = offsetof(Info, gpu_percent);
// One executor = one channel. `generation` counts channel opens of the VF, so a late message of an earlier user of the
// same channel number is recognised.
struct Executor {
  Kind kind;
  uint32_t channel = 0;
  uint64_t generation = 0;
  uint32_t client_pid = 0;  // kNeedExecutor: the guest process, for logs
  uint32_t mbz = 0;
};
struct Hello {
  Kind kind = Kind::kHello;
  uint32_t version = kVersion;
};
struct Adopt {
  Kind kind = Kind::kAdopt;
  uint32_t version = kVersion;  // no higher than the one that vgpud-vf has said
};
enum class ChannelState : uint32_t {
  kWaits = 0,    // for its executor
  kServed = 1,   // by its executor
  kClosing = 2,  // its executor has been told to exit
};
struct Channel {
  Kind kind = Kind::kChannel;
  uint32_t channel = 0;
  uint64_t generation = 0;
  uint32_t client_pid = 0;
  ChannelState state{};
};
struct Client {
  Kind kind = Kind::kClient;
  uint32_t connected = 0;
};
struct Usage {
  Kind kind = Kind::kUsage;
  uint32_t channels = 0;
  uint64_t vram_used = 0;
  uint64_t host_memory_used = 0;
};
// What the guest caused so far, by kind (event_budget.h), and how often and how long it was made to wait for that.
struct Events {
  Kind kind = Kind::kEvents;
  uint32_t mbz = 0;
  uint64_t count[kGuardedEvents] = {};
  uint64_t throttled[kGuardedEvents] = {};
  uint64_t throttled_ns = 0;
};
struct Quotas {
  Kind kind = Kind::kQuotas;
  uint32_t mbz = 0;
  uint64_t sequence = 0;
  uint64_t vram_bytes = 0;
  uint64_t host_memory_bytes = 0;
};
struct QuotasSet {
  Kind kind = Kind::kQuotasSet;
  uint32_t ok = 0;        // 0: more than that is in use, and the quotas are as before
  uint64_t sequence = 0;  // of the Quotas
  uint64_t vram_used = 0;
  uint64_t host_memory_used = 0;
};
struct Ping {
  Kind kind = Kind::kPing;
  uint32_t mbz = 0;
  uint64_t sequence = 0;
};
struct Plain {
  Kind kind;  // kReset, kShutdown, kWatched
  uint32_t mbz = 0;
};

}  // namespace vgpud::vf_link
