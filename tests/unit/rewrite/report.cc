// SPDX-License-Identifier: Apache-2.0
// rewrite_report [--blocks] FILE.ptx...: how each kernel of each file can be stopped, and why not better.
// rewrite_report [--blocks] --text FILE.ptx: what it is rewritten to. With --blocks safepoints are not tried.
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

#include "gpu/rewrite/rewrite.h"

int main(int argc, char** argv) {
  using namespace vgpud::rewrite;
  std::map<std::string, int> counts;
  int kernels = 0;
  bool text_only = false;
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--blocks") options.best = Rung::kBlocks;
    if (word == "--text") text_only = true;
    if (word.starts_with("--")) continue;
    std::ifstream file(argv[i]);
    std::stringstream text;
    text << file.rdbuf();
    const auto rewritten = Rewrite(text.str(), options);
    if (!rewritten) {
      std::printf("%s: %s\n", argv[i], rewritten.error().text.c_str());
      continue;
    }
    if (text_only) return std::fputs(rewritten->text.c_str(), stdout) < 0 ? 1 : 0;
    for (const KernelPlan& plan : rewritten->kernels) {
      ++kernels;
      const std::string rung = std::string(Name(plan.rung)) + (plan.complete ? ", complete" : ", not complete");
      ++counts[rung];
      std::printf("%s %s: %s, %u safepoints, %u words a thread\n", argv[i], plan.name.c_str(), rung.c_str(),
                  plan.safepoints, plan.thread_words);
      for (const std::string& reason : plan.reasons) std::printf("    %s\n", reason.c_str());
    }
  }
  std::printf("%d kernels\n", kernels);
  for (const auto& [rung, count] : counts) std::printf("%5d  %s\n", count, rung.c_str());
  return 0;
}
