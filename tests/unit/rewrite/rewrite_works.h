// SPDX-License-Identifier: Apache-2.0
// Kernels for rewriting beside those of soft_works.h: of many blocks, in three dimensions, with functions that ask
// where they are, with all forms of loops and barriers.
#pragma once

#include <random>

#include "tests/unit/rewrite/turn_machine.h"
#include "tests/unit/soft/state/soft_works.h"

namespace vgpud::rewrite {

std::span<const soft::WorkRow> RewriteWorks();
// By name, of these or of soft_works.h.
const soft::WorkRow& AnyWork(std::string_view name);

// What `row` computes: a checksum, whatever the order of lines that it prints.
uint64_t AnswerOf(soft::SoftMachine& machine, const soft::Work& work);

}  // namespace vgpud::rewrite
