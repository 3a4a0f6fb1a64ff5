// SPDX-License-Identifier: Apache-2.0
// What programs are told on stderr besides the codes that calls answer: what they asked of the driver API in vain, and
// why. VGPU_TRACE in the environment says how much: 0 nothing, 1 every refusal and the sums at exit; without it the
// first call of each name that is not supported.
#pragma once

namespace vgpud::cuda {

// Answer of every export that is not implemented: CUDA_ERROR_NOT_SUPPORTED. `index` is the position of `name` among the
// sorted exports. Any thread.
int NotSupported(unsigned index, const char* name);

// Calls counted so far for that export (for tests).
unsigned long NotSupportedCalls(unsigned index);

// "`name` `why`": the call does not do what it is for. Once, or each time with VGPU_TRACE=1.
void SayOnce(const char* name, const char* why);

// Says why a call was refused that is supported. Only with VGPU_TRACE=1: programs try things out.
void Trace(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace vgpud::cuda
