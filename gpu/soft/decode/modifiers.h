// SPDX-License-Identifier: Apache-2.0
// What an instruction's modifiers say.
#pragma once

#include <cstddef>
#include <string_view>

#include "gpu/ptx/ir.h"
#include "gpu/soft/decode/slots.h"

namespace vgpud::soft {

bool HasModifier(const ptx::Instruction& i, std::string_view modifier);
// 1 if the last operand is a cache policy, which changes nothing here.
inline size_t PolicyOperands(const ptx::Instruction& i) { return HasModifier(i, "L2::cache_hint") ? 1 : 0; }
ptx::Type FirstType(const ptx::Instruction& i);
ptx::Type LastType(const ptx::Instruction& i);
ptx::Space SpaceOf(const ptx::Instruction& i);
bool IsSpaceModifier(std::string_view modifier);
// False: a modifier that an instruction with rows of the decoder's own cannot have.
bool ModifiersAreKnown(const ptx::Instruction& i);
bool IsSigned(ptx::Type type);
SlotClass ClassOf(ptx::Type type);

}  // namespace vgpud::soft
