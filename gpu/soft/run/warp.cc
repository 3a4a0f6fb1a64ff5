// SPDX-License-Identifier: Apache-2.0
// Splits of a warp: who runs next, who waits, who is gone (PTX ISA "Independent Thread Scheduling").
#include "gpu/soft/run/warp.h"

#include <fmt/format.h>

#include <bit>
#include <span>

#include "gpu/soft/run/grid.h"

namespace vgpud::soft {
namespace {

// After so many selections in which a split did something that may wait for another thread, the one that has not run
// for longest has its turn. The lowest program counter goes first otherwise, because that makes lanes meet again.
constexpr uint32_t kFairAfter = 4;
// Selections without any such thing after which fairness is applied all the same.
constexpr uint32_t kFairAnyway = kFairAnywayAfter;

void Put(Warp& w, Split split) {
  if (split.state != Split::State::kBarrier) {
    for (uint32_t s = 0; s < w.split_count; ++s) {
      Split& other = w.splits[s];
      if (other.pc == split.pc && other.frame == split.frame && other.local == split.local &&
          other.state == split.state) {
        other.mask |= split.mask;
        other.need |= split.need;
        other.last_run = std::min(other.last_run, split.last_run);
        return;
      }
    }
  }
  w.splits[w.split_count++] = split;
}

Split Current(const Warp& w, const Inst* pc, uint32_t mask) {
  return {pc, mask, w.frame, w.local, Split::State::kRun, false, 0, 0, w.selections};
}

bool ReadGuard(const Warp& w, const Inst* i, uint32_t& taken) {
  const auto p = *reinterpret_cast<const uint32_t*>(w.base[i->base[kGuardOperand]] + i->offset[kGuardOperand]);
  taken = w.mask & ((i->flags & kGuardNegated) ? ~p : p);
  return taken != 0;
}

uint32_t WaitingIn(const Warp& w, Split::State state) {
  uint32_t lanes = 0;
  for (uint32_t s = 0; s < w.split_count; ++s)
    if (w.splits[s].state == state) lanes |= w.splits[s].mask;
  return lanes;
}

// Lets splits go on whose lanes have all arrived (or whose missing lanes have exited).
void ReleaseWarpSync(Warp& w, bool force) {
  const uint32_t gathered = WaitingIn(w, Split::State::kWarpSync);
  if (gathered == 0) return;
  for (uint32_t s = 0; s < w.split_count; ++s) {
    Split& split = w.splits[s];
    if (split.state != Split::State::kWarpSync) continue;
    const bool complete = (split.need & w.live & ~split.mask) == 0;
    // Lanes that wait at different instructions for each other: all there are have come.
    const bool spread = (split.need & w.live & ~gathered) == 0;
    if (complete || spread || force) {
      split.state = Split::State::kRun;
      split.forced = !complete;
    }
  }
}

bool PickSplit(Warp& w) {
  uint32_t best = kLanes;
  uint32_t oldest = kLanes;
  for (uint32_t s = 0; s < w.split_count; ++s) {
    const Split& split = w.splits[s];
    if (split.state != Split::State::kRun) continue;
    if (best == kLanes || split.frame > w.splits[best].frame ||
        (split.frame == w.splits[best].frame && split.pc < w.splits[best].pc))
      best = s;
    if (oldest == kLanes || split.last_run < w.splits[oldest].last_run) oldest = s;
  }
  if (best == kLanes) return false;
  ++w.selections;
  ++w.fairness;
  if (w.sync_seen ? w.fairness >= kFairAfter : w.fairness >= kFairAnyway) {
    best = oldest;
    w.fairness = 0;
    w.sync_seen = false;
  }
  const Split chosen = w.splits[best];
  w.splits[best] = w.splits[--w.split_count];
  w.mask = chosen.mask;
  w.pc = chosen.pc;
  w.frame = chosen.frame;
  w.local = chosen.local;
  w.force_sync = chosen.forced;
  w.base[kFrame] = w.stack + chosen.frame;
  const Inst* limit = reinterpret_cast<const Inst*>(UINTPTR_MAX);
  for (uint32_t s = 0; s < w.split_count; ++s) {
    const Split& split = w.splits[s];
    const bool meets = split.frame == w.frame && split.state != Split::State::kBarrier;
    if (meets && split.pc > w.pc && split.pc < limit) limit = split.pc;
  }
  w.limit = limit;
  return true;
}

}  // namespace

bool Reselect(Warp& w) {
  if (w.mask != 0) {
    if (w.split_count == 0) {
      w.limit = reinterpret_cast<const Inst*>(UINTPTR_MAX);
      return true;
    }
    Split split = Current(w, w.pc, w.mask);
    split.forced = w.force_sync;
    // A lane that arrives where others wait for it joins them and the instruction looks again.
    for (uint32_t s = 0; s < w.split_count; ++s) {
      Split& other = w.splits[s];
      if (other.state == Split::State::kWarpSync && other.pc == split.pc && other.frame == split.frame &&
          other.local == split.local)
        other.state = Split::State::kRun;
    }
    Put(w, split);
    w.mask = 0;
  }
  ReleaseWarpSync(w, false);
  if (PickSplit(w)) return true;
  // Only lanes that wait for lanes which never come are left: they go on with what is there.
  if (WaitingIn(w, Split::State::kWarpSync) == 0 || WaitingIn(w, Split::State::kBarrier) != 0) return false;
  ReleaseWarpSync(w, true);
  return PickSplit(w);
}

const Inst* Diverge(Warp& w, const Inst* stay_pc, uint32_t stay, const Inst* other, uint32_t other_mask) {
  Put(w, Current(w, other, other_mask));
  w.mask = stay;
  if (other > stay_pc && other < w.limit) w.limit = other;
  if (other <= stay_pc) w.limit = nullptr;
  return stay_pc;
}

bool WarpSyncReady(Warp& w, const Inst* i, uint32_t need) {
  if ((need & w.live & ~w.mask) == 0 || w.force_sync) {
    w.force_sync = false;
    return true;
  }
  Split split = Current(w, i, w.mask);
  split.state = Split::State::kWarpSync;
  split.need = need;
  Put(w, split);
  w.mask = 0;
  w.limit = nullptr;
  return false;
}

const Inst* RaiseFault(Warp& w, const Inst* i, CuStatus status, uint32_t lane, const std::string& what) {
  w.grid->SetFault(status, fmt::format("{}: {}", w.grid->Describe(w, i, lane), what));
  w.limit = nullptr;
  return i;
}

const Inst* RaiseAddressFault(Warp& w, const Inst* i, CuStatus status, uint32_t lane, uint64_t address, uint32_t bytes,
                              const char* access) {
  const char* why = status == CuStatus::kMisalignedAddress     ? "misaligned"
                    : status == CuStatus::kInvalidAddressSpace ? "in a space where it is not possible"
                                                               : "outside of mapped memory";
  return RaiseFault(w, i, status, lane, fmt::format("{} of {} bytes at {:#x} is {}", access, bytes, address, why));
}

const Inst* OpBranch(Warp&, const Inst* i) { return i->target; }

const Inst* OpBranchIf(Warp& w, const Inst* i) {
  uint32_t taken;
  if (!ReadGuard(w, i, taken)) return i + 1;
  const uint32_t rest = w.mask & ~taken;
  if (rest == 0) return i->target;
  if (i->target < i + 1) return Diverge(w, i->target, taken, i + 1, rest);
  return Diverge(w, i + 1, rest, i->target, taken);
}

const Inst* OpGuarded(Warp& w, const Inst* i) {
  const uint32_t mask = w.mask;
  if (ReadGuard(w, i, w.mask)) {
    i->inner(w, i);
    if (w.mask == 0) return i;
  }
  w.mask = mask;
  return i + 1;
}

static void CheckBarriers(Cta& cta) {
  for (uint32_t b = 0; b < 16; ++b) {
    const Barrier& barrier = cta.barriers[b];
    if (barrier.arrived == 0) continue;
    const uint32_t expected = barrier.expected != 0 ? barrier.expected : cta.live_threads;
    if (barrier.arrived >= expected) Grid::ReleaseBarrier(cta, b);
  }
}

// Lanes that arrived in pieces go on together.
static void JoinReady(Warp& w) {
  for (uint32_t s = 0; s < w.split_count; ++s) {
    for (uint32_t t = w.split_count; t-- > s + 1;) {
      Split& a = w.splits[s];
      const Split& b = w.splits[t];
      if (a.state == Split::State::kRun && b.state == a.state && a.pc == b.pc && a.frame == b.frame &&
          a.local == b.local) {
        a.mask |= b.mask;
        w.splits[t] = w.splits[--w.split_count];
      }
    }
  }
}

// Has every thread of the cluster arrived? Then those that wait go on; their instruction looks again.
static void CheckCluster(Cta& cta) {
  const std::span<Cta*> peers(cta.peers, cta.cluster_size);
  uint32_t threads = 0;
  for (const Cta* peer : peers) threads += peer->live_threads;
  if (peers[0]->cluster_arrived != threads || threads == 0) return;
  peers[0]->cluster_arrived = 0;
  for (Cta* peer : peers) {
    for (Warp& w : peer->warps) {
      w.at_cluster = 0;
      for (uint32_t s = 0; s < w.split_count; ++s)
        if (w.splits[s].state == Split::State::kCluster) w.splits[s].state = Split::State::kRun;
      JoinReady(w);
    }
  }
}

const Inst* OpExit(Warp& w, const Inst* i) {
  Cta& cta = *w.cta;
  w.live &= ~w.mask;
  cta.live_threads -= static_cast<uint32_t>(std::popcount(w.mask));
  cta.peers[0]->cluster_arrived -= static_cast<uint32_t>(std::popcount(w.at_cluster & w.mask));
  w.at_cluster &= ~w.mask;
  w.mask = 0;
  w.limit = nullptr;
  CheckBarriers(cta);
  if (cta.peers[0]->cluster_arrived != 0) CheckCluster(cta);
  return i;
}

// barrier.cluster.arrive. Who has arrived already and has not waited yet counts once.
static const Inst* OpClusterArrive(Warp& w, const Inst* i) {
  const uint32_t fresh = w.mask & ~w.at_cluster;
  w.at_cluster |= fresh;
  w.cta->peers[0]->cluster_arrived += static_cast<uint32_t>(std::popcount(fresh));
  CheckCluster(*w.cta);
  return i + 1;
}

static const Inst* OpClusterWait(Warp& w, const Inst* i) {
  if ((w.mask & w.at_cluster) == 0) return i + 1;
  Split split = Current(w, i, w.mask);
  split.state = Split::State::kCluster;
  Put(w, split);
  w.mask = 0;
  w.limit = nullptr;
  return i;
}

bool WaitsForCluster(const Inst* i) { return i->fn == OpClusterWait; }

// bar.sync, bar.arrive: operands id, thread count. bar.red: result, id, thread count, predicate.
enum BarrierKind : uint8_t { kSyncBar, kArriveBar, kRedPopc, kRedAnd, kRedOr };

template <BarrierKind kKind>
static const Inst* OpBar(Warp& w, const Inst* i) {
  constexpr bool kRed = kKind >= kRedPopc;
  constexpr uint32_t kFirst = kRed ? 1 : 0;
  const auto lane = static_cast<uint32_t>(std::countr_zero(w.mask));
  const auto read = [&](uint32_t operand) {
    return reinterpret_cast<const uint32_t*>(w.base[i->base[operand]] + i->offset[operand])[lane];
  };
  const uint32_t id = read(kFirst);
  const uint32_t threads = read(kFirst + 1);
  if (id >= 16)
    return RaiseFault(w, i, CuStatus::kIllegalInstruction, lane, fmt::format("barrier {} of 16 does not exist", id));
  Barrier& barrier = w.cta->barriers[id];
  if (threads != 0) {
    if (threads % kLanes != 0)
      return RaiseFault(w, i, CuStatus::kIllegalInstruction, lane,
                        fmt::format("barrier for {} threads, not a multiple of {}", threads, kLanes));
    barrier.expected = threads;
  }
  // With a count a warp stands for 32 threads, however few of them exist.
  barrier.arrived += threads != 0 && w.mask == w.live ? kLanes : static_cast<uint32_t>(std::popcount(w.mask));
  if constexpr (kRed) {
    const uint32_t operand = 3;
    const auto p = *reinterpret_cast<const uint32_t*>(w.base[i->base[operand]] + i->offset[operand]);
    barrier.count += static_cast<uint32_t>(std::popcount(p & w.mask));
    barrier.voters += static_cast<uint32_t>(std::popcount(w.mask));
  }
  if constexpr (kKind == kArriveBar) {
    CheckBarriers(*w.cta);
    return i + 1;
  }
  Split split = Current(w, i, w.mask);
  split.state = Split::State::kBarrier;
  split.barrier = static_cast<uint8_t>(id);
  Put(w, split);
  w.mask = 0;
  w.limit = nullptr;
  CheckBarriers(*w.cta);
  return i;
}

// The result of bar.red reaches the lanes of a released split.
static void DeliverReduction(Warp& w, const Split& split, const Barrier& barrier) {
  const Inst* i = split.pc;
  std::byte* frame = w.stack + split.frame;
  auto* out = reinterpret_cast<uint32_t*>((i->base[0] == kFrame ? frame : w.base[i->base[0]]) + i->offset[0]);
  if (i->fn == OpBar<kRedPopc>) {
    for (uint32_t m = split.mask; m != 0; m &= m - 1) out[std::countr_zero(m)] = barrier.count;
    return;
  }
  const bool value = i->fn == OpBar<kRedAnd> ? barrier.count == barrier.voters : barrier.count != 0;
  *out = value ? *out | split.mask : *out & ~split.mask;
}

static bool Reduces(const Inst* i) {
  return i->fn == OpBar<kRedPopc> || i->fn == OpBar<kRedAnd> || i->fn == OpBar<kRedOr>;
}

bool WaitsAtBarrier(const Inst* i) { return i->fn == OpBar<kSyncBar> || Reduces(i); }

void Grid::ReleaseBarrier(Cta& cta, uint32_t id) {
  const Barrier done = cta.barriers[id];
  cta.barriers[id] = {};
  for (Warp& w : cta.warps) {
    for (uint32_t s = 0; s < w.split_count; ++s) {
      Split& split = w.splits[s];
      if (split.state != Split::State::kBarrier || split.barrier != id) continue;
      if (Reduces(split.pc)) DeliverReduction(w, split, done);
      split.state = Split::State::kRun;
      ++split.pc;
    }
    JoinReady(w);
  }
}

static const Inst* OpTrap(Warp& w, const Inst* i) {
  return RaiseFault(w, i, CuStatus::kLaunchFailed, static_cast<uint32_t>(std::countr_zero(w.mask)), "trap");
}

static const Inst* OpNothing(Warp&, const Inst* i) { return i + 1; }

static const Inst* OpFence(Warp& w, const Inst* i) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  NoteSync(w, i);
  return i + 1;
}

