// SPDX-License-Identifier: Apache-2.0
// One ptx::Function to instructions at the end of Program::code.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "gpu/gpu.h"
#include "gpu/ptx/ir.h"
#include "gpu/soft/code/op_table.h"
#include "gpu/soft/code/program.h"
#include "gpu/soft/decode/decoder.h"

namespace vgpud::soft {

// Immediates of a module, each broadcast to 32 lanes once.
struct ConstantPool {
  std::vector<std::byte> bytes;
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> known;
  std::vector<AddressConstant> addresses;
  std::map<std::tuple<uint32_t, uint64_t, uint32_t>, uint32_t> known_addresses;
  // Offset of `value` as 32 lanes of `lane_bytes` (4 or 8).
  uint32_t Add(uint64_t value, uint32_t lane_bytes);
  // Offset of 32 lanes to be filled in for each module with the address of a variable + `addend`.
  uint32_t AddAddress(uint32_t variable, uint64_t addend, uint32_t lane_bytes);
  // Offset of 32 different 4-byte values.
  uint32_t AddLanes(const uint32_t (&lanes)[kLanes]);
};

struct ModuleContext {
  const ptx::Module& module;
  const OpTable& table;
  ProgramCode& program;
  ConstantPool constants;
  DecodeFor what_for = {};
  std::map<std::string, uint16_t, std::less<>> forms = {};  // in ProgramCode::forms
};

// Offsets of parameters and results of all functions, before any is decoded (calls need them).
void LayOutParameters(const ptx::Module& module, ProgramCode& program);

// Decodes function `index`. `shared_offsets`: of module variables; `shared_end`: where its own ones begin.
[[nodiscard]] GpuResult<void> DecodeFunction(ModuleContext& context, uint32_t index,
                                             const std::vector<uint64_t>& shared_offsets, uint64_t shared_end);

}  // namespace vgpud::soft
