// SPDX-License-Identifier: Apache-2.0
// What there is to know of each operation of the ring, one row each (vgpu_abi.h, "Operations"). The rows of a topic are
// beside its handlers (gpu/exec/ops/).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "gpu/gpu.h"
#include "guest-driver-shim/include/uapi/vgpu_abi.h"

namespace vgpud::exec {

struct Op;

enum class PayloadRule : uint8_t { kNone, kOptional, kRequired };

// What a handler made of an entry. All but kDone: it is called again with the same entry.
enum class EntryVerdict {
  kDone,
  kPart,   // a part of it is done: others first
  kWait,   // after some progress
  kLink,   // when the link was read: a buffer may have been announced there
  kAlone,  // when no step runs: RingEntry::alone
  kCopy,   // when RingEntry::copy was made, without the lock
};

// A copy between memory that only the I/O thread takes away.
struct UnlockedCopy {
  std::span<std::byte> to;
  std::span<const std::byte> from;
  void Run() const;
};

// An entry that has been taken out of the ring, copied once, while it is dealt with.
struct RingEntry {
  vgpu_sqe sqe;
  uint64_t span_id = 0;
  std::span<std::byte> span;  // its payload, in memory that the guest can write
  bool link_checked = false;
  bool admitted = false;
  bool alone = false;      // no step runs while the handler does
  size_t done_bytes = 0;   // of a copy in parts
  UnlockedCopy copy = {};  // of the verdict kCopy
  bool want() const { return (sqe.flags & VGPU_SQE_WANT_COMPLETION) != 0; }
};

struct OpRules {
  uint8_t args = 0;  // the first `args` of args[] mean something, the rest must be zero
  PayloadRule payload = PayloadRule::kNone;
  uint32_t payload_least = 0;  // bytes; with fewer it is refused, and the channel lives on
  bool exclusive = false;      // touches the context or what running work uses: no step may be running
  bool needs_drain = false;    // waits for all earlier work of the channel
  bool keeps = false;          // leaves something behind in our memory, be it until its turn comes
  uint8_t keeps_arg = 0;       // and args[keeps_arg] bytes more; 0: no
  bool after_fault = false;    // is done in a poisoned context, too
  bool unlocks = false;        // does its work without the executor's lock
  bool no_context = false;     // says nothing of whether the guest process has a context
};

// What a step may do.
struct StepTerms {
  const StopWord& stop;
  uint64_t budget;                // warp instructions
  std::span<Op* const> behind{};  // launches that may begin when the operation has ended (AsyncWork)
};

struct StepResult {
  bool done = false;
  bool stopped = false;  // its kernel has left, as the stop word said
  bool fault = false;    // poisons the context
  CuStatus status = CuStatus::kSuccess;
  std::string text = {};
  uint64_t warp_instructions = 0;
  uint64_t short_of = 0;  // bytes of host memory without which it gets nowhere
};

class BufferOps;
class DeviceOps;
class MemoryOps;
class ModuleOps;
class QueueOps;
class RuntimeOps;
class TextureOps;

// The objects whose members the rows name.
struct OpTopics {
  BufferOps* buffers;
  DeviceOps* device;
  MemoryOps* memory;
  ModuleOps* modules;
  QueueOps* queue;
  RuntimeOps* runtime;
  TextureOps* textures;
};

// A row's handler: that member of that topic's object.
template <auto Topic, auto Member>
EntryVerdict Do(const OpTopics& topics, RingEntry& entry) {
  return ((topics.*Topic)->*Member)(entry);
}

template <auto Topic, auto Member>
bool Ask(const OpTopics& topics, const RingEntry& entry) {
  return ((topics.*Topic)->*Member)(entry);
}

struct OpRow {
  uint32_t code = 0;
  const char* name = nullptr;
  EntryVerdict (*handler)(const OpTopics&, RingEntry&) = nullptr;
  OpRules rules = {};
  // The GPU executes it in steps; each advances it by at most the budget or 64 KiB. On the GPU only, by one thread;
  // nobody else uses the Gpu and the operation. nullptr: it needs no GPU, and completes at the stream's head.
  StepResult (*step)(Gpu&, Op&, const StepTerms&) = nullptr;
  // Before others make way for it; false: it waits. nullptr: it need not.
  bool (*ready)(const OpTopics&, const RingEntry&) = nullptr;
};

// nullptr for an unknown operation.
const OpRow* FindOp(uint32_t op);
// What is wrong with the form of `entry`: a sentence that names the field, nullopt when it is fine. The payload
// position is PayloadWindow's business.
std::optional<std::string> CheckForm(const vgpu_sqe& entry);

}  // namespace vgpud::exec
