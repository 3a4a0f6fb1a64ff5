#include "gpu/soft/decoder.h"

#include <fmt/format.h>

#include <algorithm>

#include "gpu/soft/decode_function.h"
#include "gpu/soft/extern_functions.h"
#include "gpu/soft/warp.h"

namespace vgpud::soft {
namespace {

uint64_t RoundUp(uint64_t v, uint64_t to) { return to == 0 ? v : (v + to - 1) / to * to; }

// Recursive functions get room for so many levels.
constexpr uint32_t kRecursionLevels = 24;
// Local memory of a thread, as on compute capability 7.5.
constexpr uint64_t kMaxLocalBytes = 512 << 10;

void CollectShared(const std::vector<ptx::Operand>& operands, std::vector<uint8_t>& used) {
  for (const ptx::Operand& o : operands) {
    const bool variable = o.kind == ptx::Operand::Kind::kVariable ||
                          (o.kind == ptx::Operand::Kind::kAddress && o.base == ptx::Operand::Base::kVariable);
    if (variable && !o.local_variable && o.index < used.size()) used[o.index] = 1;
    CollectShared(o.elements, used);
  }
}

// Places `.shared` variables of the module: those that functions use at the same offset in every kernel, then each
// kernel's own.
class SharedPlan {
 public:
  explicit SharedPlan(const ptx::Module& module) : module_(module), common_set_(module.variables.size()) {
    for (const auto& f : module.functions) {
      if (f->is_kernel) continue;
      for (const ptx::Instruction& i : f->code) CollectShared(i.operands, common_set_);
    }
    common_offsets_.resize(module.variables.size());
    common_ = Place(common_set_, 0, common_offsets_);
  }
  // Where the module's variables are for `f`; returns the end of them.
  uint64_t PlaceFor(const ptx::Function& f, std::vector<uint64_t>& offsets) const {
    offsets = common_offsets_;
    if (!f.is_kernel) return common_;
    std::vector<uint8_t> own(module_.variables.size());
    for (const ptx::Instruction& i : f.code) CollectShared(i.operands, own);
    for (size_t v = 0; v < own.size(); ++v) own[v] = own[v] && !common_set_[v];
    return Place(own, common_, offsets);
  }

 private:
  uint64_t Place(const std::vector<uint8_t>& used, uint64_t at, std::vector<uint64_t>& offsets) const {
    for (size_t v = 0; v < module_.variables.size(); ++v) {
      const ptx::Variable& variable = module_.variables[v];
      if (!used[v] || variable.space != ptx::Space::kShared || variable.bytes == 0) continue;
      at = RoundUp(at, variable.align);
      offsets[v] = at;
      at += variable.bytes;
    }
    return at;
  }
  const ptx::Module& module_;
  std::vector<uint8_t> common_set_;
  std::vector<uint64_t> common_offsets_;
  uint64_t common_ = 0;
};

// Stack and local memory with everything that `index` calls.
struct Depth {
  uint64_t stack = 0;
  uint64_t local = 0;
  uint32_t specials = 0;
  bool heap = false;
};

class DepthSolver {
 public:
  explicit DepthSolver(Program& program) : program_(program) {}
  Depth Of(uint32_t index) {
    CodeFunction& f = *program_.functions[index];
    if (std::find(path_.begin(), path_.end(), index) != path_.end()) {
      recursive_ = true;
      return {};
    }
    path_.push_back(index);
    Depth deepest;
    const auto visit = [&](uint32_t callee) {
      const Depth d = Of(callee);
      deepest.stack = std::max(deepest.stack, d.stack);
      deepest.local = std::max(deepest.local, d.local);
      deepest.specials |= d.specials;
      deepest.heap |= d.heap;
    };
    for (const uint32_t callee : f.callees) {
      if (callee != ptx::kNoIndex) {
        visit(callee);
      } else {
        for (uint32_t other = 0; other < program_.functions.size(); ++other)
          if (!program_.functions[other]->is_kernel) visit(other);
      }
    }
    path_.pop_back();
    deepest.stack += f.frame_bytes;
    deepest.local += f.local_bytes;
    deepest.specials |= f.warp_specials;
    deepest.heap |= f.provided != nullptr && f.provided->uses_heap;
    if (path_.empty()) {
      if (recursive_) {
        deepest.stack *= kRecursionLevels;
        deepest.local *= kRecursionLevels;
      }
      recursive_ = false;
    }
    return deepest;
  }

