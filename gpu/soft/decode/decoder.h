// SPDX-License-Identifier: Apache-2.0
// ptx::Module to ProgramCode.
#pragma once

#include <memory>

#include "gpu/gpu.h"
#include "gpu/ptx/ir.h"
#include "gpu/ptx/link.h"
#include "gpu/soft/code/op_table.h"
#include "gpu/soft/code/program.h"

namespace vgpud::soft {

// What a text is decoded for, beside being run.
struct DecodeFor {
  bool check = false;    // with the instructions of the check mode (access_check.h)
  bool profile = false;  // with the form of each instruction (instruction_profile.h)
};

// An unknown instruction is kInvalidPtx with its text and PTX line; one that exists in PTX but not here is told the
// same way.
[[nodiscard]] GpuResult<std::shared_ptr<const ProgramCode>> Decode(const ptx::Module& module, const OpTable& table,
                                                                   DecodeFor what_for = {});
// All parts, whose bodies are read twice, a part at a time. Errors of LinkedParts::ReadBodies, too.
[[nodiscard]] GpuResult<std::shared_ptr<const ProgramCode>> Decode(ptx::LinkedParts& parts, const OpTable& table,
                                                                   DecodeFor what_for = {});

}  // namespace vgpud::soft
