// SPDX-License-Identifier: Apache-2.0
// Everything about each operation of the ring, one row each (vgpu_abi.h, "Operations"). The rows are in engine_ops.cc,
// beside the handlers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "guest-driver-shim/include/uapi/vgpu_abi.h"

namespace vgpud::exec {

class ChannelEngine;

enum class PayloadRule : uint8_t { kNone, kOptional, kRequired };

// What has become of an entry that was looked at.
enum class EntryVerdict { kDone, kPart, kWait, kLink };

// An entry that has been taken out of the ring, copied once, while it is dealt with.
struct RingEntry {
  vgpu_sqe sqe;
  uint64_t span_id = 0;
  std::span<std::byte> span;  // its payload, in memory that the guest can write
  bool link_checked = false;
  bool admitted = false;
  size_t done_bytes = 0;  // of a copy in parts
  bool want() const { return (sqe.flags & VGPU_SQE_WANT_COMPLETION) != 0; }
};

struct OpRules {
  uint8_t args = 0;  // the first `args` of args[] mean something, the rest must be zero
  PayloadRule payload = PayloadRule::kNone;
  uint32_t payload_least = 0;  // bytes; with fewer it is refused, and the channel lives on
  bool needs_gpu = false;      // run in its stream, in steps; what waits in a stream else ends when it is first there
  bool exclusive = false;      // touches the context or what running work uses: no step may be running
  bool needs_drain = false;    // waits for all earlier work of the channel
  bool keeps = false;          // leaves something behind in our memory, be it until its turn comes
  bool after_fault = false;    // is done in a poisoned context, too
  bool unlocks = false;        // does its work without the executor's lock
  bool no_context = false;     // says nothing of whether the guest process has a context
};

struct OpRow {
  uint32_t code;
  const char* name;
  EntryVerdict (ChannelEngine::*handler)(RingEntry&);
  OpRules rules;
};

// nullptr for an unknown operation.
const OpRow* FindOp(uint32_t op);
// What is wrong with the form of `entry`: a sentence that names the field, nullopt when it is fine. The payload
// position is PayloadWindow's business.
std::optional<std::string> CheckForm(const vgpu_sqe& entry);

}  // namespace vgpud::exec
