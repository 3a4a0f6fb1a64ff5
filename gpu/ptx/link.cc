// SPDX-License-Identifier: Apache-2.0
#include "gpu/ptx/link.h"

#include <fmt/format.h>

#include <algorithm>
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

// Names and places that a relocation takes from other symbols.
void Follow(std::vector<Relocation>& relocations, const std::unordered_map<std::string, std::string_view>& renamed) {
  for (Relocation& r : relocations)
    if (const auto it = renamed.find(r.symbol); it != renamed.end()) r.symbol = it->second;
}

template <class Symbol>
void Rename(Symbol& s, const std::unordered_map<std::string, std::string_view>& renamed) {
  if (IsShared(s)) return;
  if (const auto it = renamed.find(s.name); it != renamed.end()) s.name = it->second;
}

}  // namespace

GpuResult<LinkedParts> LinkedParts::Read(std::span<const std::string> texts) {
  LinkedParts linked(texts);
  std::vector<std::unique_ptr<Module>> headers;
  for (const std::string& text : texts) {
    auto part = Parse(text, {[](std::string_view) { return false; }});
    if (!part) return tl::unexpected(std::move(part).error());
    for (const auto& f : (*part)->functions)
      if (IsShared(*f)) linked.taken_.insert(f->name);
    for (const Variable& v : (*part)->variables)
      if (IsShared(v)) linked.taken_.insert(v.name);
    headers.push_back(std::move(*part));
  }
  Module& merged = *linked.merged_;
  for (uint32_t n = 0; n < headers.size(); ++n) {
    Module& part = *headers[n];
    merged.version = std::max(merged.version, part.version);
    if (part.target.sm > merged.target.sm) merged.target = part.target;
    if (auto r = linked.Add(n, part); !r) return tl::unexpected(std::move(r).error());
    part.functions.clear();
    part.variables.clear();
    part.text.clear();
    part.text.shrink_to_fit();
  }
  merged.parts = std::move(headers);
  return linked;
}

GpuResult<void> LinkedParts::Add(uint32_t n, Module& part) {
  Names& names = names_.emplace_back();
  for (const auto& f : part.functions) Choose(*f, names);
  for (Variable& v : part.variables) Choose(v, names);
  names.variables.resize(part.variables.size());
  for (size_t at = 0; at < part.variables.size(); ++at) {
    Rename(part.variables[at], names.renamed);
    ptx::Follow(part.variables[at].relocations, names.renamed);
    auto index = AddVariable(std::move(part.variables[at]));
    if (!index) return tl::unexpected(std::move(index).error());
    names.variables[at] = *index;
  }
  for (auto& f : part.functions) {
    Rename(*f, names.renamed);
    if (auto r = AddFunction(n, std::move(f)); !r) return r;
  }
  return {};
}

// A symbol of its part alone gets a name that no other has.
template <class Symbol>
void LinkedParts::Choose(Symbol& s, Names& names) {
  if (IsShared(s) || taken_.insert(s.name).second) return;
  std::string fresh;
  uint32_t& n = next_.try_emplace(s.name, 2).first->second;
  for (; fresh.empty() || !taken_.insert(fresh).second; ++n) fresh = fmt::format("{}.{}", s.name, n);
  merged_->renamed.push_back(std::make_unique<std::string>(std::move(fresh)));
  names.renamed[s.name] = *merged_->renamed.back();
}

// Which files there are is known when bodies are read, as these name them by numbers.
void LinkedParts::AddFiles(const Module& part, Names& names) {
  if (names.first_file) return;
  names.first_file = MustFit<uint32_t>(merged_->files.size());
  for (const std::string_view file : part.files) {
    merged_->renamed.push_back(std::make_unique<std::string>(file));
    merged_->files.emplace_back(*merged_->renamed.back());
  }
}

