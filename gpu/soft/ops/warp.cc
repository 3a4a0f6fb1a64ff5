// SPDX-License-Identifier: Apache-2.0
// Operations across the lanes of a warp (PTX ISA "vote.sync", "match.sync", "activemask", "redux.sync",
// "setmaxnreg") and clocks. A member mask is a register: lanes of one split may name different ones.
#include <time.h>

#include "gpu/soft/ops/common.h"
#include "gpu/soft/run/grid.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

enum VoteMode { kAll, kAny, kUni, kBallot };
// d, a, membermask.
template <VoteMode kMode>
const Inst* Vote(Warp& w, const Inst* i) {
  if (!Gathered(w, i, 2)) return i;
  const uint32_t* members = In<uint32_t>(w, i, 2);
  const uint32_t p = Pred(w, i, 1);
  uint32_t r = 0;
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    const uint32_t group = members[l] & w.mask;
    const uint32_t yes = p & group;
    if constexpr (kMode == kBallot) {
      Out<uint32_t>(w, i, 0)[l] = yes;
    } else {
      const bool v = kMode == kAll ? yes == group : kMode == kAny ? yes != 0 : yes == 0 || yes == group;
      r |= static_cast<uint32_t>(v) << l;
    }
  }
  if constexpr (kMode != kBallot) WritePred(Pred(w, i, 0), r, w.mask);
  return i + 1;
}

// d|p, a, membermask: operands 0|1, 2, 3.
template <class T, bool kAllSame>
const Inst* Match(Warp& w, const Inst* i) {
  if (!Gathered(w, i, 3)) return i;
  const T* a = In<T>(w, i, 2);
  const uint32_t* members = In<uint32_t>(w, i, 3);
  alignas(64) uint32_t t[kLanes] = {};
  uint32_t p = 0;
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    const uint32_t group = members[l] & w.mask;
    uint32_t same = 0;
    for (uint32_t g = group; g != 0; g &= g - 1)
      same |= static_cast<uint32_t>(a[__builtin_ctz(g)] == a[l]) << __builtin_ctz(g);
    t[l] = kAllSame ? (same == group ? group : 0) : same;
    p |= static_cast<uint32_t>(same == group) << l;
  }
  StoreMasked(Out<uint32_t>(w, i, 0), t, w.mask);
  WritePred(Pred(w, i, 1), p, w.mask);
  return i + 1;
}

#define REDUX(Name, expr)   \
  struct Name {             \
    template <class T>      \
    ALWAYS T Do(T x, T y) { \
      return expr;          \
    }                       \
  };
REDUX(RAdd, x + y)
REDUX(RMin, x < y ? x : y)
REDUX(RMax, x > y ? x : y)
REDUX(RAnd, x& y)
REDUX(ROr, x | y)
REDUX(RXor, x ^ y)
template <class F, class T>
const Inst* Redux(Warp& w, const Inst* i) {
  if (!Gathered(w, i, 2)) return i;
  const T* a = In<T>(w, i, 1);
  const uint32_t* members = In<uint32_t>(w, i, 2);
  alignas(64) T t[kLanes] = {};
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    T r = a[l];
    for (uint32_t g = members[l] & w.mask & ~(1u << l); g != 0; g &= g - 1)
      r = F::template Do<T>(r, a[__builtin_ctz(g)]);
    t[l] = r;
  }
  StoreMasked(Out<T>(w, i, 0), t, w.mask);
  return i + 1;
}

// -0 is below +0. A NaN loses against a number, unless kNanWins.
template <bool kMax, bool kNanWins, bool kAbs>
const Inst* ReduxFloat(Warp& w, const Inst* i) {
  if (!Gathered(w, i, 2)) return i;
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const uint32_t* members = In<uint32_t>(w, i, 2);
  constexpr uint32_t kSign = 0x80000000u;
  constexpr uint32_t kNan = 0x7fffffffu;
  // Numbers in the order of these.
  const auto rank = [](uint32_t v) {
    const auto size = static_cast<int32_t>(v & ~kSign);
    return (v & kSign) != 0 ? -size - 1 : size;
  };
  alignas(64) uint32_t t[kLanes] = {};
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    uint32_t r = kNan;
    bool some = false;
    bool nan = false;
    for (uint32_t g = (members[l] & w.mask) | 1u << l; g != 0; g &= g - 1) {
      const uint32_t v = a[__builtin_ctz(g)] & (kAbs ? ~kSign : ~0u);
      if ((v & ~kSign) > 0x7f800000u) {
        nan = true;
      } else {
        if (!some || (rank(v) > rank(r)) == kMax) r = v;
        some = true;
      }
    }
    t[l] = kNanWins && nan ? kNan : r;
  }
  StoreMasked(Out<uint32_t>(w, i, 0), t, w.mask);
  return i + 1;
}

