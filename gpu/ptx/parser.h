// SPDX-License-Identifier: Apache-2.0
// PTX text to ptx::Module (PTX ISA 9.0, "Syntax" and "Directives").
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "gpu/gpu.h"
#include "gpu/ptx/ir.h"
#include "gpu/ptx/lexer.h"

namespace vgpud::ptx {

// Where the bodies of functions end, by where they begin.
using BodyEnds = std::unordered_map<uint32_t, Lexer::Place>;

// What of a text is read; what is left out is not even looked at.
struct Reading {
  std::function<bool(std::string_view function)> wants_body;  // empty: all
  const BodyEnds* ends = nullptr;                             // of this text, from an earlier reading
};

// Parses one translation unit. Any bytes are safe to pass in. Errors: kInvalidPtx with "PTX line N: what, near `text`";
// kUnsupportedPtxVersion for a .version above 9.x. Time and memory are linear in the text; nesting is limited.
[[nodiscard]] GpuResult<std::unique_ptr<Module>> Parse(std::string_view text, const Reading& reading = {});

}  // namespace vgpud::ptx
