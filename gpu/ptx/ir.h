// SPDX-License-Identifier: Apache-2.0
// PTX after parsing: names are resolved, nothing is interpreted yet. Which opcode + modifiers exist is the business of
// the decoder's table; the parser accepts any that are well-formed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/ptx/target.h"

namespace vgpud::ptx {

// Fundamental types of the PTX ISA ("Fundamental Types").
enum class Type : uint8_t {
  kNone,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF16x2,
  kBf16,
  kBf16x2,
  kTf32,
  kE4m3,
  kE5m2,
  kE4m3x2,
  kE5m2x2,
  kE2m3x2,
  kE3m2x2,
  kE2m1x2,
  kUe8m0x2,
  kU16x2,
  kS16x2,
  kF32,
  kF32x2,
  kF64,
  kPred,
  kTexref,
  kSamplerref,
  kSurfref,
};
// Size of one element in bytes; predicates and kNone are 0.
uint32_t SizeOf(Type type);
// "b32" -> kB32, kNone if `name` is no type.
Type TypeFromName(std::string_view name);

enum class Space : uint8_t { kGeneric, kReg, kGlobal, kConst, kShared, kSharedCluster, kLocal, kParam };

// A value that an initialiser takes from a symbol: the address of `symbol` + addend, stored as `bytes` little-endian
// bytes at `offset`. `generic`: written as generic(symbol).
struct Relocation {
  uint32_t offset;
  uint32_t bytes;
  std::string symbol;  // variable or function of the module
  int64_t addend;
  bool generic;
  bool mask = false;   // the mask form, 0xff00(symbol): one byte of that sum alone
  uint32_t shift = 0;  // of the mask form: which one, in bits
};

// A .global/.const/.shared/.local variable, at module scope or inside a function.
struct Variable {
  std::string name;
  Space space = Space::kGeneric;
  Type type = Type::kNone;
  uint32_t align = 1;
  uint64_t bytes = 0;  // 0: `[]` of an .extern (dynamic shared memory)
  bool is_extern = false;
  bool is_visible = false;
  bool is_weak = false;  // .weak or .common
  bool is_managed = false;
  std::vector<uint8_t> init;  // empty = zeros; shorter than bytes = rest is zero
  std::vector<Relocation> relocations;
  uint32_t line = 0;
  uint32_t depth = 0;  // in a function: as Register::depth
};

struct Param {
  std::string name;
  Type type = Type::kNone;
  uint32_t align = 1;
  uint32_t bytes = 0;
  // In the parameter buffer (natural alignment, declaration order); of a body parameter in the space that those of one
  // function share, where blocks that have ended leave their bytes to later ones.
  uint32_t offset = 0;
  uint32_t depth = 0;  // of a body parameter, as Register::depth
};

// A virtual register of a function; its index is its identity.
struct Register {
  std::string name;
  Type type = Type::kNone;  // kPred for predicates
  uint32_t depth = 1;       // of the block that declares it; 1 = the function's own
};

inline constexpr uint32_t kNoIndex = 0xffffffff;

// Special registers that take a component are listed per component: %tid.x, %clock64, ... by name.
struct Operand {
  enum class Kind : uint8_t {
    kRegister,   // index = register
    kImmediate,  // bits; is_float: written as 0f/0d/decimal fraction (bits = f64 pattern, or f32 pattern if is_f32)
    kSpecial,    // name = "%tid.x", "%laneid", "WARP_SZ" ...
    kVariable,  // index = into variables of the function (local_variable) or of the module; address = variable + offset
    kParam,     // index = into the params of the function (or, for .param in bodies, body_params) + offset
    kFunction,  // name of a function (call target, address of)
    kLabel,     // index = instruction index
    kAddress,   // [base + offset]; `base` says what the base is; [a, {x, y}]: what follows the comma is in elements
    kVector,    // {a, b, c, d}: elements
    kList,      // (a, b): call arguments / results; the labels of a brx.idx table (kLabel each): elements
    kSink,      // "_"
    kProto,     // name of a .callprototype / .calltargets label
  };
  enum class Base : uint8_t { kNone, kRegister, kVariable, kParam, kImmediate };  // of kAddress

