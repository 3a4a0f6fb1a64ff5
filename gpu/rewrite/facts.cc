// SPDX-License-Identifier: Apache-2.0
#include "gpu/rewrite/facts.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/checked.h"
#include "gpu/rewrite/limits.h"

namespace vgpud::rewrite {
namespace {

// Functions of the device runtime that know nothing of blocks.
constexpr std::string_view kHarmlessExterns[] = {"vprintf", "malloc", "free", "__assertfail"};
constexpr std::string_view kGridWideOpcodes[] = {"mapa", "getctarank", "griddepcontrol", "clusterlaunchcontrol"};
// Registers that only mean something where all blocks are there together, or that say which launch this is.
constexpr struct {
  std::string_view prefix;
  const char* why;
} kGridWideRegisters[] = {
    {"%envreg", "waits for the whole grid (cooperative groups)"},
    {"%cluster", "is made for clusters"},
    {"%ncluster", "is made for clusters"},
    {"%is_explicit_cluster", "is made for clusters"},
    {"%gridid", "reads the number of its launch"},
};

template <class Table>
bool Has(const Table& table, std::string_view word) {
  return std::find(std::begin(table), std::end(table), word) != std::end(table);
}

void Note(std::string& why, const ptx::Instruction& at, std::string_view what) {
  if (why.empty()) why = fmt::format("line {}: {} ({})", at.line, what, at.opcode);
}

uint64_t RoundedBytes(const ptx::Variable& variable) { return variable.bytes + variable.align; }

}  // namespace

std::optional<uint32_t> BlockComponent(const ptx::Operand& operand, bool* grid) {
  if (operand.kind != ptx::Operand::Kind::kSpecial) return std::nullopt;
  const size_t dot = operand.name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view base = operand.name.substr(0, dot);
  *grid = base == "%nctaid";
  const size_t component = std::string_view("xyz").find(operand.name.back());
  if ((base != "%ctaid" && base != "%nctaid") || component == std::string_view::npos) return std::nullopt;
  return MustFit<uint32_t>(component);
}

void ModuleFacts::LookAt(const ptx::Instruction& instruction, const ptx::Operand& operand, Facts& facts) {
  using Kind = ptx::Operand::Kind;
  bool grid = false;
  if (operand.kind == Kind::kSpecial) {
    facts.reads_block |= BlockComponent(operand, &grid).has_value();
    // The fourth component is always 0 or undefined.
    for (const auto& [prefix, why] : kGridWideRegisters)
      if (operand.name.starts_with(prefix)) Note(facts.grid_wide, instruction, why);
    return;
  }
  if (operand.kind == Kind::kFunction) {
    const auto at = by_name_.find(operand.name);
    if (at == by_name_.end() || module_.functions[at->second]->is_extern) {
      if (!Has(kHarmlessExterns, operand.name))
        Note(facts.grid_wide, instruction, fmt::format("{} is not in this module", operand.name));
      return;
    }
    if (module_.functions[at->second]->is_kernel && whole_.empty())
      whole_ = fmt::format("line {}: kernel {} is named by code, which may launch it", instruction.line, operand.name);
    facts.callees.push_back(at->second);
    return;
  }
  const bool is_variable = operand.kind == Kind::kVariable ||
                           (operand.kind == Kind::kAddress && operand.base == ptx::Operand::Base::kVariable);
  if (!is_variable || operand.local_variable) return;
  const ptx::Variable& variable = module_.variables[operand.index];
  if (variable.space == ptx::Space::kShared)
    (variable.is_extern || variable.bytes == 0 ? facts.dynamic_shared : facts.shared).push_back(operand.index);
}

void ModuleFacts::Look(const ptx::Function& function, Facts& facts) {
  const bool clustered = function.cluster[0] != 0 || function.most_cluster_blocks != 0 || function.explicit_cluster;
  if (clustered) facts.grid_wide = fmt::format("line {}: it is launched in clusters", function.line);
  for (const ptx::Instruction& instruction : function.code) {
    if (Has(kGridWideOpcodes, instruction.opcode)) Note(facts.grid_wide, instruction, "waits for other blocks");
    for (const std::string_view modifier : instruction.modifiers)
      if (modifier.find("cluster") != modifier.npos) Note(facts.grid_wide, instruction, "is made for clusters");
    if (instruction.opcode == "call")
      facts.indirect_calls |=
          std::any_of(instruction.operands.begin(), instruction.operands.end(),
                      [](const ptx::Operand& operand) { return operand.kind == ptx::Operand::Kind::kRegister; });
    for (const ptx::Operand& operand : instruction.operands)
      ForEach(operand, [&](const ptx::Operand& part) { LookAt(instruction, part, facts); });
  }
  for (auto* list : {&facts.callees, &facts.shared, &facts.dynamic_shared}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
}

ModuleFacts::ModuleFacts(const ptx::Module& module) : module_(module), steps_left_(Limits::kReachSteps) {
  const auto count = MustFit<uint32_t>(module.functions.size());
  for (uint32_t i = 0; i < count; ++i) by_name_.emplace(module.functions[i]->name, i);
  facts_.resize(count);
  seen_.resize(count);
  for (uint32_t i = 0; i < count; ++i) Look(*module.functions[i], facts_[i]);
  for (const ptx::Variable& variable : module.variables)
    for (const ptx::Relocation& relocation : variable.relocations) {
      const auto at = by_name_.find(relocation.symbol);
      if (at != by_name_.end() && module.functions[at->second]->is_kernel && whole_.empty())
        whole_ =
            fmt::format("line {}: {} holds the address of kernel {}", variable.line, variable.name, relocation.symbol);
    }
}

Reach ModuleFacts::ReachOf(uint32_t kernel) {
  Reach reach;
  std::vector<uint32_t> open{kernel};
  seen_[kernel] = kernel + 1;
  bool all = false;
  while (!open.empty()) {
    const uint32_t at = open.back();
    open.pop_back();
    const Facts& facts = facts_[at];
    const ptx::Function& function = *module_.functions[at];
    if (at != kernel) reach.functions.push_back(at);
    if (reach.grid_wide.empty()) reach.grid_wide = facts.grid_wide;
    reach.shared.insert(reach.shared.end(), facts.shared.begin(), facts.shared.end());
    reach.dynamic_shared |= !facts.dynamic_shared.empty();
    for (const ptx::Variable& variable : function.variables)
      if (variable.space == ptx::Space::kShared) reach.static_shared_bytes += RoundedBytes(variable);
    const auto visit = [&](uint32_t callee) {
      if (seen_[callee] == kernel + 1) return;
      seen_[callee] = kernel + 1;
      open.push_back(callee);
    };
    const uint64_t cost = 1 + facts.callees.size() + facts.shared.size() + function.variables.size();
    if (cost > steps_left_) {
      reach.too_large = true;
      return reach;
    }
    steps_left_ -= cost;
    for (const uint32_t callee : facts.callees) visit(callee);
    if (!facts.indirect_calls || all) continue;
    all = true;  // by address any of them may be meant
    if (module_.functions.size() > steps_left_) {
      reach.too_large = true;
      return reach;
    }
    steps_left_ -= module_.functions.size();
    for (uint32_t i = 0; i < module_.functions.size(); ++i)
      if (!module_.functions[i]->is_kernel && !module_.functions[i]->is_extern) visit(i);
  }
  std::sort(reach.shared.begin(), reach.shared.end());
  reach.shared.erase(std::unique(reach.shared.begin(), reach.shared.end()), reach.shared.end());
  for (const uint32_t variable : reach.shared) reach.static_shared_bytes += RoundedBytes(module_.variables[variable]);
  return reach;
}

}  // namespace vgpud::rewrite
