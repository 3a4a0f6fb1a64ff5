// SPDX-License-Identifier: Apache-2.0
// What integer handlers share: types derived from types, and the macros of their tables.
#pragma once

#include "gpu/soft/ops/common.h"

namespace vgpud::soft::VGPUD_ISA {

#define OP1(Name, expr)   \
  struct Name {           \
    template <class T>    \
    ALWAYS auto Do(T a) { \
      return expr;        \
    }                     \
  };
#define OP2(Name, expr)        \
  struct Name {                \
    template <class T>         \
    ALWAYS auto Do(T a, T b) { \
      return expr;             \
    }                          \
  };
#define OP3(Name, expr)             \
  struct Name {                     \
    template <class T>              \
    ALWAYS auto Do(T a, T b, T c) { \
      return expr;                  \
    }                               \
  };

template <class T>
inline constexpr bool kSigned = static_cast<T>(-1) < static_cast<T>(0);
template <class T>
struct UnsignedOf {
  using type = T;
};
template <>
struct UnsignedOf<int16_t> {
  using type = uint16_t;
};
template <>
struct UnsignedOf<int32_t> {
  using type = uint32_t;
};
template <>
struct UnsignedOf<int64_t> {
  using type = uint64_t;
};
template <class T>
using U = typename UnsignedOf<T>::type;
template <class T>
struct WideOf;
template <>
struct WideOf<uint16_t> {
  using type = uint32_t;
};
template <>
struct WideOf<int16_t> {
  using type = int32_t;
};
template <>
struct WideOf<uint32_t> {
  using type = uint64_t;
};
template <>
struct WideOf<int32_t> {
  using type = int64_t;
};
template <>
struct WideOf<uint64_t> {
  using type = unsigned __int128;
};
template <>
struct WideOf<int64_t> {
  using type = __int128;
};
template <class T>
using Wide = typename WideOf<T>::type;
template <class T>
inline constexpr int kBits = 8 * sizeof(T);

#define UNSIGNED3(name, F, sig16, sig32, sig64) \
  {name ".u16", F<uint16_t>, sig16}, {name ".u32", F<uint32_t>, sig32}, { name ".u64", F<uint64_t>, sig64 }
#define SIGNED3(name, F, sig16, sig32, sig64) \
  {name ".s16", F<int16_t>, sig16}, {name ".s32", F<int32_t>, sig32}, { name ".s64", F<int64_t>, sig64 }
#define BOTH(name, F, sig32, sig64) UNSIGNED3(name, F, sig32, sig32, sig64), SIGNED3(name, F, sig32, sig32, sig64)
#define BITS3(name, F, sig32, sig64) \
  {name ".b16", F<uint16_t>, sig32}, {name ".b32", F<uint32_t>, sig32}, { name ".b64", F<uint64_t>, sig64 }

}  // namespace vgpud::soft::VGPUD_ISA
