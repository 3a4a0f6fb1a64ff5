// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/code/frame_layout.h"

#include <algorithm>

#include "base/checked.h"

namespace vgpud::soft {
namespace {

constexpr uint64_t kRecursionStackBytes = 1u << 20;  // of a warp, for more levels than the least

// What `kernel` calls at any depth; a call through a pointer calls all that is no kernel.
std::vector<bool> Reached(const Program& program, const CodeFunction& kernel) {
  std::vector<bool> reached(program.functions.size());
  std::vector<const CodeFunction*> open = {&kernel};
  const auto reach = [&](uint32_t n) {
    if (reached[n] || program.functions[n]->is_kernel) return;
    reached[n] = true;
    open.push_back(program.functions[n].get());
  };
  bool all = false;
  while (!open.empty()) {
    const CodeFunction& f = *open.back();
    open.pop_back();
    for (const uint32_t callee : f.callees) {
      if (callee != ptx::kNoIndex) {
        reach(callee);
      } else if (!all) {
        all = true;
        for (uint32_t n = 0; n < program.functions.size(); ++n) reach(n);
      }
    }
  }
  return reached;
}

}  // namespace

uint64_t FittingLevels(uint64_t bytes, uint64_t wanted) {
  const uint64_t each = std::max<uint64_t>(bytes, 1);
  const uint64_t usual = std::max(kRecursionStackBytes / each, kLeastLevels);
  return std::max<uint64_t>(std::min({usual, kMaxStackBytes / each, wanted}), 1);
}

FrameLayout LayOutFrames(const Program& program, const CodeFunction& kernel) {
  FrameLayout layout;
  if (kernel.callees.empty()) {
    layout.stack_bytes = kernel.frame_bytes;
    return layout;
  }
  const std::vector<bool> reached = Reached(program, kernel);
  layout.base.assign(program.functions.size(), FrameLayout::kNone);
  layout.base[program.origins[kernel.entry].function] = 0;
  uint64_t at = kernel.frame_bytes;
  for (const uint32_t n : program.shared->call_order) {
    if (!reached[n]) continue;
    layout.base[n] = MustFit<uint32_t>(at);
    at += program.functions[n]->frame_bytes;
    if (at > kMaxStackBytes) return {};
  }
  const uint64_t level = at - kernel.frame_bytes;
  layout.level_bytes = MustFit<uint32_t>(level);
  const CheckedSize levels = CheckedSize(level) * FittingLevels(level, kernel.levels);
  layout.stack_bytes = MustFit<uint32_t>(CheckedSize(kernel.frame_bytes) + levels);
  return layout;
}

}  // namespace vgpud::soft
