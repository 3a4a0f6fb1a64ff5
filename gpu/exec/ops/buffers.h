// SPDX-License-Identifier: Apache-2.0
// Buffers: memory that the guest shares with its executor, by the number that the guest gives. Kernels reach them at
// addresses that the GPU gives, never at one that the guest chooses.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "gpu/exec/channel/gpu_context.h"
#include "gpu/exec/channel/stream_work.h"
#include "gpu/exec/memory/area.h"

namespace vgpud::exec {

class Buffers {
 public:
  explicit Buffers(GpuContext& context) : context_(context) {}

  void Add(uint32_t id, GuestArea* area) { by_id_[id] = {area, false}; }
  // Queued operations of `work` on it will fail, kernels that use it as well, and a module that is being loaded into
  // it. No step may be running. Returns when no job is inside.
  void Drop(uint32_t id, StreamWork& work);
  void Clear() { by_id_.clear(); }
  // nullptr: there is none.
  GuestArea* Find(uint64_t id) const;
  // Makes kernels reach a buffer that is there. The address; kNotSupported, or what the GPU says.
  GpuResult<GpuVa> Share(uint32_t id);
  // After a reset, for the fresh context: each that was shared.
  void ShareAgain();
  // Of the shared buffer that has all of these bytes; nullptr: none has.
  std::shared_ptr<AreaUsers> UsersOf(GpuVa address, uint64_t bytes) const;

  // Where the guest wants the next buffers to be: VGPU_LIMIT_BUFFER_PART.
  uint32_t part() const { return part_; }
  void SetPart(uint32_t part) { part_ = part; }

 private:
  struct Buffer {
    GuestArea* area;
    bool shared;      // kernels reach it
    GpuVa address{};  // there
  };
  GpuContext& context_;
  std::unordered_map<uint32_t, Buffer> by_id_;
  uint32_t part_ = 0;
};

}  // namespace vgpud::exec
