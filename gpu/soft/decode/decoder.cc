// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/decode/decoder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "gpu/soft/calls/extern_functions.h"
#include "gpu/soft/decode/call_depth.h"
#include "gpu/soft/decode/function.h"
#include "gpu/soft/run/warp.h"

namespace vgpud::soft {
namespace {

// The module's variables that `operands` name.
void CollectVariables(const std::vector<ptx::Operand>& operands, std::vector<uint32_t>& used) {
  for (const ptx::Operand& o : operands) {
    const bool variable = o.kind == ptx::Operand::Kind::kVariable ||
                          (o.kind == ptx::Operand::Kind::kAddress && o.base == ptx::Operand::Base::kVariable);
    if (variable && !o.local_variable) used.push_back(o.index);
    CollectVariables(o.elements, used);
  }
}

// Places `.shared` variables of the module: those that functions use at the same offset in every kernel, then each
// kernel's own.
class SharedPlan {
 public:
  explicit SharedPlan(const ptx::Module& module) : module_(module), offsets_(module.variables.size()) {
    std::vector<uint32_t> used;
    for (const auto& f : module.functions) {
      if (f->is_kernel) continue;
      for (const ptx::Instruction& i : f->code) CollectVariables(i.operands, used);
    }
    common_set_.resize(module.variables.size());
    common_ = Place(used, 0);
    for (const uint32_t v : used) common_set_[v] = 1;
  }
  // Sets offsets() for `f`; returns the end of its variables.
  uint64_t PlaceFor(const ptx::Function& f) {
    if (!f.is_kernel) return common_;
    std::vector<uint32_t> used;
    for (const ptx::Instruction& i : f.code) CollectVariables(i.operands, used);
    std::erase_if(used, [&](uint32_t v) { return common_set_[v] != 0; });
    return Place(used, common_);
  }
  // Of the module's variables; only those that the function placed last uses mean anything.
  const std::vector<uint64_t>& offsets() const { return offsets_; }

 private:
  // One after the other in the order of their declaration, each once.
  // What does not fit 64 bits ends at 2^64 - 1, which is too much for any kernel.
  uint64_t Place(std::vector<uint32_t>& used, uint64_t begin) {
    CheckedSize at = begin;
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    for (const uint32_t v : used) {
      const ptx::Variable& variable = module_.variables[v];
      if (variable.space != ptx::Space::kShared || variable.bytes == 0) continue;
      at = at.AlignedUp(variable.align);
      offsets_[v] = at.saturated();
      at += variable.bytes;
    }
    return at.saturated();
  }
  const ptx::Module& module_;
  std::vector<uint8_t> common_set_;
  std::vector<uint64_t> offsets_;
  uint64_t common_ = 0;
};

// The first error of a module in which nothing can be launched because of errors, else nullptr.
const GpuError* OnlyErrors(const ProgramCode& program) {
  const GpuError* first = nullptr;
  for (const auto& f : program.functions) {
    if (f->is_kernel && !f->error) return nullptr;
    if (first == nullptr && f->error) first = &*f->error;
  }
  return first;
}

}  // namespace

GpuResult<std::shared_ptr<const ProgramCode>> Decode(const ptx::Module& module, const OpTable& table, bool check) {
  auto program = std::make_shared<ProgramCode>();
  program->source_lines = SourceLines(module);
  for (const auto& f : module.functions) {
    auto code = std::make_unique<CodeFunction>();
    code->info.name = f->name;
    code->is_kernel = f->is_kernel;
    if (f->is_extern) code->provided = FindExternFunction(f->name);
    if (f->is_extern && f->is_kernel)
      code->error = GpuError{CuStatus::kInvalidPtx, fmt::format("kernel {} is declared without a body", f->name)};
    const auto index = MustFit<uint32_t>(program->functions.size());
    // A definition wins against a declaration of the same name.
    const auto [at, fresh] = program->function_index.emplace(f->name, index);
    if (!fresh && !f->is_extern) at->second = index;
    program->functions.push_back(std::move(code));
  }
  bool left_out = false;
  LayOutParameters(module, *program);
  SharedPlan shared(module);
  ModuleContext context{module, table, *program, {}, check};
  for (uint32_t n = 0; n < module.functions.size(); ++n) {
    const ptx::Function& f = *module.functions[n];
    if (f.is_extern || f.is_left_out) continue;
    const uint64_t shared_bytes = shared.PlaceFor(f);
    auto r = DecodeFunction(context, n, shared.offsets(), shared_bytes);
    if (!r) program->functions[n]->error = std::move(r).error();
  }
  for (Inst& i : program->code) {
    if (i.target == nullptr) continue;
    i.target = program->code.data() + (reinterpret_cast<uintptr_t>(i.target) - 1);
  }
  program->constants = std::move(context.constants.bytes);
  program->address_constants = std::move(context.constants.addresses);

  SolveCallDepth(*program);
  for (uint32_t n = 0; n < module.functions.size(); ++n)
    if (module.functions[n]->is_left_out) {
      program->functions[n]->error =
          GpuError{CuStatus::kInvalidPtx,
                   fmt::format("{} is not loaded: nothing that was asked for names it", module.functions[n]->name)};
      left_out = true;
    }
  if (left_out) return program;
  if (const GpuError* error = OnlyErrors(*program)) return tl::unexpected(*error);
  return program;
}

}  // namespace vgpud::soft
