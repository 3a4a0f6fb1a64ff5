// SPDX-License-Identifier: Apache-2.0
#include "gpu/ptx/link.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/checked.h"
#include "gpu/ptx/parser.h"

namespace vgpud::ptx {
namespace {

enum class Strength { kDeclared, kWeak, kDefined };

template <class Symbol>
Strength StrengthOf(const Symbol& s) {
  return s.is_extern ? Strength::kDeclared : s.is_weak ? Strength::kWeak : Strength::kDefined;
}
template <class Symbol>
bool IsShared(const Symbol& s) {
  return s.is_extern || s.is_weak || s.is_visible;
}

tl::unexpected<GpuError> Clash(std::string_view name, std::string_view why) {
  return GpuFail(CuStatus::kInvalidPtx, fmt::format("linking PTX modules: `{}` {}", name, why));
}

class Linker {
 public:
  explicit Linker(std::vector<std::unique_ptr<Module>> parts) : parts_(std::move(parts)) {}

  GpuResult<std::unique_ptr<Module>> Run() {
    for (const auto& part : parts_) {
      for (const auto& f : part->functions)
        if (IsShared(*f)) taken_.insert(f->name);
      for (const Variable& v : part->variables)
        if (IsShared(v)) taken_.insert(v.name);
    }
    for (const auto& part : parts_) {
      merged_->version = std::max(merged_->version, part->version);
      if (part->target.sm > merged_->target.sm) merged_->target = part->target;
      if (auto r = Add(*part); !r) return tl::unexpected(std::move(r).error());
    }
    merged_->parts = std::move(parts_);
    return std::move(merged_);
  }

 private:
  using Indices = std::vector<uint32_t>;

  GpuResult<void> Add(Module& part) {
    renamed_.clear();
    for (const auto& f : part.functions) Rename(*f);
    for (Variable& v : part.variables) Rename(v);
    Indices variables(part.variables.size());
    for (size_t n = 0; n < part.variables.size(); ++n) {
      Follow(part.variables[n].relocations);
      auto index = AddVariable(std::move(part.variables[n]));
      if (!index) return tl::unexpected(std::move(index).error());
      variables[n] = *index;
    }
    const auto first_file = MustFit<uint32_t>(merged_->files.size());
    merged_->files.insert(merged_->files.end(), part.files.begin(), part.files.end());
    for (auto& f : part.functions) {
      for (SourceLine& s : f->source_lines)
        if (s.file != kNoIndex) s.file += first_file;
      for (Variable& v : f->variables) Follow(v.relocations);
      for (Instruction& i : f->code) Follow(i.operands, variables);
      if (auto r = AddFunction(std::move(f)); !r) return r;
    }
    part.functions.clear();
    part.variables.clear();
    return {};
  }

  // A symbol of its part alone gets a name that no other has.
  template <class Symbol>
  void Rename(Symbol& s) {
    if (IsShared(s) || taken_.insert(s.name).second) return;
    std::string fresh;
    for (uint32_t n = 2; fresh.empty() || !taken_.insert(fresh).second; ++n) fresh = fmt::format("{}.{}", s.name, n);
    merged_->renamed.push_back(std::make_unique<std::string>(fresh));
    renamed_[s.name] = *merged_->renamed.back();
    s.name = std::move(fresh);
  }

  void Follow(std::vector<Relocation>& relocations) const {
    for (Relocation& r : relocations)
      if (const auto it = renamed_.find(r.symbol); it != renamed_.end()) r.symbol = it->second;
  }

  void Follow(std::vector<Operand>& operands, const Indices& variables) const {
    for (Operand& o : operands) {
      const bool variable = o.kind == Operand::Kind::kVariable ||
                            (o.kind == Operand::Kind::kAddress && o.base == Operand::Base::kVariable);
      if (variable && !o.local_variable && o.index < variables.size()) o.index = variables[o.index];
      if (o.kind == Operand::Kind::kFunction)
        if (const auto it = renamed_.find(std::string(o.name)); it != renamed_.end()) o.name = it->second;
      Follow(o.elements, variables);
    }
  }

  GpuResult<uint32_t> AddVariable(Variable&& v) {
    if (functions_.count(v.name) != 0) return Clash(v.name, "is a function in one and a variable in another");
    const auto [at, fresh] = variables_.emplace(v.name, MustFit<uint32_t>(merged_->variables.size()));
    if (fresh) {
      merged_->variables.push_back(std::move(v));
      return at->second;
    }
    Variable& known = merged_->variables[at->second];
    if (known.space != v.space) return Clash(v.name, "lies in different state spaces");
    const Strength ours = StrengthOf(v), theirs = StrengthOf(known);
    if (ours == Strength::kDefined && theirs == ours) return Clash(v.name, "is defined twice");
    const uint32_t align = std::max(known.align, v.align);
    const bool larger = ours == theirs && v.bytes > known.bytes;
    if (ours > theirs || larger) known = std::move(v);
    known.align = align;
    return at->second;
  }

  GpuResult<void> AddFunction(std::unique_ptr<Function> f) {
    if (variables_.count(f->name) != 0) return Clash(f->name, "is a function in one and a variable in another");
    const auto [at, fresh] = functions_.emplace(f->name, MustFit<uint32_t>(merged_->functions.size()));
    if (fresh) {
      merged_->functions.push_back(std::move(f));
      return {};
    }
    std::unique_ptr<Function>& known = merged_->functions[at->second];
    const Strength ours = StrengthOf(*f), theirs = StrengthOf(*known);
    if (ours == Strength::kDefined && theirs == ours) return Clash(f->name, "is defined twice");
    if (known->is_kernel != f->is_kernel) return Clash(f->name, "is a kernel in one and a function in another");
    if (known->params.size() != f->params.size() || known->returns.size() != f->returns.size())
      return Clash(f->name, "has different parameters");
    if (ours > theirs) known = std::move(f);
    return {};
  }

  std::vector<std::unique_ptr<Module>> parts_;
  std::unique_ptr<Module> merged_ = std::make_unique<Module>();
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, std::string_view> renamed_;  // of the part at hand
  std::unordered_map<std::string, uint32_t> functions_;
  std::unordered_map<std::string, uint32_t> variables_;
};

}  // namespace

GpuResult<std::unique_ptr<Module>> Link(std::vector<std::unique_ptr<Module>> parts) {
  if (parts.size() == 1) return std::move(parts.front());
  return Linker(std::move(parts)).Run();
}

GpuResult<std::unique_ptr<Module>> ParseParts(std::span<const std::string> texts) {
  if (texts.empty()) return GpuFail(CuStatus::kInvalidPtx, "a module without PTX");
  std::vector<std::unique_ptr<Module>> parts;
  for (const std::string& text : texts) {
    auto part = Parse(text);
    if (!part) return tl::unexpected(std::move(part).error());
    parts.push_back(std::move(*part));
  }
  return Link(std::move(parts));
}

}  // namespace vgpud::ptx
