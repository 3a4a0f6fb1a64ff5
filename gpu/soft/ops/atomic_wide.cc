// SPDX-License-Identifier: Apache-2.0
// atom on 128 bits (PTX ISA "atom"). Operand 0: address; extra operands: the low and the high half of the result, of b
// and of c. Lanes go in ascending order.
#include "gpu/soft/ops/address.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

using Word = unsigned __int128;

template <bool kCompares>
const Inst* WideAtomic(Warp& w, const Inst* i) {
  std::byte* at[kLanes];
  if (!ReachAtomic(w, i, static_cast<MemSpace>(i->aux), sizeof(Word), at)) return i;
  const auto half = [&](uint32_t number) {
    const ExtraOperand& o = w.extra[i->offset[kExtraOperand] + number];
    return reinterpret_cast<uint64_t*>(w.base[o.base] + o.offset);
  };
  const auto whole = [&](uint32_t number, uint32_t lane) {
    return half(number)[lane] | static_cast<Word>(half(number + 1)[lane]) << 64;
  };
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    auto* p = reinterpret_cast<Word*>(at[l]);
    const Word b = whole(2, l);
    const Word c = kCompares ? whole(4, l) : b;
    // A guess, which the exchange corrects.
    Word old = *p;
    for (;;) {
      const Word wanted = !kCompares || old == b ? c : old;
      const Word seen = __sync_val_compare_and_swap(p, old, wanted);
      if (seen == old) break;
      old = seen;
    }
    half(0)[l] = static_cast<uint64_t>(old);
    half(1)[l] = static_cast<uint64_t>(old >> 64);
  }
  NoteSync(w, i);
  return i + 1;
}

}  // namespace

OpRows WideAtomicRows() {
  static const OpRow kRows[] = {
      {"@atom.exch.b128", WideAtomic<false>, ""},
      {"@atom.cas.b128", WideAtomic<true>, ""},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
