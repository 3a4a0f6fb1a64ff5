// SPDX-License-Identifier: Apache-2.0
// The state of a warp between two instructions, written out and read back. Program counters are indices into the code.
#pragma once

#include "gpu/soft/code/program.h"
#include "gpu/soft/run/warp.h"
#include "gpu/soft/state/state_stream.h"

namespace vgpud::soft {

void SaveWarp(StateWriter& out, const Warp& warp, const Program& program);

// Into a warp whose memory is in place and zero. `lanes`: that it had at its start. Checks all that handlers rely on:
// lanes are in exactly one split, counters stand in code that belongs to the kernel, call chains lead back to it.
void LoadWarp(StateReader& in, Warp& warp, const Program& program, const CodeFunction& kernel, uint32_t lanes);

}  // namespace vgpud::soft