const Inst* WarpBarrier(Warp& w, const Inst* i) {
  if (!Gathered(w, i, 0)) return i;
  return i + 1;
}

const Inst* ActiveMask(Warp& w, const Inst* i) {
  Map<uint32_t>(w, i, 0, [&](uint32_t) { return w.mask; });
  return i + 1;
}

// One lane that the others follow.
const Inst* Elect(Warp& w, const Inst* i) {
  if (!Gathered(w, i, 2)) return i;
  const auto leader = static_cast<uint32_t>(__builtin_ctz(w.mask));
  Map<uint32_t>(w, i, 0, [&](uint32_t) { return leader; });
  WritePred(Pred(w, i, 1), 1u << leader, w.mask);
  return i + 1;
}

// setmaxnreg: warps have all the registers they name.
const Inst* Nothing(Warp&, const Inst* i) { return i + 1; }

uint64_t DeviceClock(const Warp& w) { return w.grid->device().Clock(); }
uint64_t WallClock(const Warp&) {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}
template <uint64_t (*kClock)(const Warp&), int kShift, class T>
const Inst* Clock(Warp& w, const Inst* i) {
  const auto v = static_cast<T>(kClock(w) >> kShift);
  Map<T>(w, i, 0, [&](uint32_t) { return v; });
  NoteSync(w, i);
  return i + 1;
}

}  // namespace

OpRows WarpRows() {
#define REDUX_ROW(op, F, type, T) \
  { "redux.sync." op "." type, Redux<F, T>, "daa", kDiverts }
#define REDUX_FLOAT(op, kMax)                                                          \
  {"redux.sync." op ".f32", ReduxFloat<kMax, false, false>, "daa", kDiverts},          \
      {"redux.sync." op ".abs.f32", ReduxFloat<kMax, false, true>, "daa", kDiverts},   \
      {"redux.sync." op ".NaN.f32", ReduxFloat<kMax, true, false>, "daa", kDiverts}, { \
    "redux.sync." op ".NaN.abs.f32", ReduxFloat<kMax, true, true>, "daa", kDiverts     \
  }
  static const OpRow kRows[] = {
      {"vote.sync.all.pred", Vote<kAll>, "Ppa", kDiverts},
      {"vote.sync.any.pred", Vote<kAny>, "Ppa", kDiverts},
      {"vote.sync.uni.pred", Vote<kUni>, "Ppa", kDiverts},
      {"vote.sync.ballot.b32", Vote<kBallot>, "dpa", kDiverts},
      {"match.any.sync.b32", Match<uint32_t, false>, "eaa", kDiverts},
      {"match.any.sync.b64", Match<uint64_t, false>, "eAa", kDiverts},
      {"match.all.sync.b32", Match<uint32_t, true>, "eaa", kDiverts},
      {"match.all.sync.b64", Match<uint64_t, true>, "eAa", kDiverts},
      REDUX_ROW("add", RAdd, "u32", uint32_t),
      REDUX_ROW("add", RAdd, "s32", uint32_t),
      REDUX_ROW("min", RMin, "u32", uint32_t),
      REDUX_ROW("min", RMin, "s32", int32_t),
      REDUX_ROW("max", RMax, "u32", uint32_t),
      REDUX_ROW("max", RMax, "s32", int32_t),
      REDUX_ROW("and", RAnd, "b32", uint32_t),
      REDUX_ROW("or", ROr, "b32", uint32_t),
      REDUX_ROW("xor", RXor, "b32", uint32_t),
      REDUX_FLOAT("min", false),
      REDUX_FLOAT("max", true),
      {"bar.warp.sync", WarpBarrier, "a", kDiverts},
      {"activemask.b32", ActiveMask, "d"},
      {"elect.sync", Elect, "ea", kDiverts},
      {"setmaxnreg.inc.sync.aligned.u32", Nothing, "a"},
      {"setmaxnreg.dec.sync.aligned.u32", Nothing, "a"},
      {"@clock.32", Clock<DeviceClock, 0, uint32_t>, "d"},
      {"@clock.64", Clock<DeviceClock, 0, uint64_t>, "D"},
      {"@globaltimer.32", Clock<WallClock, 0, uint32_t>, "d"},
      {"@globaltimer.64", Clock<WallClock, 0, uint64_t>, "D"},
      {"@globaltimer_hi.32", Clock<WallClock, 32, uint32_t>, "d"},
      {"@clock_hi.32", Clock<DeviceClock, 32, uint32_t>, "d"},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