 private:
  Program& program_;
  std::vector<uint32_t> path_;
  bool recursive_ = false;
};

// The error of a function that kernel `index` calls by name, at any depth.
std::optional<GpuError> ErrorBelow(const Program& program, uint32_t index) {
  std::vector<uint8_t> seen(program.functions.size());
  std::vector<uint32_t> open = {index};
  while (!open.empty()) {
    const CodeFunction& f = *program.functions[open.back()];
    open.pop_back();
    if (f.error) return f.error;
    for (const uint32_t callee : f.callees) {
      if (callee == ptx::kNoIndex || seen[callee]) continue;
      seen[callee] = 1;
      open.push_back(callee);
    }
  }
  return std::nullopt;
}

// The first error of a module in which nothing can be launched because of errors, else nullptr.
const GpuError* OnlyErrors(const Program& program) {
  const GpuError* first = nullptr;
  for (const auto& f : program.functions) {
    if (f->is_kernel && !f->error) return nullptr;
    if (first == nullptr && f->error) first = &*f->error;
  }
  return first;
}

}  // namespace

GpuResult<std::shared_ptr<Program>> Decode(const ptx::Module& module, const OpTable& table,
                                           const std::vector<uint64_t>& addresses) {
  auto program = std::make_shared<Program>();
  for (const auto& f : module.functions) {
    auto code = std::make_unique<CodeFunction>();
    code->info.name = f->name;
    code->is_kernel = f->is_kernel;
    if (f->is_extern) code->provided = FindExternFunction(f->name);
    const auto index = static_cast<uint32_t>(program->functions.size());
    // A definition wins against a declaration of the same name.
    const auto [at, fresh] = program->function_index.emplace(f->name, index);
    if (!fresh && !f->is_extern) at->second = index;
    program->functions.push_back(std::move(code));
  }
  LayOutParameters(module, *program);
  const SharedPlan shared(module);
  ModuleContext context{module, table, addresses, *program, {}};
  for (uint32_t n = 0; n < module.functions.size(); ++n) {
    const ptx::Function& f = *module.functions[n];
    if (f.is_extern) continue;
    std::vector<uint64_t> shared_offsets;
    const uint64_t shared_bytes = shared.PlaceFor(f, shared_offsets);
    auto r = DecodeFunction(context, n, shared_offsets, shared_bytes);
    if (!r) program->functions[n]->error = std::move(r).error();
  }
  for (Inst& i : program->code) {
    if (i.target == nullptr) continue;
    i.target = program->code.data() + (reinterpret_cast<uintptr_t>(i.target) - 1);
  }
  // Immediates, aligned for the widest loads.
  program->constant_bytes.resize(context.constants.bytes.size() + kSlotAlign);
  program->constants =
      reinterpret_cast<std::byte*>(RoundUp(reinterpret_cast<uintptr_t>(program->constant_bytes.data()), kSlotAlign));
  std::copy(context.constants.bytes.begin(), context.constants.bytes.end(), program->constants);

  DepthSolver depth(*program);
  for (uint32_t n = 0; n < program->functions.size(); ++n) {
    CodeFunction& f = *program->functions[n];
    if (!f.is_kernel) continue;
    if (!f.error) f.error = ErrorBelow(*program, n);
    const Depth d = depth.Of(n);
    if (!f.error && (d.stack > (64u << 20) || d.local > kMaxLocalBytes))
      f.error = GpuError{CuStatus::kInvalidPtx,
                         fmt::format("kernel {} needs {} bytes of stack and {} of local memory: too much", f.info.name,
                                     d.stack, d.local)};
    if (f.error) continue;
    f.stack_bytes = static_cast<uint32_t>(d.stack);
    f.local_total = static_cast<uint32_t>(RoundUp(d.local, 16));
    f.warp_specials = d.specials;
    f.info.uses_heap = d.heap;
    f.info.local_bytes = static_cast<uint32_t>(d.local);
  }
  if (const GpuError* error = OnlyErrors(*program)) return tl::unexpected(*error);
  return program;
}

}  // namespace vgpud::soft
