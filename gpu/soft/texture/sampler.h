// SPDX-License-Identifier: Apache-2.0
// Reading a texture for one thread: which texels, how they are blended (CUDA C++ programming guide, "Texture
// Fetching").
#pragma once

#include "gpu/soft/texture/texel.h"

namespace vgpud::soft::VGPUD_ISA {

// What a fetch names: coordinates, for cubes a direction; then the layer.
struct SamplePoint {
  float at[3] = {0, 0, 0};
  uint32_t layer = 0;
  float lod = 0;
};

// Each returns false when a texel lies in memory that is not there any more; *missing is its offset in the arena.

// Floating point coordinates: filter and address mode apply.
bool Sample(const Texture& texture, const TexelMemory& memory, const SamplePoint& point, Texel* out, uint64_t* missing);
// Integer coordinates: one texel of level `lod`.
bool FetchTexel(const Texture& texture, const TexelMemory& memory, const int32_t (&at)[3], uint32_t layer, int32_t lod,
                Texel* out, uint64_t* missing);
// Channel `component` of the four texels that a bilinear filter would blend: lower left first, counterclockwise.
bool Gather(const Texture& texture, const TexelMemory& memory, const SamplePoint& point, uint32_t component, Texel* out,
            uint64_t* missing);
// The image that `layer` names; of a cube `at` is a direction and becomes the place on the face.
uint32_t SliceOf(const Texture& texture, uint32_t layer, float (&at)[3]);
// The level of detail for the changes of the coordinates to the right and below.
float LodOfGradients(const Texture& texture, const SamplePoint& point, const float (&dx)[3], const float (&dy)[3]);

}  // namespace vgpud::soft::VGPUD_ISA
