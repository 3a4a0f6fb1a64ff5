// SPDX-License-Identifier: Apache-2.0
// Where virtual registers live in a frame. PTX has many more of them than are alive at once: those whose live ranges do
// not touch share a slot. 32-bit, 64-bit and predicate slots never overlap each other.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/soft/code/inst.h"

namespace vgpud::soft {

enum class SlotClass : uint8_t { kPredicate, k32, k64 };

// A register that an instruction names.
struct RegisterUse {
  uint32_t reg;
  uint8_t operand;  // index in Inst::offset, or kFirstExtra + index in DraftInst::extra
  bool write;
};

inline constexpr uint8_t kFirstExtra = 6;

// An instruction before its registers have places.
struct DraftInst {
  Inst inst{};
  std::vector<RegisterUse> uses;
  uint32_t target = 0xffffffff;  // draft index of a branch target, before label resolution the PTX index
  bool falls_through = true;
  bool conditional = false;  // a write need not happen: what was there before stays alive
  bool diverts = false;      // changes control flow or waits: never under OpGuarded
  uint32_t line = 0;
  uint16_t form = 0;                // in ProgramCode::forms
  std::vector<ExtraOperand> extra;  // of an instruction on fragments of matrices: kExtraOperand says where they are
};

struct SlotPlan {
  std::vector<uint32_t> offset;  // per register, from the start of the frame
  uint64_t frame_bytes = 0;      // including `header`
  uint32_t slots32 = 0;
  uint32_t slots64 = 0;
};

// `header`: bytes at the start of the frame that are taken. With a frame above `most` bytes (at most 2^32) no register
// gets a place.
SlotPlan AllocateSlots(const std::vector<DraftInst>& code, const std::vector<SlotClass>& classes, uint64_t header,
                       uint64_t most);

}  // namespace vgpud::soft
