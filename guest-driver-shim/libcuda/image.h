// How long is the program image that a CUDA call points at? The API passes only a pointer: the length follows from
// the image's own headers, which may be damaged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace vgpud::cuda {

struct ImageExtent {
  const void* start = nullptr;  // of the fatbin, ELF or PTX text (a wrapper is followed)
  uint64_t bytes = 0;
};

// Copies `bytes` at `from`; false when that memory cannot be read.
using MemoryReader = std::function<bool(void* to, const void* from, uint64_t bytes)>;

// Reads this process' memory without faulting (process_vm_readv; plain copying where the kernel forbids that).
bool ReadOwnMemory(void* to, const void* from, uint64_t bytes);

// Larger images are refused.
inline constexpr uint64_t kMaxImageBytes = uint64_t{1} << 31;

// False: neither wrapper (versions 1 and 2), fatbin, 64-bit ELF nor text, or its headers contradict themselves.
bool FindImage(const void* image, const MemoryReader& read, ImageExtent* out);

}  // namespace vgpud::cuda
