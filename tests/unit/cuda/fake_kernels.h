// SPDX-License-Identifier: Apache-2.0
// What the kernels of the fake driver do: nothing, or what those of the self-test must (gpu/cuda/self_test_ptx.h), as
// they are or rewritten to go in turns (gpu/rewrite/plan.h).
#pragma once

#include <cstdint>

namespace fake_cuda {

enum class Kind { kNothing, kBlocks, kMany, kEndless, kBeats };
struct Function {
  const char* name;
  Kind kind;
  bool in_turns;
  uint32_t last_param_bytes;
};
inline Function kFunctions[] = {
    {"kernel", Kind::kNothing, false, 4},
    {"kernel$vgpud_turns", Kind::kBlocks, true, 4},
    {"kernel$vgpud_piece", Kind::kBlocks, true, 4},
    {"many", Kind::kNothing, false, 4},
    {"many$vgpud_turns", Kind::kMany, true, 4},
    {"beats", Kind::kBeats, false, 8},
    {"endless", Kind::kEndless, false, 8},
    {"endless$vgpud_turns", Kind::kEndless, true, 8},
    {"whole", Kind::kNothing, false, 4},
};

// The hidden parameter, behind 16 bytes.
struct Turn {
  uint64_t stop_word, control;
  uint32_t expected, blocks, first[3], grid[3], going_on, slots, dynamic_shared, zero;
  uint64_t saved, slot_bytes;
};
static_assert(sizeof(Turn) == 80);

struct Faults {
  bool early;
  uint32_t loses;
  bool forgets;
  bool deaf;
};

struct Launched {
  Kind kind = Kind::kNothing;
  bool in_turns = false;
  bool begins = false;
  int queries = 0;  // times that one of Kind::kNothing is not ready yet
  uint64_t params[2] = {};
  Turn turn = {};
  Faults faults = {};
};

// A moment of what was launched. False: it is not on the GPU any more.
bool Step(Launched& launched);

}  // namespace fake_cuda
