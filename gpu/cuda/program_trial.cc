// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/program_trial.h"

#include "gpu/cuda/self_test.h"

namespace vgpud::driver {

Result<std::string> TryProgram(const CudaBackend& backend) {
  for (const char* when : {"", "after its context was reset: "}) {
    const auto gpu = backend.MakeGpu();
    if (const auto ran = TestRung(*gpu, "gate", [] {}); !ran) return Fail(ran.error().code, when + ran.error().context);
  }
  return "two programs, one behind the other, had memory, a compiler, a kernel and copies, as a guest's have";
}

}  // namespace vgpud::driver
