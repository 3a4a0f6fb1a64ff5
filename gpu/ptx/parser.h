// SPDX-License-Identifier: Apache-2.0
// PTX text to ptx::Module (PTX ISA 9.0, "Syntax" and "Directives").
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "gpu/gpu.h"
#include "gpu/ptx/ir.h"

namespace vgpud::ptx {

// Parses one translation unit. Any bytes are safe to pass in. Errors: kInvalidPtx with "PTX line N: what, near `text`";
// kUnsupportedPtxVersion for a .version above 9.x. Time and memory are linear in the text; nesting is limited.
[[nodiscard]] GpuResult<std::unique_ptr<Module>> Parse(std::string_view text);

}  // namespace vgpud::ptx
