// SPDX-License-Identifier: Apache-2.0
// How each launch can be taken off the GPU: the one place that decides.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "gpu/cuda/module/cuda_module.h"

namespace vgpud::driver {

// The name of a rung: "gate" where kernels stay as they are. nullopt: there is none of that name.
const char* RungName(rewrite::Rung rung);
std::optional<rewrite::Rung> FindRung(std::string_view name);

// Why a launch has to use the kernel as the program has it, which can't be stopped; empty: it can go in turns
// (TurnGrid). `most_shared`: bytes of shared memory that a block can have on this card. Pure.
std::string WhyNotInTurns(const Kernel& kernel, const LaunchShape& shape, uint32_t most_shared);

// A launch whose threads all end after so many instructions.
struct Short {
  uint32_t most = 0;                // 0: that is not known, or too many
  const InTurns* pieces = nullptr;  // the kernel for a part of its blocks at a time; nullptr: there is none
  bool by_launch = false;           // `most` is of this launch only
};
Short ShortOf(const Kernel& kernel, const LaunchShape& shape, std::span<const std::byte> params);
// Is it sure that the launch ends so soon that stopping it would cost more? Where `most` is of all launches, one that
// took little time before can't take much now. Pure.
bool EndsSoon(const Kernel& kernel, const Short& launch, const LaunchShape& shape, uint32_t multiprocessors);
// Blocks of such a launch that end soon, as long as none was measured; 1 at least. Pure.
uint64_t FirstPieceBlocks(const Short& launch, const LaunchShape& shape, uint32_t multiprocessors);

}  // namespace vgpud::driver
