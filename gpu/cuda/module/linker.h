// SPDX-License-Identifier: Apache-2.0
// Modules of several parts (docs/fatbin.md): of a card they are linked by its driver.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "gpu/cuda/card.h"

namespace vgpud::driver {

// What the driver's linker makes of the parts of `image`: machine code for this card. nullopt: it is of one piece.
// `of_ptx`: the driver must not see their own machine code (machine_code.h); a part without PTX is refused.
// Errors: a damaged part, or what the driver says, with its linker's words. The thread that calls the Gpu.
[[nodiscard]] GpuResult<std::optional<std::vector<std::byte>>> LinkParts(const Card& card,
                                                                         std::span<const std::byte> image, bool of_ptx);

}  // namespace vgpud::driver
