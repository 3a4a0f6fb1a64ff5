// SPDX-License-Identifier: Apache-2.0
// How each launch can be taken off the GPU: the one place that decides.
#pragma once

#include <string>

#include "gpu/cuda/cuda_module.h"

namespace vgpud::driver {

// Why a launch has to use the kernel as the program has it, which can't be stopped; empty: it can go in turns
// (TurnGrid). `most_shared`: bytes of shared memory that a block can have on this card. Pure.
std::string WhyNotInTurns(const Kernel& kernel, const LaunchShape& shape, uint32_t most_shared);

}  // namespace vgpud::driver
