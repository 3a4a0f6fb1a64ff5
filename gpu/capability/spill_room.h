// SPDX-License-Identifier: Apache-2.0
// Device memory in which kernels leave what they have when a turn ends in the middle of their blocks.
#pragma once

#include <cstdint>
#include <span>

#include "gpu/gpu.h"

namespace vgpud {

class SpillRoom {
 public:
  virtual ~SpillRoom() = default;
  // Bytes that a launch like this can use. Without them it runs all the same, and leaves later. Any thread.
  virtual uint64_t RoomFor(const FunctionInfo& function, const LaunchShape& shape) = 0;
  // Is there room for launches that use so many bytes each, all at once? Any thread.
  virtual bool HasRoom(std::span<const uint64_t> each) const = 0;
  // Bytes of VRAM that MakeRoom(bytes) takes.
  virtual uint64_t RoomBytes(uint64_t bytes) const = 0;
  // Makes room for one launch more. Not while a step runs. kOutOfMemory.
  virtual GpuResult<void> MakeRoom(uint64_t bytes) = 0;
  // Gives up what no launch uses now. Returns the bytes of VRAM given back. Not while a step runs.
  virtual uint64_t DropRoom() = 0;
};

}  // namespace vgpud
