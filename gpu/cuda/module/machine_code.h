// SPDX-License-Identifier: Apache-2.0
// Machine code that the host's driver is too old for: one of CUDA 12 crashes on that of CUDA 13, so it never sees any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gpu/gpu.h"

namespace vgpud::driver {

// The highest ELF ABI version that a driver of this version (cuDriverGetVersion) is known to take.
uint8_t NewestElfAbi(int driver_version);

// Is machine code in `image`, a fat binary, too new for such a driver, or can't it be told? Its PTX has to do then. Of
// machine code alone: kInvalidImage, as drivers answer that notice it; the text says what helps.
GpuResult<bool> HasTooNewCode(std::span<const std::byte> image, int driver_version);

}  // namespace vgpud::driver
