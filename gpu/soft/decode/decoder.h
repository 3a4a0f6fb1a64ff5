// SPDX-License-Identifier: Apache-2.0
// ptx::Module to ProgramCode.
#pragma once

#include <memory>

#include "gpu/gpu.h"
#include "gpu/ptx/ir.h"
#include "gpu/soft/code/op_table.h"
#include "gpu/soft/code/program.h"

namespace vgpud::soft {

// `check`: with the instructions of the check mode. An unknown instruction is
// kInvalidPtx with its text and PTX line; one that exists in PTX but not here is told the same way.
[[nodiscard]] GpuResult<std::shared_ptr<const ProgramCode>> Decode(const ptx::Module& module, const OpTable& table,
                                                                   bool check = false);

}  // namespace vgpud::soft
