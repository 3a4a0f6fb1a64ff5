// SPDX-License-Identifier: Apache-2.0
// Calls of functions that were not inlined. Each lane has its own columns in the frame of its function, so splits never
// disturb each other, wherever they are (frame_layout.h).
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <type_traits>

#include "gpu/soft/calls/extern_functions.h"
#include "gpu/soft/code/program.h"
#include "gpu/soft/run/grid.h"
#include "gpu/soft/run/warp.h"

namespace vgpud::soft {
namespace {

FrameHeader& HeaderAt(const Warp& w, uint32_t frame) { return *reinterpret_cast<FrameHeader*>(w.stack + frame); }

std::byte* BlockOf(const Warp& w, uint32_t frame, const CodeFunction& f, uint32_t lane) {
  return w.stack + frame + f.params_at + static_cast<size_t>(lane) * f.block_bytes;
}

void CopyParams(const Warp& w, uint32_t mask, uint32_t from_frame, const CodeFunction& from,
                const std::vector<ptx::Param>& source, uint32_t to_frame, const CodeFunction& to,
                const std::vector<ptx::Param>& target) {
  for (size_t p = 0; p < source.size() && p < target.size(); ++p) {
    const uint32_t bytes = std::min(source[p].bytes, target[p].bytes);
    for (uint32_t m = mask; m != 0; m &= m - 1) {
      const auto l = static_cast<uint32_t>(std::countr_zero(m));
      std::memcpy(BlockOf(w, to_frame, to, l) + target[p].offset, BlockOf(w, from_frame, from, l) + source[p].offset,
                  bytes);
    }
  }
}

bool ReturnsToACall(const Warp& w, const Program& program, uint32_t callee, uint32_t back, uint32_t frame,
                    uint32_t local) {
  if (back == 0 || back >= program.code.size() || program.code[back - 1].fn != OpCall) return false;
  const CallSite& site = program.call_sites[static_cast<size_t>(program.code[back - 1].imm)];
  const FrameLayout& frames = w.grid->frames();
  return frames.base[site.caller] != FrameLayout::kNone && frames.Callee(frame, site.caller, callee) == w.frame &&
         uint64_t{local} + program.functions[site.caller]->local_bytes <= w.local_fixed;
}

const Inst* RunExtern(Warp& w, const Inst* i, const ExternFunction& f, const ExternCall& call) {
  const uint32_t all = w.mask;
  const uint32_t rest = f.lanes == ExternFunction::Lanes::kOne ? all & (all - 1) : 0;
  w.mask = all & ~rest;
  const bool done = f.run(call);
  w.mask = all;
  if (!done) return i;
  return rest == 0 ? i + 1 : Diverge(w, i, rest, i + 1, all & ~rest);
}

const Inst* CallExtern(Warp& w, const Inst* i, const CallSite& site, const CodeFunction& caller,
                       const CodeFunction& f) {
  const auto lane = static_cast<uint32_t>(std::countr_zero(w.mask));
  if (f.error) return RaiseFault(w, i, CuStatus::kIllegalInstruction, lane, f.error->text);
  if (f.provided != nullptr) return RunExtern(w, i, *f.provided, ExternCall(w, i, site, caller));
  return RaiseFault(w, i, CuStatus::kIllegalInstruction, lane,
                    fmt::format("the device function {} is not provided by the soft GPU", f.info.name));
}

}  // namespace

const Inst* OpCall(Warp& w, const Inst* i) {
  const Program& program = w.grid->program();
  const CallSite& site = program.call_sites[static_cast<size_t>(i->imm)];
  uint32_t callee = site.callee;
  if (callee == ptx::kNoIndex) {
    const auto* handles = reinterpret_cast<const uint64_t*>(w.base[i->base[0]] + i->offset[0]);
    const auto lane = static_cast<uint32_t>(std::countr_zero(w.mask));
    const uint64_t handle = handles[lane];
    callee = static_cast<uint32_t>(handle);
    if ((handle & ~uint64_t{0xffffffff}) != kFunctionHandle || callee >= program.functions.size() ||
        program.functions[callee]->is_kernel)
      return RaiseFault(w, i, CuStatus::kInvalidPc, lane, fmt::format("call of {:#x}, which is no function", handle));
    uint32_t same = 0;
    for (uint32_t m = w.mask; m != 0; m &= m - 1) {
      const auto l = static_cast<uint32_t>(std::countr_zero(m));
      same |= static_cast<uint32_t>(handles[l] == handle) << l;
    }
    if (same != w.mask) Diverge(w, i, same, i, w.mask & ~same);
  }
  const CodeFunction& caller = *program.functions[site.caller];
  const CodeFunction& f = *program.functions[callee];
  if (f.frame_bytes == 0) return CallExtern(w, i, site, caller, f);
  const uint64_t next = w.grid->frames().Callee(w.frame, site.caller, callee);
  if (next + f.frame_bytes > w.stack_bytes || uint64_t{w.local} + caller.local_bytes + f.local_bytes > w.local_fixed)
    return RaiseFault(w, i, CuStatus::kHardwareStackError, static_cast<uint32_t>(std::countr_zero(w.mask)),
                      "the call stack is full");
  const auto frame = static_cast<uint32_t>(next);
  CopyParams(w, w.mask, w.frame, caller, site.arguments, frame, f, f.params);
  FrameHeader& header = HeaderAt(w, frame);
  const auto back = static_cast<uint32_t>(i + 1 - program.code.data());
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(std::countr_zero(m));
    header.return_pc[l] = back;
    header.previous_frame[l] = w.frame;
    header.previous_local[l] = w.local;
  }
  w.frame = frame;
  w.local += caller.local_bytes;
  w.base[kFrame] = w.stack + frame;
  if (w.split_count != 0) w.limit = nullptr;
  return program.code.data() + f.entry;
}

