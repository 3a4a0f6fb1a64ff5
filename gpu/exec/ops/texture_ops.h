// SPDX-License-Identifier: Apache-2.0
// Texture and surface objects: from the guest's bytes to a TextureDesc; what it means is checked by the backend.
#pragma once

#include "gpu/exec/channel/channel.h"
#include "gpu/exec/channel/gpu_context.h"
#include "gpu/exec/ops/vram_use.h"

namespace vgpud::exec {

class TextureOps {
 public:
  // All outlive it.
  TextureOps(Channel& channel, GpuContext& context, VramUse& vram)
      : channel_(channel), context_(context), vram_(vram) {}

  EntryVerdict Create(RingEntry& entry);
  EntryVerdict Destroy(RingEntry& entry);

 private:
  Channel& channel_;
  GpuContext& context_;
  VramUse& vram_;
};

template <auto Member>
inline constexpr auto kTexture = &Do<&OpTopics::textures, Member>;
inline constexpr OpRow kTextureRows[] = {
    {VGPU_OP_TEXTURE_CREATE,
     "TEXTURE_CREATE",
     kTexture<&TextureOps::Create>,
     {.payload = PayloadRule::kRequired, .payload_least = sizeof(vgpu_texture), .exclusive = true, .keeps = true}},
    {VGPU_OP_TEXTURE_DESTROY,
     "TEXTURE_DESTROY",
     kTexture<&TextureOps::Destroy>,
     {.args = 1, .exclusive = true, .needs_drain = true}},
};

}  // namespace vgpud::exec
