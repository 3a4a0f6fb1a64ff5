// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/run/warp_state.h"

#include <bit>

#include "base/checked.h"
#include "gpu/soft/run/cta_set.h"
#include "gpu/soft/run/grid.h"

namespace vgpud::soft {
namespace {

const Inst* NoLimit() { return reinterpret_cast<const Inst*>(UINTPTR_MAX); }

uint32_t IndexOf(const Program& program, const Inst* i) { return MustFit<uint32_t>(i - program.code.data()); }

// 0 = nullptr, then the instructions, then no limit.
uint32_t LimitIndex(const Program& program, const Inst* limit) {
  if (limit == nullptr) return 0;
  if (limit == NoLimit()) return MustFit<uint32_t>(program.code.size()) + 1;
  return IndexOf(program, limit) + 1;
}

std::span<std::byte> Local(const Warp& w) { return {w.local_memory, size_t{w.local_stride} * kLanes}; }
std::span<std::byte> Stack(const Warp& w) { return {w.stack, w.stack_bytes}; }

// Checks the places in code and stack of a warp that was read.
class PlaceCheck {
 public:
  PlaceCheck(StateReader& in, const Warp& warp, const Program& program, const CodeFunction& kernel)
      : in_(in), warp_(warp), program_(program), kernel_(kernel) {}

  // The lanes of `mask` are at `pc`, `frame` and `local` bytes deep in stack and local memory.
  void Check(uint32_t pc, uint32_t mask, uint32_t frame, uint32_t local) {
    if (!in_.ok()) return;
    const uint32_t function = FunctionAt(pc);
    const CodeFunction& f = *program_.functions[function];
    if (frame % kSlotAlign != 0 || uint64_t{frame} + f.frame_bytes > warp_.stack_bytes ||
        uint64_t{local} + f.local_bytes > warp_.local_fixed)
      return in_.Bad("depth of a call", frame);
    for (uint32_t m = mask; m != 0 && in_.ok(); m &= m - 1)
      CheckChain(static_cast<uint32_t>(std::countr_zero(m)), function, frame, local);
  }

 private:
  static bool Reached(const FrameLayout& frames, uint32_t function) {
    return function < frames.base.size() && frames.base[function] != FrameLayout::kNone;
  }
  uint32_t FunctionAt(uint32_t pc) const { return program_.origins[pc].function; }

  // From a function back to the kernel, as `lane` will return.
  void CheckChain(uint32_t lane, uint32_t function, uint32_t frame, uint32_t local) {
    const FrameLayout& frames = warp_.grid->frames();
    while (program_.functions[function].get() != &kernel_) {
      const CodeFunction& f = *program_.functions[function];
      if (f.is_kernel || frame == 0 || f.frame_bytes < sizeof(FrameHeader) || !Reached(frames, function))
        return in_.Bad("function of a call", frame);
      const auto& header = *reinterpret_cast<const FrameHeader*>(warp_.stack + frame);
      const uint32_t back = header.return_pc[lane];
      if (back == 0 || back >= program_.code.size() || program_.code[back - 1].fn != OpCall)
        return in_.Bad("return address", back);
      const CallSite& site = program_.call_sites[static_cast<size_t>(program_.code[back - 1].imm)];
      const uint32_t caller = FunctionAt(back - 1);
      if ((site.callee != ptx::kNoIndex && site.callee != function) || !Reached(frames, caller))
        return in_.Bad("return address", back);
      const uint32_t previous = header.previous_frame[lane];
      const uint32_t previous_local = header.previous_local[lane];
      if (frames.Callee(previous, caller, function) != frame ||
          uint64_t{previous_local} + program_.functions[caller]->local_bytes != local)
        return in_.Bad("frame of a caller", previous);
      function = caller;
      frame = previous;
      local = previous_local;
    }
    if (frame != 0 || local != 0) in_.Bad("frame of a kernel", frame);
  }

