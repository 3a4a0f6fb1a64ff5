// SPDX-License-Identifier: Apache-2.0
// cp.async, cp.async.bulk and mbarrier (PTX ISA "Asynchronous copy", "mbarrier"). A copy is done when its instruction
// is, so groups have nothing to wait for.
#include "gpu/soft/ops/arrivals.h"
#include "gpu/soft/ops/bulk.h"

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

// Lane by lane, f(lane, object). Operand 0: the address, aux: its MemSpace. False: a fault was raised.
template <class F>
ALWAYS bool OnBarrier(Warp& w, const Inst* i, F f) {
  std::byte* at[kLanes];
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    const uint64_t address = i->flags & kAddress32
                                 ? static_cast<uint32_t>(In<uint32_t>(w, i, 0)[l] + static_cast<uint32_t>(i->imm))
                                 : In<uint64_t>(w, i, 0)[l] + static_cast<uint64_t>(i->imm);
    at[l] = LaneAddress(w, static_cast<MemSpace>(i->aux), l, address, 8, true);
    if (at[l] != nullptr && address % 8 == 0) continue;
    RaiseAddressFault(w, i, at[l] == nullptr ? CuStatus::kIllegalAddress : CuStatus::kMisalignedAddress, l, address, 8,
                      "mbarrier");
    return false;
  }
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    f(l, *reinterpret_cast<uint64_t*>(at[l]));
  }
  return true;
}

// BulkCopy: `copy(to, from, bytes)`.
template <class Copy>
ALWAYS const Inst* CopyInPieces(Warp& w, const Inst* i, Copy copy) {
  return OnePiece(w, i, [&](uint32_t l, uint32_t& done) {
    const BulkStretch all{In<uint64_t>(w, i, 0)[l], In<uint64_t>(w, i, 1)[l], In<uint32_t>(w, i, 2)[l]};
    return BulkPiece(w, i, l, all, done, "bulk copy to", "bulk copy from", copy);
  });
}
// Operands: to 0, from 1 (generic addresses), bytes 2.
const Inst* BulkCopy(Warp& w, const Inst* i) {
  return CopyInPieces(w, i,
                      [](std::byte* to, const std::byte* from, uint32_t bytes) { __builtin_memmove(to, from, bytes); });
}

// As BulkCopy, of each 16 bytes those whose bit is set in 3.
const Inst* BulkCopyMasked(Warp& w, const Inst* i) {
  const uint32_t wanted = In<uint32_t>(w, i, 3)[__builtin_ctz(w.mask)];
  return CopyInPieces(w, i, [wanted](std::byte* to, const std::byte* from, uint32_t bytes) {
    for (uint32_t n = 0; n < bytes; ++n)
      if ((wanted >> n % 16 & 1) != 0) to[n] = from[n];
  });
}

// Where an operand that is declared shared lies in the shared memory of its block. False: a fault was raised.
ALWAYS bool WithinBlock(Warp& w, const Inst* i, uint32_t lane, int operand, uint32_t bytes, uint64_t* within) {
  const uint64_t address = In<uint64_t>(w, i, operand)[lane];
  *within = (address - kSharedWindow) % kWindowBytes;
  if (address - kSharedWindow < kClusterWindowBytes) return true;
  RaiseAddressFault(w, i, CuStatus::kIllegalAddress, lane, address, bytes, "multicast to");
  return false;
}

// As BulkCopy, to the same place in each block of the cluster that the mask (4) names, and told to its mbarrier at the
// place that the address (3) has. Done is what was copied to all blocks together.
const Inst* BulkMulticast(Warp& w, const Inst* i) {
  return OnePiece(w, i, [&](uint32_t l, uint32_t& done) {
    const uint64_t from = In<uint64_t>(w, i, 1)[l];
    const uint32_t bytes = In<uint32_t>(w, i, 2)[l];
    uint64_t to, barrier;
    if (!WithinBlock(w, i, l, 0, bytes, &to) || !WithinBlock(w, i, l, 3, 8, &barrier)) return Piece::kFault;
    uint32_t rest = In<uint32_t>(w, i, 4)[l] & ((1u << kMostClusterCtas) - 1);
    for (uint32_t copied = bytes != 0 ? done / bytes : 0; copied != 0 && rest != 0; --copied) rest &= rest - 1;
    for (; rest != 0; rest &= rest - 1) {
      const uint64_t window = kSharedWindow + (static_cast<uint64_t>(__builtin_ctz(rest)) + 1) * kWindowBytes;
      uint32_t of_block = bytes != 0 ? done % bytes : 0;
      const uint32_t before = of_block;
      const Piece piece = BulkPiece(w, i, l, {window + to, from, bytes}, of_block, "bulk copy to", "bulk copy from",
                                    [](std::byte* d, const std::byte* s, uint32_t n) { __builtin_memmove(d, s, n); });
      if (piece == Piece::kFault) return piece;
      done += of_block - before;
      if (piece == Piece::kMore) return piece;
      if (!TellBarrier(w, i, l, window + barrier, bytes)) return Piece::kFault;
      // Blocks that get nothing are told all at once.
      if (bytes != 0 && (rest & (rest - 1)) != 0) return Piece::kMore;
    }
    return Piece::kLast;
  });
}

