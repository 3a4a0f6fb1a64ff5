// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/fleet/waiting.h"

#include <queue>
#include <utility>

namespace vgpud::tools::fleet {

void Waiting::ForEach(const std::function<Answer(uint32_t)>& start) {
  using Head = std::pair<uint32_t, std::deque<uint32_t>*>;
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
  for (auto& [key, line] : lines_) heads.emplace(line.front(), &line);
  while (!heads.empty()) {
    const auto [number, line] = heads.top();
    heads.pop();
    if (start(number) == Answer::kStays) continue;
    line->pop_front();
    --count_;
    if (!line->empty()) heads.emplace(line->front(), line);
  }
  std::erase_if(lines_, [](const auto& entry) { return entry.second.empty(); });
}

}  // namespace vgpud::tools::fleet
