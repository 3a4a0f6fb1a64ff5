// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/cuda/fake_kernels.h"

#include <unistd.h>

namespace fake_cuda {
namespace {

constexpr uint32_t kBlocks = 4, kThreads = 64;
constexpr unsigned kMomentUs = 10;

uint32_t& Word(uint64_t address, uint64_t index = 0) { return reinterpret_cast<uint32_t*>(address)[index]; }
bool Told(const Turn& turn) { return *reinterpret_cast<volatile uint32_t*>(turn.stop_word) != turn.expected; }

// One more block begins, and ends.
bool StepBlocks(Launched& launched) {
  const Turn& turn = launched.turn;
  uint32_t& begun = Word(turn.control);
  if (begun == turn.blocks || Told(turn)) return false;
  const uint32_t block = turn.first[0] + begun++;
  if (launched.kind == Kind::kMany && block != launched.faults.loses) {
    auto* const counts = reinterpret_cast<uint64_t*>(launched.params[0]);
    ++counts[0];
    counts[1] += block;
  }
  return true;
}

// One more round of all threads. What a GPU has in registers, and in a slot between two turns.
struct {
  uint64_t rounds = 0;
  uint32_t values[kBlocks * kThreads] = {};
} endless;

void BeginEndless(const Launched& launched) {
  const Turn& turn = launched.turn;
  if (launched.in_turns) {
    Word(turn.control) = turn.blocks + turn.going_on;
    for (uint32_t b = 0; b < turn.going_on; ++b) Word(turn.control, 2 + turn.slots + Word(turn.control, 2 + b)) = 0;
    if (turn.going_on != 0 && !launched.faults.forgets) return;
  }
  if (turn.going_on == 0 || !launched.in_turns) endless.rounds = 0;
  for (uint32_t t = 0; t < kBlocks * kThreads; ++t) endless.values[t] = t;
}

void EndEndless(const Launched& launched) {
  for (uint32_t t = 0; t < kBlocks * kThreads; ++t) {
    *reinterpret_cast<uint64_t*>(launched.params[0] + 16 * t) = endless.rounds;
    Word(launched.params[0] + 16 * t, 2) = endless.values[t] + t / kThreads * kThreads + (t + 1) % kThreads;
  }
}

bool StepEndless(Launched& launched) {
  const Turn& turn = launched.turn;
  if (launched.begins) BeginEndless(launched);
  launched.begins = false;
  if (launched.faults.early && !launched.in_turns) return false;
  ++endless.rounds;
  for (uint32_t& value : endless.values) value = value * 1664525 + 1013904223;
  ::usleep(kMomentUs);
  if (Word(launched.params[1]) != 0) {
    EndEndless(launched);
    return false;
  }
  if (!launched.in_turns || turn.slots == 0 || launched.faults.deaf || !Told(turn)) return true;
  for (uint32_t b = 0; b < kBlocks; ++b) Word(turn.control, 2 + turn.slots + Word(turn.control, 2 + b)) = 1;
  return false;
}

}  // namespace

bool Step(Launched& launched) { return launched.kind == Kind::kEndless ? StepEndless(launched) : StepBlocks(launched); }

}  // namespace fake_cuda
