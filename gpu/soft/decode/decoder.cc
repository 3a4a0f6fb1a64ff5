// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/decode/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/checked.h"
#include "base/result.h"
#include "gpu/soft/calls/extern_functions.h"
#include "gpu/soft/decode/call_depth.h"
#include "gpu/soft/decode/function.h"
#include "gpu/soft/run/warp.h"

namespace vgpud::soft {
namespace {

// Of the module's variables, those that are named in what was looked at.
class Used {
 public:
  explicit Used(const ptx::Module& module) : seen_(module.variables.size()) {}
  void Add(const ptx::Function& f) {
    for (const ptx::Instruction& i : f.code) Add(i.operands);
  }
  bool Has(uint32_t variable) const { return seen_[variable] != 0; }
  // In the order of their declaration.
  std::vector<uint32_t> All() const {
    std::vector<uint32_t> all = all_;
    std::sort(all.begin(), all.end());
    return all;
  }
  void Clear() {
    for (const uint32_t v : all_) seen_[v] = 0;
    all_.clear();
  }

 private:
  void Add(const std::vector<ptx::Operand>& operands) {
    for (const ptx::Operand& o : operands) {
      const bool variable = o.kind == ptx::Operand::Kind::kVariable ||
                            (o.kind == ptx::Operand::Kind::kAddress && o.base == ptx::Operand::Base::kVariable);
      if (variable && !o.local_variable && seen_[o.index] == 0) {
        seen_[o.index] = 1;
        all_.push_back(o.index);
      }
      Add(o.elements);
    }
  }
  std::vector<uint8_t> seen_;
  std::vector<uint32_t> all_;
};

// Places `.shared` variables of the module: those that functions use at the same offset in every kernel, then each
// kernel's own.
class SharedPlan {
 public:
  explicit SharedPlan(const ptx::Module& module)
      : module_(module), offsets_(module.variables.size()), common_(module), own_(module) {}
  // All functions that are no kernels come first, then PlaceCommon.
  void Look(const ptx::Function& f) {
    if (!f.is_kernel) common_.Add(f);
  }
  void PlaceCommon() { common_end_ = Place(common_.All(), 0); }
  // Sets offsets() for `f`; returns the end of its variables.
  uint64_t PlaceFor(const ptx::Function& f) {
    if (!f.is_kernel) return common_end_;
    own_.Clear();
    own_.Add(f);
    std::vector<uint32_t> own = own_.All();
    std::erase_if(own, [this](uint32_t v) { return common_.Has(v); });
    return Place(own, common_end_);
  }
  // Of the module's variables; only those that the function placed last uses mean anything.
  const std::vector<uint64_t>& offsets() const { return offsets_; }

 private:
  // One after the other.
  // What does not fit 64 bits ends at 2^64 - 1, which is too much for any kernel.
  uint64_t Place(const std::vector<uint32_t>& used, uint64_t begin) {
    CheckedSize at = begin;
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
  std::vector<uint64_t> offsets_;
  Used common_;
  Used own_;
  uint64_t common_end_ = 0;
};

using Look = std::function<void(uint32_t function)>;
// Has `look` see each function while its body is there.
using EachBody = std::function<GpuResult<void>(const Look& look)>;

// The first error of a module in which nothing can be launched because of errors, else nullptr.
const GpuError* OnlyErrors(const ProgramCode& program) {
  const GpuError* first = nullptr;
  for (const auto& f : program.functions) {
    if (f->is_kernel && !f->error) return nullptr;
    if (first == nullptr && f->error) first = &*f->error;
  }
  return first;
}

void NameFunctions(const ptx::Module& module, ProgramCode& program) {
  for (const auto& f : module.functions) {
    auto code = std::make_unique<CodeFunction>();
    code->info.name = f->name;
    code->is_kernel = f->is_kernel;
    if (f->is_extern) code->provided = FindExternFunction(f->name);
    code->is_undefined = f->is_extern && !f->is_kernel && code->provided == nullptr;
    if (f->is_extern && f->is_kernel)
      code->error = GpuError{CuStatus::kInvalidPtx, fmt::format("kernel {} is declared without a body", f->name)};
    const auto index = MustFit<uint32_t>(program.functions.size());
    // A definition wins against a declaration of the same name.
    const auto [at, fresh] = program.function_index.emplace(f->name, index);
    if (!fresh && !f->is_extern) at->second = index;
    program.functions.push_back(std::move(code));
  }
}

// Where each kernel that was left out says so.
bool NameLeftOut(const ptx::Module& module, ProgramCode& program) {
  bool left_out = false;
  for (size_t n = 0; n < module.functions.size(); ++n) {
    if (!module.functions[n]->is_left_out) continue;
    program.functions[n]->error =
        GpuError{CuStatus::kInvalidPtx,
                 fmt::format("{} is not loaded: nothing that was asked for names it", module.functions[n]->name)};
    left_out = true;
  }
  return left_out;
}

GpuResult<std::shared_ptr<const ProgramCode>> DecodeBodies(const ptx::Module& module, const OpTable& table,
                                                           DecodeFor what_for, const EachBody& each_body) {
  auto program = std::make_shared<ProgramCode>();
  NameFunctions(module, *program);
  LayOutParameters(module, *program);
  SharedPlan shared(module);
  TRY(each_body([&](uint32_t n) { shared.Look(*module.functions[n]); }));
  shared.PlaceCommon();
  ModuleContext context{module, table, *program, {}, what_for};
  TRY(each_body([&](uint32_t n) {
    const uint64_t shared_bytes = shared.PlaceFor(*module.functions[n]);
    auto r = DecodeFunction(context, n, shared.offsets(), shared_bytes);
    if (!r) program->functions[n]->error = std::move(r).error();
  }));
  program->source_lines = SourceLines(module);
  for (Inst& i : program->code) {
    if (i.target == nullptr) continue;
    i.target = program->code.data() + (reinterpret_cast<uintptr_t>(i.target) - 1);
  }
  program->constants = std::move(context.constants.bytes);
  program->address_constants = std::move(context.constants.addresses);
  SolveCallDepth(*program);
  if (NameLeftOut(module, *program)) return program;
  if (const GpuError* error = OnlyErrors(*program)) return tl::unexpected(*error);
  return program;
}

}  // namespace

GpuResult<std::shared_ptr<const ProgramCode>> Decode(const ptx::Module& module, const OpTable& table,
                                                     DecodeFor what_for) {
  return DecodeBodies(module, table, what_for, [&module](const Look& look) -> GpuResult<void> {
    for (uint32_t n = 0; n < module.functions.size(); ++n)
      if (!module.functions[n]->is_extern && !module.functions[n]->is_left_out) look(n);
    return {};
  });
}

GpuResult<std::shared_ptr<const ProgramCode>> Decode(ptx::LinkedParts& parts, const OpTable& table,
                                                     DecodeFor what_for) {
  return DecodeBodies(parts.module(), table, what_for, [&parts](const Look& look) -> GpuResult<void> {
    for (size_t n = 0; n < parts.count(); ++n) {
      const auto bodies = TRY(parts.ReadBodies(n));
      for (const uint32_t function : bodies.functions) look(function);
      parts.Leave(bodies);
    }
    return {};
  });
}

}  // namespace vgpud::soft
