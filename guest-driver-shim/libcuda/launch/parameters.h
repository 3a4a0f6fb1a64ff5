// SPDX-License-Identifier: Apache-2.0
// How cuLaunchKernel is told the parameters of a kernel.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vgpud::cuda {

constexpr size_t kMaxParameterBytes = 32764;
// Markers in its `extra` array, where the parameters are in one piece.
constexpr uintptr_t kExtraEnd = 0;
constexpr uintptr_t kExtraPointer = 1;
constexpr uintptr_t kExtraBytes = 2;

}  // namespace vgpud::cuda
