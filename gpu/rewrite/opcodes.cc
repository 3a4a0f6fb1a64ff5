// SPDX-License-Identifier: Apache-2.0
#include "gpu/rewrite/opcodes.h"

#include <algorithm>
#include <unordered_map>

namespace vgpud::rewrite {
namespace {

// PTX ISA, "Instruction Set". What is not here is opaque: it may have a state of its own.
constexpr std::string_view kWriting[] = {
    "abs",    "add",  "addc",     "and",      "atom",      "bfe",       "bfi",   "bfind",        "bmsk",  "brev",
    "clz",    "cnot", "copysign", "cos",      "cvt",       "cvta",      "div",   "dp2a",         "dp4a",  "ex2",
    "fma",    "fns",  "isspacep", "ld",       "ldu",       "lg2",       "lop3",  "mad",          "mad24", "madc",
    "max",    "min",  "mov",      "mul",      "mul24",     "neg",       "not",   "or",           "popc",  "prmt",
    "rcp",    "rem",  "rsqrt",    "sad",      "selp",      "set",       "setp",  "shf",          "shl",   "shr",
    "sin",    "slct", "sqrt",     "sub",      "subc",      "suld",      "suq",   "szext",        "tanh",  "testp",
    "tex",    "tld4", "txq",      "vabsdiff", "vabsdiff2", "vabsdiff4", "vadd",  "vadd2",        "vadd4", "vavrg2",
    "vavrg4", "vmad", "vmax",     "vmax2",    "vmax4",     "vmin",      "vmin2", "vmin4",        "vset",  "vset2",
    "vset4",  "vshl", "vshr",     "vsub",     "vsub2",     "vsub4",     "xor",   "createpolicy",
};
constexpr std::string_view kSilent[] = {"st",    "red",       "sust",    "prefetch", "prefetchu",     "membar",
                                        "fence", "nanosleep", "pmevent", "discard",  "applypriority", "brkpt"};
constexpr std::string_view kCollective[] = {"activemask", "shfl", "vote", "match", "redux", "wmma", "mma", "ldmatrix"};

const std::unordered_map<std::string_view, OpFacts>& Table() {
  static const auto* table = [] {
    auto* rows = new std::unordered_map<std::string_view, OpFacts>;
    for (const std::string_view opcode : kWriting) rows->emplace(opcode, OpFacts{OpKind::kPlain, true});
    for (const std::string_view opcode : kSilent) rows->emplace(opcode, OpFacts{OpKind::kPlain, false});
    for (const std::string_view opcode : kCollective) rows->emplace(opcode, OpFacts{OpKind::kCollective, true});
    for (const std::string_view opcode : {"bra", "brx"}) rows->emplace(opcode, OpFacts{OpKind::kBranch, false});
    for (const std::string_view opcode : {"ret", "exit", "trap"}) rows->emplace(opcode, OpFacts{OpKind::kEnd, false});
    rows->emplace("call", OpFacts{OpKind::kCall, false});
    return rows;
  }();
  return *table;
}

OpFacts BarrierFacts(const ptx::Instruction& i) {
  if (HasModifier(i, "warp")) return {OpKind::kCollective, false};
  if (HasModifier(i, "arrive") || HasModifier(i, "cluster")) return {};
  if (HasModifier(i, "red")) return {OpKind::kBarrier, true};
  return HasModifier(i, "sync") ? OpFacts{OpKind::kBarrier, false} : OpFacts{};
}

OpFacts CopyFacts(const ptx::Instruction& i) {
  const bool async = !i.modifiers.empty() && i.modifiers[0] == "async";
  for (const std::string_view other : {"bulk", "mbarrier", "reduce", "tensor"})
    if (HasModifier(i, other)) return {};
  return async ? OpFacts{OpKind::kAsync, false} : OpFacts{};
}

}  // namespace

bool HasModifier(const ptx::Instruction& instruction, std::string_view word) {
  return std::find(instruction.modifiers.begin(), instruction.modifiers.end(), word) != instruction.modifiers.end();
}

OpFacts FactsOf(const ptx::Instruction& i) {
  if (i.opcode == "bar" || i.opcode == "barrier") return BarrierFacts(i);
  if (i.opcode == "cp") return CopyFacts(i);
  if ((i.opcode == "wmma" || i.opcode == "ldmatrix") && HasModifier(i, "store")) return {OpKind::kCollective, false};
  if (i.opcode == "st" && HasModifier(i, "async")) return {};
  const auto at = Table().find(i.opcode);
  return at == Table().end() ? OpFacts{} : at->second;
}

bool ReadsWhatOthersWrite(const ptx::Instruction& i) {
  if (i.opcode == "atom" || i.opcode == "tex" || i.opcode == "tld4" || i.opcode == "suld") return true;
  if (i.opcode != "ld" && i.opcode != "ldu") return false;
  for (const std::string_view fixed : {"param", "const", "local", "nc"})
    if (HasModifier(i, fixed)) return false;
  return std::none_of(i.modifiers.begin(), i.modifiers.end(),
                      [](std::string_view word) { return word.starts_with("param"); });
}

}  // namespace vgpud::rewrite
