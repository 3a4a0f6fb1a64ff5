// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/decode/call_depth.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/checked.h"
#include "gpu/soft/calls/extern_functions.h"
#include "gpu/soft/code/frame_layout.h"

namespace vgpud::soft {
namespace {

// Local memory of a thread, as on compute capability 7.5.
constexpr uint64_t kMaxLocalBytes = 512u << 10;
// For alloca. On real GPUs it is what cudaLimitStackSize leaves, 1 KiB as it stands.
constexpr uint32_t kDynamicLocalBytes = 16u << 10;
constexpr uint64_t kMostLevels = 1024;

struct Need {
  CheckedSize stack;
  CheckedSize local;
  uint32_t specials = 0;
  bool heap = false;
  bool launches = false;
  bool recursive = false;
  bool dynamic = false;
  void IncludeCallee(const Need& n) {
    stack = std::max(stack.saturated(), n.stack.saturated());
    local = std::max(local.saturated(), n.local.saturated());
    specials |= n.specials;
    heap |= n.heap;
    launches |= n.launches;
    recursive |= n.recursive;
    dynamic |= n.dynamic;
  }
};

// Functions that call each other in a circle are one group (Tarjan's strongly connected components, without recursion
// of its own); a group is complete after all that it calls. One more node stands for calls through pointers: it calls
// everything that is not a kernel.
class Groups {
 public:
  explicit Groups(const ProgramCode& program)
      : program_(program), count_(MustFit<uint32_t>(program.functions.size()) + 1), nodes_(count_) {
    for (uint32_t f = 0; f + 1 < count_; ++f)
      if (!program.functions[f]->is_kernel) pointed_.push_back(f);
    for (uint32_t n = 0; n < count_; ++n)
      if (nodes_[n].order == 0) Visit(n);
  }
  const Need& Of(uint32_t function) const { return needs_[nodes_[function].group]; }
  // Groups are complete in the order from what is called to what calls; within one, a call to what was visited earlier
  // closes a circle.
  std::vector<uint32_t> CallersFirst() const {
    std::vector<uint32_t> order(count_ - 1);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [this](uint32_t a, uint32_t b) {
      return std::pair(nodes_[b].group, nodes_[a].order) < std::pair(nodes_[a].group, nodes_[b].order);
    });
    return order;
  }

 private:
  struct Node {
    uint32_t order = 0;  // of the first visit, from 1
    uint32_t low = 0;
    uint32_t next = 0;  // callee to be looked at
    uint32_t group = 0;
    bool open = false;
  };
  const std::vector<uint32_t>& CalleesOf(uint32_t n) const {
    return n + 1 == count_ ? pointed_ : program_.functions[n]->callees;
  }
  uint32_t Callee(uint32_t n, uint32_t at) const {
    const uint32_t callee = CalleesOf(n)[at];
    return callee == ptx::kNoIndex ? count_ - 1 : callee;
  }
  void Enter(uint32_t n) {
    nodes_[n].order = nodes_[n].low = ++visited_;
    nodes_[n].open = true;
    path_.push_back(n);
    open_.push_back(n);
  }
  void Visit(uint32_t start) {
    Enter(start);
    while (!path_.empty()) {
      const uint32_t n = path_.back();
      Node& node = nodes_[n];
      if (node.next < CalleesOf(n).size()) {
        const uint32_t callee = Callee(n, node.next++);
        if (nodes_[callee].order == 0) {
          Enter(callee);
        } else if (nodes_[callee].open) {
          node.low = std::min(node.low, nodes_[callee].order);
        }
        continue;
      }
      path_.pop_back();
      if (!path_.empty()) nodes_[path_.back()].low = std::min(nodes_[path_.back()].low, node.low);
      if (node.low == node.order) Close(n);
    }
  }
  // The group of `first` is what is open since it was entered.
  void Close(uint32_t first) {
    const auto group = MustFit<uint32_t>(needs_.size());
    size_t begin = open_.size();
    do {
      --begin;
      nodes_[open_[begin]].group = group;
      nodes_[open_[begin]].open = false;
    } while (open_[begin] != first);
    Need own;
    Need below;
    own.recursive = open_.size() - begin > 1;
    for (size_t m = begin; m < open_.size(); ++m) {
      const uint32_t n = open_[m];
      if (n + 1 != count_) {
        const CodeFunction& f = *program_.functions[n];
        own.stack += f.frame_bytes;
        own.local += f.local_bytes;
        own.specials |= f.warp_specials;
        own.dynamic |= f.uses_alloca;
        using Uses = ExternFunction::Uses;
        const Uses uses = f.provided != nullptr ? f.provided->uses : Uses::kNothing;
        own.launches |= uses == Uses::kLaunches;
        // Parameters of launches lie on the heap.
        own.heap |= uses != Uses::kNothing;
      }
      for (uint32_t c = 0; c < CalleesOf(n).size(); ++c) {
        const Node& callee = nodes_[Callee(n, c)];
        if (callee.group == group) {
          own.recursive = true;
        } else {
          below.IncludeCallee(needs_[callee.group]);
        }
      }
    }
    below.stack += own.stack;
    below.local += own.local;
    below.specials |= own.specials;
    below.heap |= own.heap;
    below.launches |= own.launches;
    below.recursive |= own.recursive;
    below.dynamic |= own.dynamic;
    needs_.push_back(below);
    open_.resize(begin);
  }

