// SPDX-License-Identifier: Apache-2.0
// PTX that no compiler would write, out of bytes: every row of the instruction table with operands of the right and of
// the wrong kind, blocks, .param space, calls, recursion, arrays of all spaces and sizes, textures, atomics.
#pragma once

#include <string>

#include "tests/fuzz/fuzz_bytes.h"

namespace vgpud::soft {

// Uses up as many bytes as it needs; what is left is the caller's.
std::string HostilePtx(FuzzBytes& in);

}  // namespace vgpud::soft
