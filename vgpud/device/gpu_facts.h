// SPDX-License-Identifier: Apache-2.0
// Asks the driver of a GPU that is not vgpud's own, by a process that ends again, and looks for that GPU on the PCI
// bus.
#pragma once

#include <string>

#include "base/result.h"
#include "vgpud/device/exec_question.h"
#include "vgpud/model/gpu_facts.h"

namespace vgpud::daemon {

// Asks the driver, through an executor, and waits for that: up to a minute, while the driver starts the GPU. An error
// is what the driver, or who speaks to it, has to say.
[[nodiscard]] Result<GpuFacts> AskGpu(const GpuChoice& choice, const ExecStart& start);

// Its CUDA version as cuDriverGetVersion counts: 13000.
uint32_t DriverVersionOf(const GpuFacts& facts);

// "key=value" lines of vgpud-exec --describe-gpu. An error names the one that is missing or wrong.
[[nodiscard]] Result<GpuFacts> ParseGpuFacts(const std::string& lines);

}  // namespace vgpud::daemon
