// SPDX-License-Identifier: Apache-2.0
// What a rewriter has to know of an instruction: which register it writes, where it goes, for whom it waits.
#pragma once

#include "gpu/ptx/ir.h"

namespace vgpud::rewrite {

enum class OpKind : uint8_t {
  kPlain,   // nothing else than computing and memory
  kBranch,  // bra, brx
  kEnd,     // ret, exit, trap
  kCall,
  kBarrier,     // of the whole block: bar.sync, bar.red and their barrier forms
  kCollective,  // with other threads of its warp
  kAsync,       // cp.async to shared memory without an mbarrier
  kOpaque,      // none of these, or unknown
};
struct OpFacts {
  OpKind kind = OpKind::kOpaque;
  bool writes = false;  // its first operand
};
OpFacts FactsOf(const ptx::Instruction& instruction);

bool HasModifier(const ptx::Instruction& instruction, std::string_view word);
// A read that another thread's write can change: a load or an atomic, neither from parameters, constants, local memory
// nor memory that nobody writes (.nc).
bool ReadsWhatOthersWrite(const ptx::Instruction& instruction);

}  // namespace vgpud::rewrite
