// SPDX-License-Identifier: Apache-2.0
// Arrays, textures and surfaces of the made-up driver (fake_driver.cc): kept in another order than memory has, so that
// who does not copy sees the wrong texels. All calls answer as those of cuda.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fake_cuda {

using Status = uint32_t;

// As CUDA_ARRAY3D_DESCRIPTOR as far as the flags. The last row comes first.
struct Array {
  size_t width, height, depth;
  unsigned format, channels, flags;
  std::vector<unsigned char> texels;
};
struct Levels {
  std::vector<Array> levels;
};
// As CUDA_RESOURCE_DESC of arrays.
struct Resource {
  int kind;
  const Array* array;
};
// As CUDA_MEMCPY3D.
struct Side {
  size_t x, y, z, level;
  int kind;
  const void* host;
  uint64_t device;
  Array* array;
  void* zero;
  size_t pitch, rows;
};
struct Copy3d {
  Side from, to;
  size_t width, height, depth;
};

Status MakeArray(Array** out, const Array* shape);
Status EndArray(Array* array);
Status MakeLevels(Levels** out, const Array* shape, unsigned count);
Status LevelOf(Array** out, Levels* levels, unsigned number);
Status EndLevels(Levels* levels);
Status Copy(const Copy3d& copy);
Status MakeTexture(uint64_t* out, const Resource* resource, const void*, const void*);
Status EndTexture(uint64_t texture);
// The handle is the address of the array, so that a test can write as kernels do.
Status MakeSurface(uint64_t* out, const Resource* resource);
Status EndSurface(uint64_t surface);

// A line of what was done, and all since it was asked last.
void Note(const char* line);
const char* TakeNotes();

}  // namespace fake_cuda
