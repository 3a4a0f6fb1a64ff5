// SPDX-License-Identifier: Apache-2.0
// Large modules are loaded function by function: programs use few of the thousands of kernels that a library brings.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "gpu/gpu.h"
#include "gpu/ptx/parser.h"
#include "gpu/soft/code/op_table.h"
#include "gpu/soft/code/program.h"
#include "gpu/soft/decode/decoder.h"

namespace vgpud::soft {

// What is known of a text of which no body was read.
struct Headers {
  std::unique_ptr<ptx::Module> module;
  ptx::BodyEnds ends;
};
// nullptr where `text` is better loaded as a whole: it is short, or has too many functions.
GpuResult<std::unique_ptr<Headers>> ReadHeaders(const std::string& text);

// The code of `kernel`, or of all where that is empty, and of all that it can come to; the functions' indices are those
// of the whole module. `read`: bytes of bodies that were read.
GpuResult<std::shared_ptr<const ProgramCode>> DecodeKernel(const std::string& text, const ptx::BodyEnds& ends,
                                                           std::string_view kernel, const OpTable& table,
                                                           DecodeFor what_for, uint64_t* read);

}  // namespace vgpud::soft
