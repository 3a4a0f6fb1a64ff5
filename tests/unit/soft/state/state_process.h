// SPDX-License-Identifier: Apache-2.0
// What tests of saved contexts do with them: run for a while, go on in another process, damage.
#pragma once

#include <cstdio>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/soft/state/saved_context.h"

namespace vgpud::soft {

inline GpuGrid::Progress RunFor(SoftMachine& m, GpuGrid& grid, uint64_t instructions) {
  const auto ran = grid.Run({&m.word, 0}, instructions);
  EXPECT_TRUE(ran) << ran.error().text;
  return ran ? *ran : GpuGrid::Progress::kDone;
}

// Its output.
inline std::string StateHelper(const std::vector<std::string>& arguments) {
  std::string command = STATE_HELPER;
  for (const std::string& argument : arguments) command += " '" + argument + "'";
  std::string output;
  FILE* pipe = ::popen(command.c_str(), "r");
  char part[256];
  while (pipe != nullptr && std::fgets(part, sizeof part, pipe) != nullptr) output += part;
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return output;
}

// What came out of a damaged file: for a while, wherever it goes.
inline void RunDamaged(SoftMachine& m, std::vector<std::unique_ptr<GpuGrid>>& grids) {
  for (auto& grid : grids)
    for (int turn = 0; turn < 20; ++turn) {
      const auto progress = grid->Run({&m.word, 0}, 1000);
      if (!progress || *progress == GpuGrid::Progress::kDone) break;
    }
}

// Changes up to three places from `begin` to `end`, which is at least 8 bytes before the last one, and makes the
// checksum right again.
inline void MutateState(Bytes& bytes, size_t begin, size_t end, std::mt19937& random) {
  constexpr uint64_t kLikely[] = {0, 1, 2, 31, 32, 33, 0x7fffffff, 0xffffffff, UINT64_MAX, kVramVa, 64, 4096};
  for (uint32_t n = random() % 3 + 1; n != 0; --n) {
    const size_t at = begin + random() % (end - begin);
    const uint64_t word = kLikely[random() % std::size(kLikely)] + random() % 2;
    switch (random() % 4) {
      case 0:
        bytes[at] = static_cast<std::byte>(random());
        break;
      case 1:
        bytes[at] ^= static_cast<std::byte>(1u << random() % 8);
        break;
      case 2:
        std::memcpy(&bytes[at], &word, 4);
        break;
      default:
        std::memcpy(&bytes[at], &word, 8);
    }
  }
  Seal(bytes);
}

}  // namespace vgpud::soft
