// SPDX-License-Identifier: Apache-2.0
// Several PTX modules of one program become one (`nvcc -rdc=true`, cuLink*; PTX ISA, "Linking Directives").
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpu/gpu.h"
#include "gpu/ptx/ir.h"

namespace vgpud::ptx {

// Declarations find the definitions of other parts. What is neither .visible, .weak, .common nor .extern belongs to its
// part alone and gets another name where two parts use the same. Of several .weak ones the first stays; one that is not
// .weak wins against them. Functions that no part defines stay declarations. One part comes back as it is.
// Errors (kInvalidPtx): a name that two parts define, or as different things. `parts` must not be empty.
[[nodiscard]] GpuResult<std::unique_ptr<Module>> Link(std::vector<std::unique_ptr<Module>> parts);

// Parse() and Link() of all `texts`; kInvalidPtx if there is none.
[[nodiscard]] GpuResult<std::unique_ptr<Module>> ParseParts(std::span<const std::string> texts);

}  // namespace vgpud::ptx
