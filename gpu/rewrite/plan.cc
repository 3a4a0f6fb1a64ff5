// SPDX-License-Identifier: Apache-2.0
#include "gpu/rewrite/plan.h"

#include "gpu/rewrite/slot_layout.h"

namespace vgpud::rewrite {

const char* Name(Rung rung) {
  constexpr const char* kNames[] = {"none", "blocks", "safepoints"};
  return kNames[static_cast<size_t>(rung)];
}

uint64_t SlotBytes(const KernelPlan& plan, uint32_t threads, uint32_t dynamic_shared) {
  const auto rounded = [](uint64_t bytes) { return (bytes + 15) / 16 * 16; };
  const uint64_t words = uint64_t{plan.thread_words} * threads;
  return kSlotHeaderBytes + rounded(4 * words) + rounded(plan.shared_bytes) + rounded(dynamic_shared);
}

}  // namespace vgpud::rewrite
