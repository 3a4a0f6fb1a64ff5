// SPDX-License-Identifier: Apache-2.0
// cp.async and mbarrier (PTX ISA "Asynchronous copy", "mbarrier"). A copy is done when its instruction is, so groups
// have nothing to wait for.
#include "gpu/soft/ops/address.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

const Inst* Nothing(Warp&, const Inst* i) { return i + 1; }

// aux: bytes. What the source size leaves out becomes zero.
const Inst* AsyncCopy(Warp& w, const Inst* i) {
  const uint32_t size = i->aux;
  uint32_t to[kLanes];
  if (!ReachShared(w, i, size, to, "asynchronous copy to shared memory")) return i;
  const uint64_t* from = In<uint64_t>(w, i, 1);
  const uint32_t* read = In<uint32_t>(w, i, 2);
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    const uint32_t bytes = read[l] < size ? read[l] : size;
    std::byte* d = w.shared + to[l];
    __builtin_memset(d, 0, size);
    if (bytes == 0) continue;
    const std::byte* s = LaneAddress(w, MemSpace::kGlobal, l, from[l], bytes, false);
    if (s == nullptr || (from[l] & (size - 1)) != 0)
      return RaiseAddressFault(w, i, s == nullptr ? CuStatus::kIllegalAddress : CuStatus::kMisalignedAddress, l,
                               from[l], size, "asynchronous copy");
    __builtin_memcpy(d, s, bytes);
  }
  return i + 1;
}

// The 64 bits of an mbarrier: arrivals that are still to come, arrivals of a phase, number of the phase.
struct Arrivals {
  static constexpr uint64_t kCount = (1u << 20) - 1;
  uint64_t bits;
  uint64_t pending() const { return bits & kCount; }
  uint64_t expected() const { return bits >> 20 & kCount; }
  uint64_t phase() const { return bits >> 40; }
  static Arrivals Make(uint64_t pending, uint64_t expected, uint64_t phase) {
    return {(pending & kCount) | (expected & kCount) << 20 | phase << 40};
  }
  // `count` fewer are awaited; `dropped` of them in later phases too.
  Arrivals After(uint64_t count, uint64_t dropped) const {
    const uint64_t next = expected() - (dropped < expected() ? dropped : expected());
    if (count < pending()) return Make(pending() - count, next, phase());
    return Make(next, next, phase() + 1);
  }
};

// Lane by lane, f(lane, place). Operand 0: the address. False: a fault was raised.
template <class F>
ALWAYS const Inst* OnBarrier(Warp& w, const Inst* i, F f) {
  uint32_t at[kLanes];
  if (!ReachShared(w, i, 8, at, "mbarrier")) return i;
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    f(l, *reinterpret_cast<uint64_t*>(w.shared + at[l]));
  }
  return i + 1;
}

const Inst* BarrierInit(Warp& w, const Inst* i) {
  const uint32_t* count = In<uint32_t>(w, i, 2);
  return OnBarrier(w, i, [&](uint32_t l, uint64_t& b) { b = Arrivals::Make(count[l], count[l], 0).bits; });
}
const Inst* BarrierInvalidate(Warp& w, const Inst* i) {
  return OnBarrier(w, i, [&](uint32_t, uint64_t& b) { b = 0; });
}
template <bool kDrop, bool kResult>
const Inst* BarrierArrive(Warp& w, const Inst* i) {
  const uint32_t* count = In<uint32_t>(w, i, 2);
  return OnBarrier(w, i, [&](uint32_t l, uint64_t& b) {
    const Arrivals before{b};
    b = before.After(count[l], kDrop ? count[l] : 0).bits;
    if constexpr (kResult) Out<uint64_t>(w, i, 1)[l] = before.bits;
  });
}
template <bool kParity>
const Inst* BarrierTest(Warp& w, const Inst* i) {
  uint32_t done = 0;
  const Inst* next = OnBarrier(w, i, [&](uint32_t l, uint64_t& b) {
    const uint64_t phase = Arrivals{b}.phase();
    const bool complete =
        kParity ? (phase & 1) != (In<uint32_t>(w, i, 2)[l] & 1) : phase != Arrivals{In<uint64_t>(w, i, 2)[l]}.phase();
    done |= static_cast<uint32_t>(complete) << l;
  });
  if (next == i) return i;
  WritePred(Pred(w, i, 1), done, w.mask);
  NoteSync(w, i);
  return next;
}
const Inst* PendingCount(Warp& w, const Inst* i) {
  const uint64_t* state = In<uint64_t>(w, i, 1);
  Each<uint32_t>(w, i, 0, [&](uint32_t l) { return static_cast<uint32_t>(Arrivals{state[l]}.pending()); });
  return i + 1;
}

}  // namespace

OpRows AsyncRows() {
  static const OpRow kRows[] = {
      {"@cp.async", AsyncCopy, ""},
      {"cp.async.commit_group", Nothing, ""},
      {"cp.async.wait_group", Nothing, "-"},
      {"cp.async.wait_all", Nothing, ""},
      {"@mbarrier.init", BarrierInit, "a"},
      {"@mbarrier.inval", BarrierInvalidate, ""},
      {"@mbarrier.arrive", BarrierArrive<false, true>, "Da?"},
      {"@mbarrier.arrive_drop", BarrierArrive<true, true>, "Da?"},
      {"@mbarrier.test_wait", BarrierTest<false>, "PA"},
      {"@mbarrier.test_wait.parity", BarrierTest<true>, "Pa"},
      {"@mbarrier.try_wait", BarrierTest<false>, "PA"},
      {"@mbarrier.try_wait.parity", BarrierTest<true>, "Pa"},
      {"mbarrier.pending_count.b64", PendingCount, "dA"},
      // The copies of the thread are done: it counts as arrived, or (without .noinc) is counted in and out again.
      {"@cp.async.mbarrier.arrive.noinc", BarrierArrive<false, false>, ""},
      {"@cp.async.mbarrier.arrive", Nothing, ""},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
