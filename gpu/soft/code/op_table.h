// SPDX-License-Identifier: Apache-2.0
// All rows of one instruction set, found by opcode and modifiers in any order.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gpu/ptx/ir.h"
#include "gpu/soft/code/inst.h"

namespace vgpud::soft {

enum class Isa { kSse4, kAvx2, kAvx512 };
// The best one that this CPU has; VGPUD_SOFT_ISA=sse4|avx2|avx512 asks for another.
Isa BestIsa();
bool CpuHas(Isa isa);
const char* NameOf(Isa isa);

class OpTable {
 public:
  // The table of `isa`, built once per process.
  static const OpTable& Of(Isa isa);

  // nullptr if there is no such row.
  const OpRow* Find(std::string_view key) const;
  // "add.ftz.f32" whatever the order of the modifiers: opcode, others sorted, types as they stand.
  static std::string Key(std::string_view opcode, const std::vector<std::string_view>& modifiers);
  size_t size() const { return rows_.size(); }
  // All rows, in no order.
  std::vector<const OpRow*> Rows() const;

 private:
  explicit OpTable(Isa isa);
  // `replace`: rows that are there already give way.
  void Add(OpRows rows, bool replace = false);
  std::unordered_map<std::string, const OpRow*> rows_;
};

// The row of an ordinary instruction with what its other modifiers mean: looked for with everything that was written,
// then without what a flag can say.
struct PlainRow {
  const OpRow* row = nullptr;  // nullptr: no such instruction
  uint8_t flags = 0;
  uint8_t aux = 0;
  uint8_t rounding = 0;  // mode bits of MXCSR
};
PlainRow FindPlainRow(const OpTable& table, std::string_view opcode, std::vector<std::string_view> modifiers);

}  // namespace vgpud::soft