GpuResult<LinkedParts::Bodies> LinkedParts::ReadBodies(size_t n) {
  auto part = Parse(texts_[n]);
  if (!part) return tl::unexpected(std::move(part).error());
  if ((*part)->variables.size() != names_[n].variables.size())
    return GpuFail(CuStatus::kInvalidPtx, fmt::format("part {} has other variables than its headers", n));
  AddFiles(**part, names_[n]);
  Bodies bodies;
  for (auto& f : (*part)->functions) {
    if (f->is_extern) continue;
    Rename(*f, names_[n].renamed);
    const auto at = functions_.find(f->name);
    if (at == functions_.end() || owner_[at->second] != n) continue;
    Follow(*f, names_[n]);
    merged_->functions[at->second] = std::move(f);
    bodies.functions.push_back(at->second);
  }
  (*part)->functions.clear();
  bodies.part = std::move(*part);
  return bodies;
}

void LinkedParts::Leave(const Bodies& bodies) {
  for (const uint32_t n : bodies.functions) {
    Function& f = *merged_->functions[n];
    f.registers = {};
    f.variables = {};
    f.body_params = {};
    f.code = {};
  }
}

std::unique_ptr<Module> LinkedParts::Take(std::vector<std::unique_ptr<Module>> read) {
  merged_->parts = std::move(read);
  return std::move(merged_);
}

void LinkedParts::Follow(Function& f, const Names& names) const {
  for (SourceLine& s : f.source_lines)
    if (s.file != kNoIndex) s.file += *names.first_file;
  for (Variable& v : f.variables) ptx::Follow(v.relocations, names.renamed);
  for (Instruction& i : f.code) Follow(i.operands, names);
}

void LinkedParts::Follow(std::vector<Operand>& operands, const Names& names) const {
  for (Operand& o : operands) {
    const bool variable =
        o.kind == Operand::Kind::kVariable || (o.kind == Operand::Kind::kAddress && o.base == Operand::Base::kVariable);
    if (variable && !o.local_variable && o.index < names.variables.size()) o.index = names.variables[o.index];
    if (o.kind == Operand::Kind::kFunction)
      if (const auto it = names.renamed.find(std::string(o.name)); it != names.renamed.end()) o.name = it->second;
    Follow(o.elements, names);
  }
}

GpuResult<uint32_t> LinkedParts::AddVariable(Variable&& v) {
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

GpuResult<void> LinkedParts::AddFunction(uint32_t n, std::unique_ptr<Function> f) {
  if (variables_.count(f->name) != 0) return Clash(f->name, "is a function in one and a variable in another");
  const auto [at, fresh] = functions_.emplace(f->name, MustFit<uint32_t>(merged_->functions.size()));
  if (fresh) {
    merged_->functions.push_back(std::move(f));
    owner_.push_back(n);
    return {};
  }
  std::unique_ptr<Function>& known = merged_->functions[at->second];
  const Strength ours = StrengthOf(*f), theirs = StrengthOf(*known);
  if (ours == Strength::kDefined && theirs == ours) return Clash(f->name, "is defined twice");
  if (known->is_kernel != f->is_kernel) return Clash(f->name, "is a kernel in one and a function in another");
  if (known->params.size() != f->params.size() || known->returns.size() != f->returns.size())
    return Clash(f->name, "has different parameters");
  if (ours <= theirs) return {};
  known = std::move(f);
  owner_[at->second] = n;
  return {};
}

GpuResult<std::unique_ptr<Module>> ParseParts(std::span<const std::string> texts) {
  if (texts.empty()) return GpuFail(CuStatus::kInvalidPtx, "a module without PTX");
  if (texts.size() == 1) return Parse(texts[0]);
  auto linked = LinkedParts::Read(texts);
  if (!linked) return tl::unexpected(std::move(linked).error());
  std::vector<std::unique_ptr<Module>> parts;
  for (size_t n = 0; n < texts.size(); ++n) {
    auto bodies = linked->ReadBodies(n);
    if (!bodies) return tl::unexpected(std::move(bodies).error());
    parts.push_back(std::move(bodies->part));
  }
  return linked->Take(std::move(parts));
}

}  // namespace vgpud::ptx
