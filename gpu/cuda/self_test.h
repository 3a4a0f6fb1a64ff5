// SPDX-License-Identifier: Apache-2.0
// Does a way to take kernels off the GPU work here? Tried with kernels of its own, which never end by themselves or run
// long, before vgpud relies on it (docs/cuda-backend.md, "Tried at start").
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "gpu/cuda/cuda_gpu.h"

namespace vgpud::driver {

// `rung`: gate, blocks, safepoints or kill; `gpu` uses nothing better than that, and nothing else runs on it. The
// answer says what was seen. An error: it does not work, and why. It may also never return, where kernels do not end:
// whoever calls it has to end this process then. With "kill" it never returns, and calls `running` when its kernel
// runs, which is to be killed with the process.
[[nodiscard]] Result<std::string> TestRung(CudaGpu& gpu, std::string_view rung, const std::function<void()>& running);

}  // namespace vgpud::driver