static const Inst* OpNanosleep(Warp& w, const Inst* i) {
  w.sync_seen = true;
  w.yielded = true;
  w.limit = nullptr;
  return i + 1;
}

OpRows ControlRows() {
  static const OpRow kRows[] = {
      {"exit", OpExit, "", kDiverts},
      {"trap", OpTrap, "", kDiverts},
      {"brkpt", OpTrap, "", kDiverts},
      {"bar.sync", OpBar<kSyncBar>, "a?a", kDiverts},
      {"barrier.sync", OpBar<kSyncBar>, "a?a", kDiverts},
      {"bar.arrive", OpBar<kArriveBar>, "aa", kDiverts},
      {"barrier.arrive", OpBar<kArriveBar>, "aa", kDiverts},
      {"bar.red.popc.u32", OpBar<kRedPopc>, "daap", kDiverts},
      {"bar.red.and.pred", OpBar<kRedAnd>, "Paap", kDiverts},
      {"bar.red.or.pred", OpBar<kRedOr>, "Paap", kDiverts},
      {"barrier.red.popc.u32", OpBar<kRedPopc>, "daap", kDiverts},
      {"barrier.red.and.pred", OpBar<kRedAnd>, "Paap", kDiverts},
      {"barrier.red.or.pred", OpBar<kRedOr>, "Paap", kDiverts},
      {"barrier.cluster.arrive", OpClusterArrive, "", kDiverts},
      {"barrier.cluster.wait", OpClusterWait, "", kDiverts},
      {"membar.cta", OpFence, ""},
      {"membar.gl", OpFence, ""},
      {"membar.sys", OpFence, ""},
      {"fence", OpFence, ""},
      {"nanosleep.u32", OpNanosleep, "a", kDiverts},
      {"pmevent", OpNothing, "a"},
      // A grid begins when those before it in its stream have ended, so there is nothing to wait for or to let begin.
      {"griddepcontrol.launch_dependents", OpNothing, ""},
      {"griddepcontrol.wait", OpNothing, ""},
      {"prefetch", OpNothing, "-"},
      {"prefetchu", OpNothing, "-"},
      {"discard", OpNothing, "-"},
      {"applypriority", OpNothing, "-"},
  };
  return {kRows, std::size(kRows)};
}

}  // namespace vgpud::soft
