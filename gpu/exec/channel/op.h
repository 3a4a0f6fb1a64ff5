// SPDX-License-Identifier: Apache-2.0
// One operation that a stream holds, after all its fields were checked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gpu/exec/channel/op_table.h"
#include "gpu/gpu.h"

namespace vgpud::exec {

inline constexpr uint32_t kNoArea = 0xffffffff;

struct Op {
  uint32_t kind = VGPU_OP_NOP;
  bool want_completion = false;
  uint64_t seqno = 0;
  std::array<uint64_t, 4> args{};

  uint64_t span_id = 0;        // payload span that is held until the operation is done, 0 = none
  std::span<std::byte> span;   // its bytes in the channel area
  std::vector<std::byte> own;  // launch parameters, or a small COPY_IN, copied out of the payload
  uint32_t area = kNoArea;     // area that a step of this operation touches

  const FunctionInfo* function = nullptr;
  uint32_t max_dynamic_shared = 0;
  LaunchShape shape{};

  // Progress, owned by whoever runs the step.
  bool area_lost = false;  // its buffer was taken away
  bool started = false;
  uint64_t done_bytes = 0;
  std::unique_ptr<GpuGrid> grid;
  bool holds_blocks = false;  // as of its last step
  uint64_t short_of = 0;      // bytes of host memory that it waits for; 0: it does not
  uint32_t grants = 0;        // how often they were there since it last had what it needs, and then were not
  bool awaits_end = false;    // there are none until another kernel of the context ends
  bool last_chance = false;   // there are none: it fails unless caches can be dropped for it
};

// Of a WAIT_VALUE or WRITE_VALUE.
inline uint32_t WordBytes(const Op& op) { return op.args[2] == 4 ? 4 : 8; }

// With what the entry says of it.
std::unique_ptr<Op> MakeOp(const vgpu_sqe& sqe);

inline bool HasBegun(const Op& op) { return op.started || op.grid != nullptr; }

// May a step of it be run as far as host memory goes?
inline bool HasMemory(const Op& op) { return op.short_of == 0 || op.last_chance; }
// Needs the GPU; the others end as soon as they are at the head of their stream.
inline bool NeedsGpu(const Op& op) { return FindOp(op.kind)->step != nullptr; }

}  // namespace vgpud::exec
