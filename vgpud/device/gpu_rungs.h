// SPDX-License-Identifier: Apache-2.0
// Which ways to take kernels off the GPU work on it: each is tried at start (docs/cuda-backend.md, "Tried at start").
#pragma once

#include <string>
#include <vector>

#include "vgpud/device/gpu_facts.h"

namespace vgpud::daemon {

inline constexpr char kChannelsRung[] = "channels";
// No way to take kernels off, but a program from its begin to its end as guests' programs run: in an executor's
// namespaces, user, root and jail.
inline constexpr char kProgramTrial[] = "program";

// One after the other, each in a process of its own with kernels of its own, which is killed when it has not ended
// within some seconds. Each builds on the weaker ones: behind one that does not work, and beyond `choice.cuda_rung`,
// none is tried. Weakest first, and behind them kProgramTrial.
std::vector<GpuRung> TryRungs(const GpuChoice& choice, const ExecStart& start);

// The best of gate, blocks and safepoints that works; empty: not even the gate does. Pure.
std::string BestRung(const std::vector<GpuRung>& rungs);

}  // namespace vgpud::daemon
