// SPDX-License-Identifier: Apache-2.0
// The blocks rung: which of the program's blocks a block of the launch is, and whether it begins at all.
#pragma once

#include <cstdint>

#include "gpu/ptx/ir.h"
#include "gpu/rewrite/assembly.h"
#include "gpu/rewrite/edits.h"

namespace vgpud::rewrite {

// Where the first block's number comes from; the others hear of it through shared memory or, where none is left, bit by
// bit through barriers.
enum class Telling : uint8_t { kShared, kBarriers };

// What the code of one function needs of its block.
struct BlockUse {
  bool block[3] = {};  // %ctaid.x, .y, .z
  bool grid[3] = {};   // %nctaid
  bool any() const { return block[0] || block[1] || block[2] || grid[0] || grid[1] || grid[2]; }
  bool any_block() const { return block[0] || block[1] || block[2]; }
};
BlockUse UseOf(const ptx::Function& function);
// Everything: its functions ask.
inline constexpr BlockUse kWholeBlock = {{true, true, true}, {true, true, true}};

// Of a kernel: replaces its reads of %ctaid and %nctaid by registers that PutBlockRegisters declares.
void ReplaceReadsInKernel(const ptx::Function& kernel, std::string_view prefix, Edits& edits);
// Of a device function: by what PutBlockForFunctions has left in shared memory.
void ReplaceReadsInFunction(const ptx::Function& function, std::string_view prefix, Edits& edits);

// Declarations, at the begin of a kernel's body.
void PutBlockRegisters(Assembly& out);
// $ticket = the number of this block in its launch, the same in all of its threads; 0xffffffff: the stop word has
// changed.
// `words`: bytes of $words, 0 with kBarriers; behind the ticket there are a word of ones and a word of zeros then.
void PutTicket(Assembly& out, Telling telling, uint32_t words);
// Instead: $block, which the first thread finds for all of them and leaves in $words, `at` bytes in. Threads of a block
// that is not to begin end here. `slots`: blocks are left in the middle; those that go on branch to $other, and
// PutOther says what they do there.
void PutBlockOfFirst(Assembly& out, const BlockUse& use, uint32_t at, bool slots);
void PutOther(Assembly& out);
// That it takes of $words.
uint32_t BytesOfFirst(const BlockUse& use);
// To $block, of a launch of a piece: which begins at Turn::first.
void PutBlockOfPiece(Assembly& out, const BlockUse& use);
// From $ticket, a number among the blocks that have not begun yet, to $block.
void PutBlockFromTicket(Assembly& out, const BlockUse& use);
// To $grid.
void PutGrid(Assembly& out, const BlockUse& use);
// Puts them where the functions that it calls look. `registers`: from $block and $grid, else what the hardware says.
void PutBlockForFunctions(Assembly& out, bool registers);
// The module's variable for that.
void PutBlockVariable(Assembly& out);

inline constexpr uint32_t kBlockVariableBytes = 24;
// Each kernel's own words: the ticket, the two of safepoints, and what the first thread has found.
inline constexpr uint32_t kWordBytes = 4;

}  // namespace vgpud::rewrite
