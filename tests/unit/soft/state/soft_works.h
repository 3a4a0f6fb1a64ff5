// SPDX-License-Identifier: Apache-2.0
// Kernels of every kind that must survive being left, written out and read back: what each computes is known from a
// run that nobody disturbs.
#pragma once

#include <span>
#include <string>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {

struct Work {
  std::unique_ptr<GpuGrid> grid;
  GpuVa out{};
  uint32_t words = 0;
};

struct WorkRow {
  const char* name;
  // Loads and launches it in a fresh machine. Addresses are the same each time.
  Work (*make)(SoftMachine& machine);
};
std::span<const WorkRow> Works();
const WorkRow& FindWork(std::string_view name);

// A checksum of what it computed and printed; takes what was printed.
uint64_t Answer(SoftMachine& machine, const Work& work);

// Makes it, runs it to the end, gives its answer; `instructions`: how many warp instructions that took.
uint64_t Undisturbed(const WorkRow& row, Isa isa, uint64_t* instructions = nullptr);

}  // namespace vgpud::soft
