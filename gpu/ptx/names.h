// SPDX-License-Identifier: Apache-2.0
// What a name in PTX text means, with nested scopes (PTX ISA, "State Spaces, Types, and Variables"; blocks `{ }` open
// scopes, inner declarations hide outer ones).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace vgpud::ptx {

struct Binding {
  enum class Kind : uint8_t {
    kRegister,        // index = register
    kVectorRegister,  // index = first of `count` registers, .x .y .z .w
    kLocalVariable,   // index into Function::variables
    kModuleVariable,  // index into Module::variables
    kParam,           // index into Function::params
    kReturnParam,     // ... Function::returns
    kBodyParam,       // ... Function::body_params
    kFunction,        // index into Module::functions
    kPrototype,       // a .callprototype or .calltargets label
    kBranchTable,     // a .branchtargets label: index into the parser's tables
  };
  Kind kind;
  uint32_t index;
  uint32_t count = 1;
};

class NameTable {
 public:
  NameTable() { OpenScope(); }
  void OpenScope();
  // Forgets what was declared since the matching OpenScope.
  void CloseScope();
  uint32_t depth() const { return static_cast<uint32_t>(scopes_.size()); }

  // False if this scope already has `name`.
  bool Declare(std::string_view name, Binding binding);
  // `%r<n>`: names prefix0 .. prefix(n-1) are registers first .. first + n-1.
  bool DeclareRange(std::string_view prefix, uint32_t first, uint32_t count);
  // The innermost meaning of `name`, a range's members included.
  std::optional<Binding> Find(std::string_view name) const;

 private:
  struct Entry {
    Binding binding;
    uint32_t depth;
    bool is_range;
    uint32_t hidden;  // the entry of the same name that this one hides
    std::string_view name;
  };
  using Index = std::unordered_map<std::string_view, uint32_t>;
  bool Add(Index& index, std::string_view name, Binding binding, bool is_range);
  // A range member "%r12": the entry of range "%r" and 12, or of "%r1" and 2.
  const Entry* FindRange(std::string_view name, uint32_t* member) const;

  std::vector<Entry> entries_;
  std::vector<uint32_t> scopes_;  // first entry of each open scope
  Index names_;
  Index ranges_;
};

// Is `name` a special register ("%tid.x", "%laneid") or the constant WARP_SZ? (PTX ISA, "Special Registers")
bool IsSpecialRegister(std::string_view name);

}  // namespace vgpud::ptx
