// SPDX-License-Identifier: Apache-2.0
// Several PTX modules of one program become one (`nvcc -rdc=true`, cuLink*; PTX ISA, "Linking Directives").
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "gpu/gpu.h"
#include "gpu/ptx/ir.h"

namespace vgpud::ptx {

// The parts of a program, linked by their headers. Bodies are read a part at a time, so that a program of a hundred
// parts needs the memory of its largest one.
//
// Declarations find the definitions of other parts. What is neither .visible, .weak, .common nor .extern belongs to its
// part alone and gets another name where two parts use the same. Of several .weak ones the first stays; one that is not
// .weak wins against them. Functions that no part defines stay declarations.
class LinkedParts {
 public:
  // `texts` must not be empty and outlives what comes back. Errors (kInvalidPtx): those of Parse, a name that two parts
  // define, or as different things.
  [[nodiscard]] static GpuResult<LinkedParts> Read(std::span<const std::string> texts);

  // Of all parts. Functions that have a body are left out (Function::is_left_out) until it is read.
  Module& module() { return *merged_; }
  size_t count() const { return texts_.size(); }

  struct Bodies {
    std::unique_ptr<Module> part;     // the bodies' text
    std::vector<uint32_t> functions;  // of module(), that have a body now
  };
  // The bodies of part `n` < count(), in module() until Leave. Errors of Parse.
  [[nodiscard]] GpuResult<Bodies> ReadBodies(size_t n);
  // Forgets them, but for where their source lines are.
  void Leave(const Bodies& bodies);
  // The module with all that was read and not left, whose parts are `read`.
  [[nodiscard]] std::unique_ptr<Module> Take(std::vector<std::unique_ptr<Module>> read);

 private:
  using Indices = std::vector<uint32_t>;
  // How a part's own symbols are called in the whole.
  struct Names {
    std::unordered_map<std::string, std::string_view> renamed;
    Indices variables;  // by index in the part
    std::optional<uint32_t> first_file;
  };
  explicit LinkedParts(std::span<const std::string> texts) : texts_(texts) {}
  GpuResult<void> Add(uint32_t n, Module& part);
  template <class Symbol>
  void Choose(Symbol& symbol, Names& names);
  void AddFiles(const Module& part, Names& names);
  void Follow(Function& f, const Names& names) const;
  void Follow(std::vector<Operand>& operands, const Names& names) const;
  GpuResult<uint32_t> AddVariable(Variable&& v);
  GpuResult<void> AddFunction(uint32_t n, std::unique_ptr<Function> f);

  std::span<const std::string> texts_;
  std::unique_ptr<Module> merged_ = std::make_unique<Module>();
  std::vector<Names> names_;     // by part
  std::vector<uint32_t> owner_;  // of each function, the part that it is of
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, uint32_t> next_;  // the number to try for a name that is taken
  std::unordered_map<std::string, uint32_t> functions_;
  std::unordered_map<std::string, uint32_t> variables_;
};

// All `texts` with all bodies: one as it is, several linked. kInvalidPtx if there is none.
[[nodiscard]] GpuResult<std::unique_ptr<Module>> ParseParts(std::span<const std::string> texts);

}  // namespace vgpud::ptx