const Inst* OpReturn(Warp& w, const Inst* i) {
  const Program& program = w.grid->program();
  const FrameHeader& header = HeaderAt(w, w.frame);
  const auto first = static_cast<uint32_t>(std::countr_zero(w.mask));
  const uint32_t back_index = header.return_pc[first];
  uint32_t same = 0;
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(std::countr_zero(m));
    same |= static_cast<uint32_t>(header.return_pc[l] == back_index &&
                                  header.previous_frame[l] == header.previous_frame[first] &&
                                  header.previous_local[l] == header.previous_local[first])
            << l;
  }
  if (same != w.mask) Diverge(w, i, same, i, w.mask & ~same);
  // Whatever happens, what a header says is believed only if it is a place from which there can have been a call.
  const uint32_t callee = program.origins[static_cast<size_t>(i - program.code.data())].function;
  if (!ReturnsToACall(w, program, callee, back_index, header.previous_frame[first], header.previous_local[first]))
    return RaiseFault(w, i, CuStatus::kInvalidPc, first, "the call stack is damaged, there is nowhere to return to");
  const Inst* back = program.code.data() + back_index;
  const CallSite& site = program.call_sites[static_cast<size_t>((back - 1)->imm)];
  const CodeFunction& f = *program.functions[callee];
  const uint32_t previous = header.previous_frame[first];
  CopyParams(w, same, w.frame, f, f.returns, previous, *program.functions[site.caller], site.results);
  w.local = header.previous_local[first];
  w.frame = previous;
  w.base[kFrame] = w.stack + previous;
  if (w.split_count != 0) w.limit = nullptr;
  return back;
}

const Inst* OpLocalAddress(Warp& w, const Inst* i) {
  std::byte* d = w.base[i->base[0]] + i->offset[0];
  const uint64_t value = w.local + static_cast<uint64_t>(i->imm);
  const auto put = [&](auto* slots) {
    for (uint32_t l = 0; l < kLanes; ++l)
      slots[l] = (w.mask >> l) & 1 ? static_cast<std::remove_pointer_t<decltype(slots)>>(value) : slots[l];
  };
  i->aux == 8 ? put(reinterpret_cast<uint64_t*>(d)) : put(reinterpret_cast<uint32_t*>(d));
  return i + 1;
}

// aux: bytes in the parameter | 0x10 signed | 0x20 64-bit slot. offset[1], [2]: block in the frame, bytes per lane.
const Inst* OpLoadCallParam(Warp& w, const Inst* i) {
  const uint32_t bytes = i->aux & 15;
  const uint32_t slot = i->aux & 0x20 ? 8 : 4;
  std::byte* d = w.base[i->base[0]] + i->offset[0];
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(std::countr_zero(m));
    uint64_t v = 0;
    std::memcpy(&v, w.base[kFrame] + i->offset[1] + static_cast<size_t>(l) * i->offset[2] + i->imm, bytes);
    if (i->aux & 0x10) v = static_cast<uint64_t>(static_cast<int64_t>(v << (64 - 8 * bytes)) >> (64 - 8 * bytes));
    std::memcpy(d + static_cast<size_t>(l) * slot, &v, slot);
  }
  return i + 1;
}

const Inst* OpStoreCallParam(Warp& w, const Inst* i) {
  const uint32_t bytes = i->aux & 15;
  const uint32_t slot = i->aux & 0x20 ? 8 : 4;
  const std::byte* s = w.base[i->base[0]] + i->offset[0];
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(std::countr_zero(m));
    std::memcpy(w.base[kFrame] + i->offset[1] + static_cast<size_t>(l) * i->offset[2] + i->imm,
                s + static_cast<size_t>(l) * slot, bytes);
  }
  return i + 1;
}

}  // namespace vgpud::soft