  Kind kind = Kind::kSink;
  Base base = Base::kNone;
  bool negated = false;  // "!p"
  bool is_float = false;
  bool is_f32 = false;          // 0fXXXXXXXX
  bool local_variable = false;  // kVariable: declared in the function
  bool body_param = false;      // kParam: a .param declared in the body (call argument space)
  bool return_param = false;    // kParam: index is into the returns of the function
  uint32_t index = kNoIndex;
  uint32_t second = kNoIndex;  // "p|q": register index of q
  uint64_t bits = 0;
  int64_t offset = 0;
  std::string_view name;  // into Module::text
  std::vector<Operand> elements;
};

struct Instruction {
  std::string_view opcode;                  // "ld"
  std::vector<std::string_view> modifiers;  // {"global", "nc", "f32"} in source order, without dots
  std::vector<Operand> operands;            // destination first, as written
  uint32_t guard = kNoIndex;                // "@p": register index
  bool guard_negated = false;
  uint32_t line = 0;      // of the PTX text, from 1
  uint32_t depth = 1;     // of the block that it stands in, as Register::depth
  std::string_view text;  // the whole statement without its `;`, for messages
};

// Where in its source the code comes from, from a line of the PTX on (`.loc`).
struct SourceLine {
  uint32_t ptx_line;
  uint32_t file;  // index into Module::files, kNoIndex = unknown
  uint32_t line;  // 0: it has none
};

// Where the parts of a function with a body begin, as offsets into Module::text.
struct Places {
  uint32_t name_end = 0;     // behind its name
  uint32_t params_open = 0;  // its parameters' `(`, 0 = it has no list
  uint32_t params_close = 0;
  uint32_t body_open = 0;  // `{`
  uint32_t body_close = 0;
  uint32_t body_close_line = 0;
};

struct Function {
  std::string name;
  bool is_kernel = false;
  bool is_extern = false;    // declaration only (vprintf, malloc, ...)
  bool is_left_out = false;  // it has a body, which was not read (Reading)
  bool is_visible = false;
  bool is_weak = false;
  std::vector<Param> params;
  std::vector<Param> returns;
  uint32_t param_bytes = 0;
  std::vector<Register> registers;
  std::vector<Variable> variables;       // .local/.shared inside the body
  std::vector<Param> body_params;        // .param declared in the body for calls
  std::vector<Instruction> code;         // labels are resolved to indices; one past the end is allowed
  uint32_t max_threads[3] = {0, 0, 0};   // .maxntid / .reqntid, 0 = not given
  bool required_threads = false;         // it was .reqntid
  uint32_t most_registers = 0;           // .maxnreg, 0 = not given
  uint32_t least_blocks = 0;             // .minnctapersm, 0 = not given
  uint32_t cluster[3] = {0, 0, 0};       // .reqnctapercluster, 0 = not given
  uint32_t most_cluster_blocks = 0;      // .maxclusterrank, 0 = not given
  bool explicit_cluster = false;         // .explicitcluster
  std::vector<SourceLine> source_lines;  // in the order of the PTX; at most one more than there are instructions
  uint32_t line = 0;
  bool is_redeclared = false;  // there is more than one header of it
  Places places;
};

struct Module {
  std::string text;  // everything string_view points into, with what `parts` and `renamed` hold
  std::vector<std::unique_ptr<Module>> parts;         // what it was linked from (Link), emptied of functions
  std::vector<std::unique_ptr<std::string>> renamed;  // new names of symbols that parts have for themselves
  uint32_t version = 0;                               // .version 9.0 -> 90
  Target target;                                      // .target sm_90a
  uint32_t head_end = 0;                              // behind .version, .target and .address_size: offset into text
  std::vector<std::string_view> files;                // names of .file directives; empty = it was only named by .loc
  std::vector<Variable> variables;
  std::vector<std::unique_ptr<Function>> functions;
};

}  // namespace vgpud::ptx
