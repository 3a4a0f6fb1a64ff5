// SPDX-License-Identifier: Apache-2.0
// Tries the rung "channels" (docs/cuda-channels.md): takes an executor's endless kernel off the GPU by the driver's own
// controls, without the executor's help.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "vgpud/device/exec_question.h"

namespace vgpud::daemon {

// What was seen. An error: it does not work here, and why, with the driver's refusal in words.
[[nodiscard]] Result<std::string> TryChannels(const GpuChoice& choice, const ExecStart& start, Ns limit);

}  // namespace vgpud::daemon
