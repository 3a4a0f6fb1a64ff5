// SPDX-License-Identifier: Apache-2.0
// How long is the program image that a CUDA call points at? The API passes only a pointer: the length follows from
// the image's own headers, which may be damaged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace vgpud::cuda {

struct ImageExtent {
  const void* start = nullptr;  // of the fatbin, ELF or PTX text (a wrapper is followed)
  uint64_t bytes = 0;
};

// Copies `bytes` at `from`; false when that memory cannot be read.
using MemoryReader = std::function<bool(void* to, const void* from, uint64_t bytes)>;

// Reads this process' memory without faulting (process_vm_readv; plain copying where the kernel forbids that).
bool ReadOwnMemory(void* to, const void* from, uint64_t bytes);
// Is all of it memory of this process, that can be read at both ends? False for no bytes at all.
bool IsMapped(const void* start, uint64_t bytes);

// Larger images are refused.
inline constexpr uint64_t kMaxImageBytes = uint64_t{1} << 31;

// What one call may list; more are refused.
inline constexpr size_t kMaxLinkedImages = 1 << 16;

// The image itself; of a program built with `nvcc -rdc=true` (wrapper version 2) the fatbins before device linking:
// what nvcc linked them to holds machine code only. Never empty on success. False: neither wrapper (versions 1 and 2),
// fatbin, 64-bit ELF nor text, its headers contradict themselves, or all together is above kMaxImageBytes.
bool FindImages(const void* image, const MemoryReader& read, std::vector<ImageExtent>* out);

// One image of those that are to be linked, each a fatbin or (any other bytes) PTX text; VGPU_FATBIN_KIND_PART.
// `most_registers`: that a thread may use, 0 = any.
std::vector<std::byte> JoinImages(const std::vector<std::vector<std::byte>>& images, uint32_t most_registers = 0);

}  // namespace vgpud::cuda