const Inst* BarrierInit(Warp& w, const Inst* i) {
  const uint32_t* count = In<uint32_t>(w, i, 2);
  const auto make = [&](uint32_t l, uint64_t& b) { b = Arrivals::Make(count[l], count[l], 0, 0).bits; };
  return OnBarrier(w, i, make) ? i + 1 : i;
}
const Inst* BarrierInvalidate(Warp& w, const Inst* i) {
  return OnBarrier(w, i, [&](uint32_t, uint64_t& b) { b = 0; }) ? i + 1 : i;
}
template <bool kDrop, bool kResult>
const Inst* BarrierArrive(Warp& w, const Inst* i) {
  const uint32_t* count = In<uint32_t>(w, i, 2);
  const bool done = OnBarrier(w, i, [&](uint32_t l, uint64_t& b) {
    const Arrivals before{b};
    b = before.After(count[l], kDrop ? count[l] : 0).bits;
    if constexpr (kResult) Out<uint64_t>(w, i, 1)[l] = before.bits;
  });
  return done ? i + 1 : i;
}
// One arrival, and bytes that are to come.
template <bool kDrop>
const Inst* BarrierArriveExpecting(Warp& w, const Inst* i) {
  const uint32_t* bytes = In<uint32_t>(w, i, 2);
  const bool done = OnBarrier(w, i, [&](uint32_t l, uint64_t& b) {
    const Arrivals before{b};
    b = before.Expecting(bytes[l]).After(1, kDrop ? 1 : 0).bits;
    Out<uint64_t>(w, i, 1)[l] = before.bits;
  });
  return done ? i + 1 : i;
}
template <bool kExpect>
const Inst* BarrierBytes(Warp& w, const Inst* i) {
  const uint32_t* bytes = In<uint32_t>(w, i, 2);
  const bool done = OnBarrier(w, i, [&](uint32_t l, uint64_t& b) {
    b = (kExpect ? Arrivals{b}.Expecting(bytes[l]) : Arrivals{b}.Without(bytes[l])).bits;
  });
  return done ? i + 1 : i;
}
template <bool kParity>
const Inst* BarrierTest(Warp& w, const Inst* i) {
  uint32_t complete = 0;
  const bool done = OnBarrier(w, i, [&](uint32_t l, uint64_t& b) {
    const uint64_t phase = Arrivals{b}.phase();
    const bool over =
        kParity ? (phase & 1) != (In<uint32_t>(w, i, 2)[l] & 1) : phase != Arrivals{In<uint64_t>(w, i, 2)[l]}.phase();
    complete |= static_cast<uint32_t>(over) << l;
  });
  if (!done) return i;
  WritePred(Pred(w, i, 1), complete, w.mask);
  NoteSync(w, i);
  return i + 1;
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
      {"cp.async.bulk.commit_group", Nothing, ""},
      {"cp.async.bulk.wait_group", Nothing, "-"},
      {"cp.async.bulk.wait_group.read", Nothing, "-"},
      {"@cp.async.bulk", BulkCopy, "", kInPieces},
      {"@cp.async.bulk.cp_mask", BulkCopyMasked, "", kInPieces},
      {"@cp.async.bulk.prefetch", Nothing, ""},
      {"@cp.async.bulk.multicast", BulkMulticast, "", kInPieces},
      {"@mbarrier.init", BarrierInit, "a"},
      {"@mbarrier.inval", BarrierInvalidate, ""},
      {"@mbarrier.arrive", BarrierArrive<false, true>, "Da?"},
      {"@mbarrier.arrive_drop", BarrierArrive<true, true>, "Da?"},
      {"@mbarrier.arrive.expect_tx", BarrierArriveExpecting<false>, "Da"},
      {"@mbarrier.arrive_drop.expect_tx", BarrierArriveExpecting<true>, "Da"},
      {"@mbarrier.expect_tx", BarrierBytes<true>, "a"},
      {"@mbarrier.complete_tx", BarrierBytes<false>, "a"},
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
