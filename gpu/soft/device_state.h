// What outlives a kernel and is reached by what it calls: memory, output, heap. One per context.
#pragma once

#include "gpu/soft/arena.h"
#include "gpu/soft/device_heap.h"
#include "gpu/soft/print_buffer.h"
#include "gpu/soft/texture.h"

namespace vgpud::soft {

struct DeviceState {
  explicit DeviceState(uint64_t vram_bytes) : arena(vram_bytes) {}
  Arena arena;
  PrintBuffer print;
  DeviceHeap heap;
  TextureTable textures;
};

}  // namespace vgpud::soft
