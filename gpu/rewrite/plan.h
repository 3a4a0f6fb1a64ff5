// SPDX-License-Identifier: Apache-2.0
// What rewriting made of a kernel, and what a launch of it has to say (docs/preemption-rewrite.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/rewrite/bound.h"

namespace vgpud::rewrite {

// How a kernel can be stopped.
enum class Rung : uint8_t {
  kNone,        // not at all: its text is as it was
  kBlocks,      // blocks that have not begun return at once
  kSafepoints,  // and running ones save what they have and leave
};
// "none", "blocks", "safepoints".
const char* Name(Rung rung);

// The value of the hidden parameter of a rewritten kernel, which stands behind the program's own. It is launched as a
// row of `blocks` + going_on blocks; which of the program's blocks each is, it finds out itself.
struct Turn {
  uint64_t stop_word = 0;       // global address of the u32 that says when to leave
  uint64_t control = 0;         // global address of the control words, aligned to 8 (Control)
  uint32_t expected = 0;        // what the stop word is as long as the turn lasts
  uint32_t blocks = 0;          // that have not begun yet
  uint32_t first[3] = {};       // coordinates of the first of them; they begin in the order x, y, z
  uint32_t grid[3] = {};        // the program's own
  uint32_t going_on = 0;        // blocks that have been left in the middle; they come first
  uint32_t slots = 0;           // there is room for so many such blocks; 0: blocks are not left in the middle
  uint32_t dynamic_shared = 0;  // bytes
  uint32_t zero = 0;            // must be 0
  uint64_t saved = 0;           // global address of the slots, aligned to 16
  uint64_t slot_bytes = 0;      // of one, a multiple of 16
};
static_assert(sizeof(Turn) == 80 && offsetof(Turn, first) == 24 && offsetof(Turn, grid) == 36);
static_assert(offsetof(Turn, going_on) == 48 && offsetof(Turn, saved) == 64);

// Words at Turn::control. Behind them: slot numbers (u32), those of blocks that go on first and then the free ones;
// then for each slot by number 1 if a block lies in it (u32).
struct Control {
  uint32_t begun = 0;    // blocks of this launch that have begun: the first ones, those that go on included
  uint32_t claimed = 0;  // free slots that were taken
};
static_assert(sizeof(Control) == 8);

struct KernelPlan {
  std::string name;
  std::string entry;  // what is launched in turns: `name`, or a kernel beside it (Options::keep_originals)
  Rung rung = Rung::kNone;
  // Why it can't be stopped better than that, a sentence each with the PTX line where there is one.
  std::vector<std::string> reasons;
  // Each block can be left, or ends, after a bounded number of instructions (with kBlocks: it has no loops).
  bool complete = false;
  // Each thread ends after so many instructions of the program's at most (bounds.h); 0: not known.
  uint32_t most_instructions = 0;
  // Of kBlocks: it does not hear of the stop word. Whoever launches it takes a part of its blocks at a time
  // (GridTurns::Next), which begin at Turn::first.
  bool pieces = false;
  // Where that number needs what a launch says: its rule, and the kernel for launches of which it is small, in pieces.
  Bound bound;
  std::string piece_entry;
  uint32_t turn_offset = 0;         // of the hidden parameter in the parameter buffer
  uint32_t added_shared_bytes = 0;  // static shared memory that it takes beside the program's
  // Of kSafepoints: what one saved block takes.
  uint32_t thread_words = 0;  // u32 of each thread
  uint64_t shared_bytes = 0;  // static, of the block; the dynamic comes on top
  uint32_t safepoints = 0;
};

// Instructions of a thread with loops that are short all the same.
inline constexpr uint32_t kMostOfShort = 1024;

// Bytes of one slot for blocks of `threads` with `dynamic_shared` bytes: what Turn::slot_bytes must be. Rounded up
// to 16.
uint64_t SlotBytes(const KernelPlan& plan, uint32_t threads, uint32_t dynamic_shared);

}  // namespace vgpud::rewrite
