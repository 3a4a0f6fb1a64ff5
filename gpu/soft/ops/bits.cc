// SPDX-License-Identifier: Apache-2.0
// Bit counting, bit fields and byte permutation (PTX ISA "Integer Arithmetic Instructions", "prmt").
#include "gpu/soft/ops/int.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

template <class T>
const Inst* Popc(Warp& w, const Inst* i) {
  const T* a = In<T>(w, i, 1);
  Map<uint32_t>(w, i, 0, [&](uint32_t l) { return static_cast<uint32_t>(__builtin_popcountll(a[l])); });
  return i + 1;
}
template <class T>
const Inst* Clz(Warp& w, const Inst* i) {
  const T* a = In<T>(w, i, 1);
  Map<uint32_t>(w, i, 0, [&](uint32_t l) {
    const auto zeros = static_cast<uint32_t>(kBits<T> == 64 ? __builtin_clzll(a[l] | 1)
                                                            : __builtin_clz(static_cast<uint32_t>(a[l] | 1)));
    return a[l] == 0 ? static_cast<uint32_t>(kBits<T>) : zeros;
  });
  return i + 1;
}
// Position of the highest bit that differs from the sign; with kShift the distance of it from the top.
template <class T, bool kShift>
const Inst* Bfind(Warp& w, const Inst* i) {
  const T* a = In<T>(w, i, 1);
  Each<uint32_t>(w, i, 0, [&](uint32_t l) {
    auto v = static_cast<U<T>>(a[l]);
    if (a[l] < 0) v = static_cast<U<T>>(~v);
    if (v == 0) return 0xffffffffu;
    const uint32_t at = 63 - static_cast<uint32_t>(__builtin_clzll(v));
    return kShift ? static_cast<uint32_t>(kBits<T> - 1) - at : at;
  });
  return i + 1;
}
ALWAYS uint64_t Reverse(uint64_t v) {
  v = ((v >> 1) & 0x5555555555555555) | ((v & 0x5555555555555555) << 1);
  v = ((v >> 2) & 0x3333333333333333) | ((v & 0x3333333333333333) << 2);
  v = ((v >> 4) & 0x0f0f0f0f0f0f0f0f) | ((v & 0x0f0f0f0f0f0f0f0f) << 4);
  return __builtin_bswap64(v);
}
OP1(Brev, static_cast<T>(Reverse(a) >> (64 - kBits<T>)))

template <class T>
const Inst* Bfe(Warp& w, const Inst* i) {
  const T* a = In<T>(w, i, 1);
  const uint32_t* b = In<uint32_t>(w, i, 2);
  const uint32_t* c = In<uint32_t>(w, i, 3);
  // Without branches: each shift has a count that the type allows.
  Map<T>(w, i, 0, [&](uint32_t l) {
    const uint32_t pos = b[l] & 0xff;
    const uint32_t len = c[l] & 0xff;
    constexpr uint32_t kTop = kBits<T> - 1;
    const auto v = static_cast<U<T>>(a[l]);
    const uint32_t sign_at = pos + len - 1 < kTop ? pos + len - 1 : kTop;
    const U<T> sign = kSigned<T> && len != 0 ? static_cast<U<T>>(v >> sign_at & 1) : U<T>(0);
    const U<T> shifted = static_cast<U<T>>(v >> (pos & kTop));
    const uint32_t room = pos > kTop ? 0 : kTop + 1 - pos;
    const uint32_t have = len < room ? len : room;
    const U<T> ones = static_cast<U<T>>((U<T>(1) << (have & kTop)) - 1);
    const U<T> keep = have > kTop ? static_cast<U<T>>(-1) : ones;
    return static_cast<T>((shifted & keep) | (static_cast<U<T>>(U<T>(0) - sign) & ~keep));
  });
  return i + 1;
}
template <class T>
const Inst* Bfi(Warp& w, const Inst* i) {
  const T* a = In<T>(w, i, 1);
  const T* b = In<T>(w, i, 2);
  const uint32_t* c = In<uint32_t>(w, i, 3);
  const uint32_t* d = In<uint32_t>(w, i, 4);
  Map<T>(w, i, 0, [&](uint32_t l) {
    constexpr uint32_t kTop = kBits<T> - 1;
    const uint32_t pos = c[l] & 0xff;
    const uint32_t len = d[l] & 0xff;
    const T some = static_cast<T>((T(1) << (len & kTop)) - 1);
    const T ones = len > kTop ? static_cast<T>(-1) : some;
    const T field = pos > kTop ? T(0) : static_cast<T>(ones << (pos & kTop));
    return static_cast<T>((b[l] & ~field) | ((a[l] << (pos & kTop)) & field));
  });
  return i + 1;
}
template <bool kClamp>
const Inst* Bmsk(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const uint32_t* b = In<uint32_t>(w, i, 2);
  Each<uint32_t>(w, i, 0, [&](uint32_t l) {
    const uint32_t pos = kClamp ? a[l] : a[l] & 31;
    const uint32_t len = kClamp ? b[l] : b[l] & 31;
    if (pos > 31) return 0u;
    const uint32_t ones = len > 31 ? ~0u : (1u << len) - 1;
    return ones << pos;
  });
  return i + 1;
}
// The low b bits of a, extended ("szext"); kClamp: 32 or more are all of them, else b counts modulo 32.
template <class T, bool kClamp>
const Inst* Szext(Warp& w, const Inst* i) {
  const T* a = In<T>(w, i, 1);
  const uint32_t* b = In<uint32_t>(w, i, 2);
  Each<T>(w, i, 0, [&](uint32_t l) -> T {
    if (kClamp && b[l] > 31) return a[l];
    const uint32_t len = b[l] & 31;
    if (len == 0) return 0;
    return static_cast<T>(static_cast<T>(static_cast<uint32_t>(a[l]) << (32 - len)) >> (32 - len));
  });
  return i + 1;
}

