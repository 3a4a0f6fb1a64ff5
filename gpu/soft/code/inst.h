// SPDX-License-Identifier: Apache-2.0
// Decoded PTX: the flat form that the interpreter runs. One Inst = one warp instruction; a handler finds every operand,
// be it a register, an immediate, a parameter or a special register, as 32 lanes in memory at base[b] + offset.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/reach_space.h"
#include "guest-driver-shim/include/uapi/vgpu_abi.h"

namespace vgpud::soft {

inline constexpr uint32_t kLanes = 32;
inline constexpr uint32_t kFullMask = 0xffffffffu;
// Memory of registers and constants is aligned to this, for the widest loads.
inline constexpr size_t kSlotAlign = 64;

// Address map. A generic address of global memory is the global address; shared and local memory are seen through
// windows that the arena never overlaps. First comes what the host shares with kernels, then device memory.
inline constexpr uint64_t kArenaVa = 0x6f0000000000;
inline constexpr uint64_t kVramVa = kArenaVa + ReachSpace::kBytes;
static_assert(kVramVa == 0x700000000000);
// Memory that is mapped to addresses later (mappable_memory.h).
inline constexpr uint64_t kMappedVa = VGPU_MAPPED_VA;
inline constexpr uint64_t kMappedBytes = VGPU_MAPPED_BYTES;
inline constexpr uint64_t kSharedWindow = 0x6e0000000000;
inline constexpr uint64_t kLocalWindow = 0x6d0000000000;
inline constexpr uint64_t kParamWindow = 0x6c0000000000;
inline constexpr uint64_t kWindowBytes = 16u << 20;
// Blocks of a cluster. Of the shared memory of all of them: that of the block itself lies where .shared::cta has it,
// and that of the block of rank n a second time n + 1 windows behind it.
inline constexpr uint32_t kMostClusterCtas = 16;
inline constexpr uint64_t kClusterWindowBytes = (kMostClusterCtas + 1) * kWindowBytes;
// The generic address of byte `offset` of a cluster's shared memory; of what is outside of all its windows, the address
// behind them, where nothing is.
[[gnu::always_inline]] constexpr uint64_t SharedAddressOf(uint64_t offset) {
  return kSharedWindow + (offset < kClusterWindowBytes ? offset : kClusterWindowBytes);
}
// Whatever is added for the parts of one access leads nowhere either.
static_assert(kSharedWindow + kClusterWindowBytes + kWindowBytes < kArenaVa);
inline constexpr uint32_t kPageShift = 21;
// At the end of a lane's local memory, where a kernel uses alloca: how much of it is taken (u32, the rest unused).
inline constexpr uint32_t kDynamicTakenBytes = 16;

struct Warp;
struct Inst;
// Runs one instruction for the lanes in warp.mask; returns the next one. A handler that ends the run of the current
// split (barrier, exit, fault, ...) sets warp.limit to nullptr.
using Handler = const Inst* (*)(Warp& warp, const Inst* inst);

// What Inst::base[] selects.
enum BaseKind : uint8_t { kFrame, kConstants, kGridArea, kWarpArea, kBaseCount };

enum InstFlag : uint8_t {
  kFtz = 1,           // flush subnormals (f32)
  kSat = 2,           // clamp the result
  kAddress32 = 4,     // the address operand is a 32-bit slot
  kGuardNegated = 8,  // guard is !p
  kSync = 16,         // volatile/acquire/relaxed: another thread may be waited for here
};

enum class MemSpace : uint8_t { kGlobal, kGeneric, kShared, kLocal, kParamRegister };

struct Inst {
  Handler fn;
  Handler inner;       // what a wrapper (guard, rounding mode) runs
  uint32_t offset[6];  // [5] is the guard where there is one
  uint8_t base[6];
  uint8_t flags;
  uint8_t aux;  // per handler: vector length, compare combination, space ...
  int64_t imm;
  const Inst* target;
};
static_assert(sizeof(Inst) == 64);

inline constexpr uint32_t kGuardOperand = 5;
// Of an instruction with more operands than fit: Inst::offset here is an index into Program::extra.
inline constexpr uint32_t kExtraOperand = 4;

// Of a row with kInPieces: a register of 32 bits, written and read, that says what of each lane's work is done. Such an
// instruction diverts, so the place of the guard is free.
inline constexpr uint32_t kDoneOperand = kGuardOperand;

// An operand beside those in an Inst: 32 lanes at base + offset.
struct ExtraOperand {
  uint8_t base;  // BaseKind
  uint32_t offset;
};

// How the operands of a row are passed, one character per PTX operand, destination first:
//   d D  32/64-bit slot written       a A  32/64-bit slot read
//   P    predicate written            p    predicate read (!p allowed)
//   Q    predicate written, with a second one in "p|q" (takes two operand places)
//   e    32-bit slot written with an optional predicate in "d|p" (two places)
//   ?    what follows may be left out
// An operand that is left out, or the sink "_", becomes a scratch slot (written) or zero / true (read).
struct OpRow {
  const char* name;  // opcode and modifiers in any order; types last, in order
  Handler fn;
  const char* operands;
  uint8_t traits = 0;
};

enum OpTrait : uint8_t {
  kTakesFtz = 1,  // looks at kFtz itself
  kTakesSat = 2,  // looks at kSat itself
  kRounds = 4,    // obeys the rounding mode of the CPU: .rz/.rm/.rp are this row under another mode
  kCombines = 8,  // setp/set: .and/.or/.xor with a predicate, in Inst::aux
  kDiverts = 16,  // changes control flow or waits: a guard becomes a branch around it
  kHasSync = 32,  // see kSync
  // A register or the guest's memory says how much there is to do. The handler does a bounded part of one lane's work
  // at a time and comes back for the rest; kDoneOperand counts, so it can be left, saved and resumed in between.
  kInPieces = 64,
};

struct OpRows {
  const OpRow* rows;
  size_t count;
};

}  // namespace vgpud::soft
