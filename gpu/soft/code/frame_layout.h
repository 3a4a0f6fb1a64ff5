// SPDX-License-Identifier: Apache-2.0
// Where the registers of a kernel and of the functions that it calls lie in the stack of a warp.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/soft/code/program.h"

namespace vgpud::soft {

inline constexpr uint64_t kMaxStackBytes = 64u << 20;  // of a warp
// Recursion has room for so many levels, however much one takes.
inline constexpr uint64_t kLeastLevels = 24;

// How many of `wanted` levels of recursion there is room for when each takes `bytes` of a warp's stack; at least 1.
uint64_t FittingLevels(uint64_t bytes, uint64_t wanted);

// The lanes of a warp share its stack, and each may be in another function. So every function that a kernel can reach
// has a place of its own on every level of recursion: frames of different functions never share a byte, and in frames
// of the same function each lane has its own columns.
//
//   | kernel | f | g | h | f | g | h | f ...
//            |<- level ->|
//
// Callers lie before what they call; only a call in a circle goes to the next level. So frames of callees are always
// behind those of their callers.
struct FrameLayout {
  static constexpr uint32_t kNone = 0xffffffff;

  // By function: where its frame begins on level 0; kNone: the kernel does not reach it. Empty: it calls nothing.
  std::vector<uint32_t> base;
  uint32_t level_bytes = 0;
  uint32_t stack_bytes = 0;  // 0: more than a warp may have

  // The frame of `callee` when `caller`, whose frame is at `frame`, calls it. Both are reached. May lie beyond the
  // stack.
  uint64_t Callee(uint32_t frame, uint32_t caller, uint32_t callee) const {
    const uint32_t from = base[caller];
    const uint32_t to = base[callee];
    return uint64_t{frame} + to + (to <= from ? level_bytes : 0) - from;
  }
};

// Takes time in proportion to the functions of the module and to the calls in those that `kernel` reaches.
FrameLayout LayOutFrames(const Program& program, const CodeFunction& kernel);

}  // namespace vgpud::soft