  const ProgramCode& program_;
  const uint32_t count_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> pointed_;
  std::vector<uint32_t> path_;
  std::vector<uint32_t> open_;
  std::vector<Need> needs_;  // of each group with all that it calls
  uint32_t visited_ = 0;
};

// Callers by name have the errors of what they call.
void SpreadErrors(ProgramCode& program) {
  std::vector<std::vector<uint32_t>> callers(program.functions.size());
  std::vector<uint32_t> failed;
  for (uint32_t n = 0; n < program.functions.size(); ++n) {
    for (const uint32_t callee : program.functions[n]->callees)
      if (callee != ptx::kNoIndex) callers[callee].push_back(n);
    if (program.functions[n]->error) failed.push_back(n);
  }
  while (!failed.empty()) {
    const uint32_t callee = failed.back();
    failed.pop_back();
    for (const uint32_t n : callers[callee]) {
      if (program.functions[n]->error) continue;
      program.functions[n]->error = program.functions[callee]->error;
      failed.push_back(n);
    }
  }
}

uint32_t DynamicOf(const Need& need) { return need.dynamic ? kDynamicLocalBytes : 0; }

uint64_t LevelsOf(const Need& need) {
  if (!need.recursive) return 1;
  const uint64_t levels = FittingLevels(need.stack.saturated(), kMostLevels);
  const uint64_t local = need.local.saturated();
  return local == 0 ? levels : std::clamp<uint64_t>((kMaxLocalBytes - DynamicOf(need)) / local, 1, levels);
}

}  // namespace

void SolveCallDepth(ProgramCode& program) {
  SpreadErrors(program);
  const Groups groups(program);
  program.call_order = groups.CallersFirst();
  for (uint32_t n = 0; n < program.functions.size(); ++n) {
    CodeFunction& f = *program.functions[n];
    if (!f.is_kernel || f.error) continue;
    const Need& need = groups.Of(n);
    const uint64_t levels = LevelsOf(need);
    const CheckedSize stack = need.stack * levels;
    const CheckedSize local = need.local * levels;
    const uint32_t dynamic = DynamicOf(need);
    const CheckedSize local_total = local.AlignedUp(16) + dynamic;
    if (!stack.Fits(kMaxStackBytes) || !local_total.Fits(kMaxLocalBytes)) {
      f.error = GpuError{CuStatus::kInvalidPtx,
                         fmt::format("kernel {} needs {} bytes of stack and {} of local memory: too much", f.info.name,
                                     stack.saturated(), local_total.saturated())};
      continue;
    }
    f.levels = MustFit<uint32_t>(levels);
    f.local_total = MustFit<uint32_t>(local_total);
    f.dynamic_local = dynamic;
    f.warp_specials = need.specials;
    f.info.uses_heap = need.heap;
    f.launches = need.launches;
    f.info.local_bytes = MustFit<uint32_t>(local);
  }
}

}  // namespace vgpud::soft
