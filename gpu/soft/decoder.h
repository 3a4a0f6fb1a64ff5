// ptx::Module to Program.
#pragma once

#include <memory>

#include "gpu/gpu.h"
#include "gpu/soft/op_table.h"
#include "gpu/soft/program.h"
#include "gpu/soft/ptx_ir.h"

namespace vgpud::soft {

// `addresses`: of each .global and .const variable of `module`, by index; 0 for others. An unknown instruction is
// kInvalidPtx with its text and PTX line; one that exists in PTX but not here is told the same way.
[[nodiscard]] GpuResult<std::shared_ptr<Program>> Decode(const ptx::Module& module, const OpTable& table,
                                                         const std::vector<uint64_t>& addresses);

}  // namespace vgpud::soft
