// SPDX-License-Identifier: Apache-2.0
// Messages between vgpud and vgpud-vf (SOCK_SEQPACKET, base/message.h). vgpud-vf gets its end as fd number
// kVfLinkFd at start. Neither side waits for an answer of the other in a handler.
#pragma once

#include <cstdint>

#include "base/event_budget.h"

namespace vgpud::vf_link {

inline constexpr int kVfLinkFd = 3;

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
};
struct Info {
  Kind kind = Kind::kInfo;
  uint32_t slice_us = 0;
  uint32_t weight = 0;
  uint32_t vf_state = 0;  // VGPU_VF_*
};
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
  uint32_t mbz = 0;
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
