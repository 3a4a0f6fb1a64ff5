// SPDX-License-Identifier: Apache-2.0
// Reading a texture for all lanes of a warp at once: what nearly all fetches are, with the results of sampler.h bit for
// bit.
#pragma once

#include "gpu/soft/texture/sampler.h"

namespace vgpud::soft::VGPUD_ISA {

// Coordinates of the lanes: floats, or integers of FetchLanes. Those that the geometry has not are nullptr.
struct LanePoints {
  uint32_t mask;
  const uint32_t* at[3];
  const uint32_t* layer;
};
struct alignas(64) LaneTexels {
  uint32_t channel[4][kLanes];
};

// Each returns false for what only Sample and FetchTexel can do, lane by lane: several levels, sRGB, memory of which a
// part is not there any more. Nothing has happened then. `out` of lanes outside of the mask means nothing.
bool SampleLanes(const Texture& texture, const TexelMemory& memory, const LanePoints& points, LaneTexels& out);
bool FetchLanes(const Texture& texture, const TexelMemory& memory, const LanePoints& points, LaneTexels& out);

}  // namespace vgpud::soft::VGPUD_ISA