// Byte selectors of prmt's special modes, for control values 0..3 ("prmt").
constexpr uint16_t kForward4[4] = {0x3210, 0x4321, 0x5432, 0x6543};
constexpr uint16_t kBackward4[4] = {0x5670, 0x6701, 0x7012, 0x0123};
constexpr uint16_t kReplicate8[4] = {0x0000, 0x1111, 0x2222, 0x3333};
constexpr uint16_t kEdgeLeft[4] = {0x3210, 0x3211, 0x3222, 0x3333};
constexpr uint16_t kEdgeRight[4] = {0x0000, 0x1110, 0x2210, 0x3210};
constexpr uint16_t kReplicate16[4] = {0x1010, 0x3232, 0x1010, 0x3232};
constexpr const uint16_t* kGeneric = nullptr;

template <const uint16_t* kTable>
const Inst* Prmt(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const uint32_t* b = In<uint32_t>(w, i, 2);
  const uint32_t* c = In<uint32_t>(w, i, 3);
  Map<uint32_t>(w, i, 0, [&](uint32_t l) {
    const uint32_t selector = kTable != nullptr ? kTable[c[l] & 3] : c[l];
    const auto byte = [&](uint32_t k) {
      const uint32_t s = selector >> (4 * k);
      const uint32_t v = ((s & 4 ? b[l] : a[l]) >> (8 * (s & 3))) & 0xff;
      return (s & 8 ? (0 - (v >> 7)) & 0xff : v) << (8 * k);
    };
    return byte(0) | byte(1) | byte(2) | byte(3);
  });
  return i + 1;
}

}  // namespace

OpRows BitRows() {
  static const OpRow kRows[] = {
      {"popc.b32", Popc<uint32_t>, "da"},
      {"popc.b64", Popc<uint64_t>, "dA"},
      {"clz.b32", Clz<uint32_t>, "da"},
      {"clz.b64", Clz<uint64_t>, "dA"},
      {"bfind.u32", Bfind<uint32_t, false>, "da"},
      {"bfind.s32", Bfind<int32_t, false>, "da"},
      {"bfind.u64", Bfind<uint64_t, false>, "dA"},
      {"bfind.s64", Bfind<int64_t, false>, "dA"},
      {"bfind.shiftamt.u32", Bfind<uint32_t, true>, "da"},
      {"bfind.shiftamt.s32", Bfind<int32_t, true>, "da"},
      {"bfind.shiftamt.u64", Bfind<uint64_t, true>, "dA"},
      {"bfind.shiftamt.s64", Bfind<int64_t, true>, "dA"},
      {"brev.b32", UnaryOf<Brev>::Run<uint32_t>, "da"},
      {"brev.b64", UnaryOf<Brev>::Run<uint64_t>, "DA"},
      {"bfe.u32", Bfe<uint32_t>, "daaa"},
      {"bfe.s32", Bfe<int32_t>, "daaa"},
      {"bfe.u64", Bfe<uint64_t>, "DAaa"},
      {"bfe.s64", Bfe<int64_t>, "DAaa"},
      {"bfi.b32", Bfi<uint32_t>, "daaaa"},
      {"bfi.b64", Bfi<uint64_t>, "DAAaa"},
      {"bmsk.clamp.b32", Bmsk<true>, "daa"},
      {"bmsk.wrap.b32", Bmsk<false>, "daa"},
      {"szext.clamp.u32", Szext<uint32_t, true>, "daa"},
      {"szext.clamp.s32", Szext<int32_t, true>, "daa"},
      {"szext.wrap.u32", Szext<uint32_t, false>, "daa"},
      {"szext.wrap.s32", Szext<int32_t, false>, "daa"},
      {"prmt.b32", Prmt<kGeneric>, "daaa"},
      {"prmt.b32.f4e", Prmt<kForward4>, "daaa"},
      {"prmt.b32.b4e", Prmt<kBackward4>, "daaa"},
      {"prmt.b32.rc8", Prmt<kReplicate8>, "daaa"},
      {"prmt.b32.ecl", Prmt<kEdgeLeft>, "daaa"},
      {"prmt.b32.ecr", Prmt<kEdgeRight>, "daaa"},
      {"prmt.b32.rc16", Prmt<kReplicate16>, "daaa"},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
