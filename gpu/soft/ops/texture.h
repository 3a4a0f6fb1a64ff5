// SPDX-License-Identifier: Apache-2.0
// Operands of texture and surface instructions (gpu/soft/code/texture_form.h), lane by lane.
#pragma once

#include <fmt/format.h>

#include "gpu/soft/code/texture_form.h"
#include "gpu/soft/ops/common.h"
#include "gpu/soft/run/grid.h"
#include "gpu/soft/texture/texel.h"

namespace vgpud::soft::VGPUD_ISA {

ALWAYS TextureForm FormOf(const Inst* i) { return Bits<TextureForm>(i->imm); }
// Source `n` of the instruction at `i`.
template <class T>
ALWAYS const Slot<T>* SourceOf(const Warp& w, const Inst* i, uint32_t n) {
  return In<T>(w, i + 1 + n / kPerCarrier, static_cast<int>(n % kPerCarrier));
}
ALWAYS TexelMemory MemoryOf(const Warp& w) { return {w.arena, w.arena_bytes, w.pages}; }

// The texture or surface that a lane names; lanes mostly name the same. nullptr: a fault was raised.
class TextureOfLane {
 public:
  TextureOfLane(Warp& w, const Inst* i, bool surface)
      : warp_(w), inst_(i), handles_(SourceOf<uint64_t>(w, i, 0)), surface_(surface) {}
  const Texture* operator()(uint32_t lane) {
    if (last_ != nullptr && last_->handle == handles_[lane]) return last_;
    last_ = warp_.grid->device().textures.Find(handles_[lane]);
    if (last_ != nullptr && last_->desc.surface == surface_) return last_;
    const char* wanted = surface_ ? "surface" : "texture";
    RaiseFault(warp_, inst_, CuStatus::kIllegalAddress, lane,
               last_ == nullptr ? fmt::format("{:#x} is no {} object", handles_[lane], wanted)
                                : fmt::format("{:#x} is not a {} object", handles_[lane], wanted));
    return nullptr;
  }

 private:
  Warp& warp_;
  const Inst* inst_;
  const uint64_t* handles_;
  const bool surface_;
  const Texture* last_ = nullptr;
};

// f(lane, texture) for each active lane until it is false, which means that it has raised a fault; then false.
template <class F>
ALWAYS bool ForTexturesOfLanes(Warp& w, const Inst* i, bool surface, F f) {
  TextureOfLane texture_of(w, i, surface);
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto lane = static_cast<uint32_t>(__builtin_ctz(m));
    const Texture* t = texture_of(lane);
    if (t == nullptr || !f(lane, *t)) return false;
  }
  return true;
}

}  // namespace vgpud::soft::VGPUD_ISA
