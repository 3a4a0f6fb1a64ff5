// SPDX-License-Identifier: Apache-2.0
// A module after decoding: all its code in one array, so that a program counter is a pointer into it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gpu/gpu.h"
#include "gpu/ptx/ir.h"
#include "gpu/soft/code/inst.h"
#include "gpu/soft/code/source_lines.h"

namespace vgpud::soft {

// Special registers whose lanes are written when a CTA starts (warp area) or a grid is launched (grid area). Their
// number is the slot in the area.
enum WarpSpecial : uint32_t {
  kTidX,
  kTidY,
  kTidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kWarpId,
  kSmId,
  kClusterCtaidX,
  kClusterCtaidY,
  kClusterCtaidZ,
  kClusterIdX,
  kClusterIdY,
  kClusterIdZ,
  kClusterCtaRank,
  kWarpSpecialCount,
  // No registers: the bits in CodeFunction::warp_specials of code that reaches tensor memory, and that looks for the
  // reserved shared memory.
  kUsesTensorMemory = 30,
  kUsesReservedShared = 31
};
enum GridSpecial : uint32_t {
  kNtidX,
  kNtidY,
  kNtidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kNwarpId,
  kGridId,
  kTotalShared,
  kDynamicShared,
  kEnvironment1,  // of a cooperative launch: the address of its workspace
  kEnvironment2,
  kReservedSharedBegin,
  kReservedSharedMiddle,
  kReservedSharedEnd,
  kClusterNctaidX,
  kClusterNctaidY,
  kClusterNctaidZ,
  kNclusterIdX,
  kNclusterIdY,
  kNclusterIdZ,
  kClusterNctaRank,
  kIsExplicitCluster,  // a predicate
  kAllShared,          // with the reserved part
  kGridSpecialCount
};
inline constexpr uint32_t kSlot32 = 4 * kLanes;
inline constexpr uint32_t kSlot64 = 8 * kLanes;

// The grid area: the specials, where dynamic shared memory begins (as 32 and 64 bits), then the parameters.
inline constexpr uint32_t kDynamicBase32 = kGridSpecialCount * kSlot32;
inline constexpr uint32_t kDynamicBase64 = kDynamicBase32 + kSlot32;
inline constexpr uint32_t kGridAreaFixed = kDynamicBase64 + kSlot64;

// A kernel parameter that code reads as a register: broadcast into the grid area at launch.
struct ParamSlot {
  uint32_t param_offset;
  uint8_t bytes;       // in the parameter buffer
  uint8_t slot_bytes;  // 4 or 8
  bool is_signed;
  uint32_t area_offset;
};

struct ExternFunction;  // extern_functions.h

struct CodeFunction {
  FunctionInfo info;
  bool is_kernel = false;
  uint32_t entry = 0;               // index into Program::code
  uint32_t frame_bytes = 0;         // registers, predicates, parameter block
  uint32_t params_at = 0;           // offset in the frame of the block of `.param` variables, 32 * block_bytes
  uint32_t block_bytes = 0;         // per lane: own parameters, own results, body .params
  uint32_t local_bytes = 0;         // .local of this function alone, per lane
  std::vector<ptx::Param> params;   // offset = in the block (functions) or in the parameter buffer (kernels)
  std::vector<ptx::Param> returns;  // offset = in the block
  std::vector<ParamSlot> param_slots;
  uint32_t grid_area_bytes = 0;
  std::vector<uint32_t> callees;  // function indices; kNoIndex = through a pointer
  uint32_t levels = 1;            // of recursion that there is room for; what it calls included, as the next ones
  uint32_t local_total = 0;
  uint32_t dynamic_local = 0;  // of local_total: what alloca gives
  uint32_t shared_bytes = 0;
  uint32_t warp_specials = 0;  // bit set of WarpSpecial that it or a callee reads
  uint32_t required_threads[3] = {0, 0, 0};
  bool uses_alloca = false;
  bool launches = false;                     // launches kernels, itself or in what it calls
  const ExternFunction* provided = nullptr;  // what the device runtime has under its name, if it is only declared
  bool is_undefined = false;                 // only declared, and the device runtime has none of its name
  std::optional<GpuError> error;             // why it cannot run: the instruction and its line
};

struct CallSite {
  uint32_t callee = ptx::kNoIndex;  // kNoIndex: handle in operand 0
  uint32_t caller = 0;
  std::vector<ptx::Param> arguments;  // offset = in the caller's block
  std::vector<ptx::Param> results;
};

// Where an instruction came from.
struct Origin {
  uint32_t line;
  uint32_t function;
};

// 32 lanes among the constants that hold the address of a variable of the module.
struct AddressConstant {
  uint32_t offset;
  uint32_t lane_bytes;
  uint32_t variable;  // index in ptx::Module::variables
  uint64_t addend;
};

// What a text is decoded to. It does not depend on where the module's variables are and never changes again: modules
// that are loaded from the same text share it.
struct ProgramCode {
  std::vector<Inst> code;
  std::vector<Origin> origins;  // one per code entry
  std::vector<std::unique_ptr<CodeFunction>> functions;
  std::unordered_map<std::string, uint32_t> function_index;
  std::vector<CallSite> call_sites;
  std::vector<uint32_t> call_order;  // functions: callers before what they call, except for recursion
  std::vector<ExtraOperand> extra;   // each instruction's own ones in a row
  std::vector<std::byte> constants;  // broadcast immediates
  std::vector<AddressConstant> address_constants;
  SourceLines source_lines;
  std::vector<std::string> forms;  // decoded for the profile: opcodes with their modifiers
  std::vector<uint16_t> form_of;   // one per code entry then
};

// The code of one module: what is shared, with the module's own functions (their FunctionInfo is what a kernel is named
// by) and constants.
struct Program {
  std::shared_ptr<const ProgramCode> shared;
  std::span<const Inst> code;  // the views are of `shared`
  std::span<const Origin> origins;
  std::span<const CallSite> call_sites;
  std::span<const ExtraOperand> extra;
  std::vector<std::unique_ptr<CodeFunction>> functions;
  std::vector<std::byte> constant_bytes;
  std::byte* constants = nullptr;  // 64-byte aligned view of them

  std::optional<uint32_t> FindFunction(const std::string& name) const {
    const auto it = shared->function_index.find(name);
    return it == shared->function_index.end() ? std::nullopt : std::optional(it->second);
  }
};

// A program for a module whose variables are at `addresses` (by index; 0 = it has none).
std::shared_ptr<Program> MakeProgram(std::shared_ptr<const ProgramCode> code, const std::vector<uint64_t>& addresses);

// The value of a function's address: never a valid data address.
inline constexpr uint64_t kFunctionHandle = 0x00f0000000000000;

}  // namespace vgpud::soft
