// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/drill/word_watch.h"

#include <fmt/core.h>

#include "base/log.h"

namespace vgpud::exec {

void WordWatch::Ran(const GpuGrid* grid, const FunctionInfo& function, const LaunchShape& shape, uint64_t instructions,
                    bool done) {
  Running& running = running_[grid];
  running.instructions = instructions;
  if (!done) return;
  const uint64_t threads = uint64_t{shape.block[0]} * shape.block[1] * shape.block[2];
  const std::string kernel = fmt::format("{} threads={} blocks={} launched={}", function.name, threads,
                                         uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2], instructions);
  if (running.word) LOG(kInfo, "word: {} after={}", kernel, instructions - running.at_word);
  if (uint64_t& longest = longest_[function.name]; instructions > longest) {
    longest = instructions;
    LOG(kInfo, "longest: {}", kernel);
  }
  running_.erase(grid);
}

void WordWatch::Wrote() {
  for (auto& [grid, running] : running_) {
    if (running.word) continue;
    running.word = true;
    running.at_word = running.instructions;
  }
}

}  // namespace vgpud::exec
