// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/channel/host_memory_waits.h"

#include <fmt/core.h>

#include "gpu/exec/memory/heap.h"

namespace vgpud::exec {
namespace {

// What an entry leaves behind beside its payload: an operation, a stream, a function's handle.
constexpr uint64_t kPerEntry = 4096;
// Times that a kernel finds missing what was there a moment ago.
constexpr uint32_t kMostGrants = 8;

}  // namespace

std::optional<EntryVerdict> HostMemoryWaits::Admit(RingEntry& entry, uint64_t image_bytes) {
  const uint64_t need = kPerEntry + entry.span.size() + image_bytes;
  if (!heap::KeepReserve())
    return channel_.Reject(entry, CuStatus::kOutOfMemory,
                           fmt::format("{}: the host gives the VF no more memory", FindOp(entry.sqe.op)->name));
  switch (memory_.Ask(HostMemory::Asker::kRing, need)) {
    case HostMemory::Answer::kLater:
      return EntryVerdict::kWait;
    case HostMemory::Answer::kRefused:
      return channel_.Reject(entry, CuStatus::kOutOfMemory,
                             fmt::format("{}: {} bytes exceed what is left of the VF's {} bytes of host memory",
                                         FindOp(entry.sqe.op)->name, need, memory_.quota()));
    case HostMemory::Answer::kGranted:
      break;
  }
  entry.admitted = true;
  return std::nullopt;
}

bool HostMemoryWaits::OthersHoldMemory(const Op& op) {
  bool others = false;
  work_.streams().FindHead([&](const Op& other) { return others = &other != &op && other.holds_blocks; });
  return others;
}

bool HostMemoryWaits::SetShort(Op& op, uint64_t bytes) {
  const bool others = OthersHoldMemory(op);
  if (op.last_chance && !others) return false;
  op.awaits_end = std::exchange(op.last_chance, false);
  // What is there again and again, and does not help, is no reason to go round for ever.
  if (op.grants >= kMostGrants) (others ? op.awaits_end : op.last_chance) = true;
  op.short_of = bytes;
  work_.set_any_short(true);
  work_.MarkNews();
  return true;
}

void HostMemoryWaits::StepOver() {
  if (std::exchange(serve_next_, false)) work_.MarkNews();
}

Op* HostMemoryWaits::Next() {
  Op* first = nullptr;
  bool any = false;
  work_.streams().FindHead([&](Op& op) {
    if (op.short_of == 0) return false;
    any = true;
    if (op.awaits_end || op.last_chance) return false;
    first = &op;
    return true;
  });
  work_.set_any_short(any);
  return first;
}

void HostMemoryWaits::Serve() {
  while (Op* op = Next()) {
    switch (memory_.Ask(HostMemory::Asker::kKernel, op->short_of)) {
      case HostMemory::Answer::kGranted:
        op->short_of = 0;
        ++op->grants;
        serve_next_ = true;
        return;
      case HostMemory::Answer::kLater:
        return;
      case HostMemory::Answer::kRefused:
        // What more than the quota is wanted for never gets it.
        if (op->short_of <= memory_.quota() && OthersHoldMemory(*op)) {
          op->awaits_end = true;
        } else {
          op->last_chance = true;
        }
    }
  }
}

}  // namespace vgpud::exec
