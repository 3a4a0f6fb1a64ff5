// SPDX-License-Identifier: Apache-2.0
// rewrite_campaign [CUTS]: runs kernels of many kinds in turns that end at random warp instructions, by the stop word
// alone, until each has been cut CUTS times (10000) on each rung, and compares what they compute with an undisturbed
// run. Prints a row for each. Exit status 1: one differs.
#include <cstdlib>

#include "tests/unit/rewrite/rewrite_works.h"

namespace vgpud::rewrite {
namespace {

struct Row {
  const char* name;
  uint64_t longest;  // turn, in warp instructions
};
constexpr Row kBlocks[] = {
    {"index", 300},   {"asking", 200},   {"look_back", 150}, {"full_shared", 1500}, {"last_block", 300},
    {"matmul", 1500}, {"collatz", 1500}, {"vectoradd", 500}, {"stencil", 500},      {"meter", 700},
};
constexpr Row kSafepoints[] = {
    {"types", 300},
    {"meeting", 1500},
    {"halves", 1000},
    {"uniform", 1000},
    {"from_memory", 1000},
    {"ask_again", 500},
    {"tables", 300},
    {"locks", 800},
    {"matmul", 1500},
    {"collatz", 1500},
    {"meter", 700},
    {"recursion", 1500},
    {"look_back", 400},
    {"textures", 300},
    {"wmma", 60},
    {"large_matmul", 200'000},
    {"long_collatz", 100'000},
};

// False: it differs.
bool Run(const Row& row, const Options& options, uint64_t wanted) {
  const soft::WorkRow& work = AnyWork(row.name);
  soft::SoftMachine plain;
  const soft::Work original = work.make(plain);
  const uint64_t whole = plain.Finish(*original.grid).instructions;
  const uint64_t answer = AnswerOf(plain, original);
  std::mt19937 random(1);
  uint64_t cuts = 0, runs = 0, latest = 0, alone = 0;
  std::string wrong;
  while (wrong.empty() && cuts < wanted) {
    TurnMachine m(options);
    const soft::Work again = work.make(m);
    if (m.plan().rung != options.best)
      return std::printf("%-12s is on rung %s\n", row.name, Name(m.plan().rung)), false;
    // The first one is not cut: what the added code costs.
    const Ran ran = m.Run([&] { return runs == 0 ? UINT64_MAX : 1 + random() % row.longest; });
    if (runs++ == 0) alone = ran.instructions;
    if (!ran.error.empty()) wrong = ran.error;
    if (AnswerOf(m, again) != answer) wrong = "another result";
    cuts += ran.cuts;
    latest = std::max(latest, ran.latest);
    if (runs > 1 && ran.cuts == 0 && runs > 100'000) wrong = "it is never cut";
  }
  std::printf("%-10s %-12s %7llu cuts in %5llu runs, most instructions behind a cut %6llu, added code %5.1f %%  %s\n",
              Name(options.best), row.name, static_cast<unsigned long long>(cuts),
              static_cast<unsigned long long>(runs), static_cast<unsigned long long>(latest),
              100.0 * (static_cast<double>(alone) / static_cast<double>(whole) - 1),
              wrong.empty() ? "equal" : wrong.c_str());
  std::fflush(stdout);
  return wrong.empty();
}

}  // namespace
}  // namespace vgpud::rewrite

int main(int argc, char** argv) {
  using namespace vgpud::rewrite;
  const uint64_t wanted = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10'000;
  bool equal = true;
  for (const Row& row : kBlocks) equal &= Run(row, {.best = Rung::kBlocks}, wanted);
  for (const Row& row : kSafepoints) equal &= Run(row, {}, wanted);
  return equal && !testing::Test::HasFailure() ? 0 : 1;
}