  StateReader& in_;
  const Warp& warp_;
  const Program& program_;
  const CodeFunction& kernel_;
};

void SaveSplit(StateWriter& out, const Split& s, const Program& program) {
  out.Put(IndexOf(program, s.pc));
  out.Put(s.mask);
  out.Put(s.frame);
  out.Put(s.local);
  out.Put(s.state);
  out.Put<uint8_t>(s.forced);
  out.Put(s.barrier);
  out.Put(s.need);
  out.Put(s.last_run);
}

Split LoadSplit(StateReader& in, const Program& program) {
  Split s{};
  s.pc = program.code.data() + in.GetUpTo<uint32_t>(program.code.size() - 1, "program counter");
  s.mask = in.Get<uint32_t>();
  s.frame = in.Get<uint32_t>();
  s.local = in.Get<uint32_t>();
  s.state = static_cast<Split::State>(in.GetUpTo<uint8_t>(3, "state of a split"));
  s.forced = in.GetBool("state of a split");
  s.barrier = in.GetUpTo<uint8_t>(15, "barrier");
  s.need = in.Get<uint32_t>();
  s.last_run = in.Get<uint64_t>();
  if (s.mask == 0) in.Bad("lanes of a split", 0);
  if (s.state == Split::State::kBarrier && !WaitsAtBarrier(s.pc)) in.Bad("place of a barrier", s.barrier);
  if (s.state == Split::State::kCluster && !WaitsForCluster(s.pc)) in.Bad("place of a barrier of a cluster", s.mask);
  return s;
}

}  // namespace

void SaveWarp(StateWriter& out, const Warp& w, const Program& program) {
  out.Put(w.live);
  out.Put(w.at_cluster);
  out.Put<uint8_t>(w.mask != 0);
  if (w.mask != 0) {
    SaveSplit(out, {w.pc, w.mask, w.frame, w.local, Split::State::kRun, false, 0, 0, 0}, program);
    out.Put(LimitIndex(program, w.limit));
  }
  out.Put<uint8_t>(w.force_sync);
  out.Put<uint8_t>(w.yielded);
  out.Put<uint8_t>(w.sync_seen);
  out.Put(w.fairness);
  out.Put(w.polls);
  out.Put<uint32_t>(w.last_poll == nullptr ? 0 : IndexOf(program, w.last_poll) + 1);
  out.Put(w.selections);
  out.Put(w.slice);
  out.Put(w.split_count);
  for (uint32_t s = 0; s < w.split_count; ++s) SaveSplit(out, w.splits[s], program);
  out.PutSparse(Stack(w));
  out.PutSparse(Local(w));
}

void LoadWarp(StateReader& in, Warp& w, const Program& program, const CodeFunction& kernel, uint32_t lanes) {
  const auto size = program.code.size();
  w.live = in.Get<uint32_t>();
  w.at_cluster = in.Get<uint32_t>();
  if ((w.at_cluster & ~w.live) != 0) in.Bad("lanes at the barrier of a cluster", w.at_cluster);
  const bool current = in.GetBool("current split");
  w.mask = 0;
  w.frame = w.local = 0;
  w.pc = program.code.data() + kernel.entry;
  w.limit = nullptr;
  uint32_t seen = 0;
  uint32_t twice = 0;
  if (current) {
    const Split s = LoadSplit(in, program);
    const auto limit = in.GetUpTo<uint32_t>(size + 1, "end of a split");
    w.mask = seen = s.mask;
    w.pc = s.pc;
    w.frame = s.frame;
    w.local = s.local;
    w.limit = limit == 0 ? nullptr : limit == size + 1 ? NoLimit() : program.code.data() + limit - 1;
  }
  w.force_sync = in.GetBool("warp state");
  w.yielded = in.GetBool("warp state");
  w.sync_seen = in.GetBool("warp state");
  w.fairness = in.Get<uint32_t>();
  w.polls = in.Get<uint32_t>();
  const auto poll = in.GetUpTo<uint32_t>(size, "program counter");
  w.last_poll = poll == 0 ? nullptr : program.code.data() + poll - 1;
  w.selections = in.Get<uint64_t>();
  w.slice = in.GetUpTo<uint64_t>(kWarpSlice, "slice of a warp");
  if (w.slice == 0) in.Bad("slice of a warp", 0);
  const auto splits = in.GetUpTo<uint32_t>(kLanes, "number of splits");
  for (uint32_t s = 0; s < splits && in.ok(); ++s) {
    w.splits[s] = LoadSplit(in, program);
    twice |= seen & w.splits[s].mask;
    seen |= w.splits[s].mask;
  }
  w.split_count = in.ok() ? splits : 0;
  if (twice != 0 || seen != w.live || (w.live & ~lanes) != 0) in.Bad("lanes of a warp", w.live);
  in.GetSparse(Stack(w), "page of a stack");
  in.GetSparse(Local(w), "page of local memory");
  PlaceCheck places(in, w, program, kernel);
  if (w.mask != 0) places.Check(IndexOf(program, w.pc), w.mask, w.frame, w.local);
  for (uint32_t s = 0; s < w.split_count; ++s) {
    const Split& split = w.splits[s];
    places.Check(IndexOf(program, split.pc), split.mask, split.frame, split.local);
  }
  if (in.ok()) w.base[kFrame] = w.stack + w.frame;
}

}  // namespace vgpud::soft
