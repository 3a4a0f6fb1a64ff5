// SPDX-License-Identifier: Apache-2.0
// Counts and, with VGPU_TRACE=1 in the environment, prints what programs asked of the driver API in vain.
#pragma once

namespace vgpud::cuda {

// Answer of every export that is not implemented: CUDA_ERROR_NOT_SUPPORTED. `index` is the position of `name` among the
// sorted exports. Any thread; the sums are printed to stderr at exit when VGPU_TRACE=1.
int NotSupported(unsigned index, const char* name);

// Calls counted so far for that export (for tests).
unsigned long NotSupportedCalls(unsigned index);

}  // namespace vgpud::cuda
