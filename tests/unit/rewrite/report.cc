// SPDX-License-Identifier: Apache-2.0
// rewrite_report [--blocks] FILE...: how each kernel of each file can be stopped, and why not better; in the end how
// many can be stopped how, and how often each reason came. FILE: PTX, or anything with fatbins in it, as a built
// program. rewrite_report [--blocks] --text FILE.ptx: what it is rewritten to. With --blocks safepoints are not tried.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "gpu/ptx/fatbin.h"
#include "gpu/rewrite/rewrite.h"

namespace vgpud::rewrite {
namespace {

constexpr uint32_t kFatbinMagic = 0xba55ed50;  // docs/fatbin.md
constexpr size_t kHeaderBytes = 16;
constexpr uint32_t kCapability = 90;

// Of each fatbin in it what a GPU of kCapability gets; all of it where there is none.
std::vector<std::string> TextsOf(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> texts;
  bool fatbins = false;
  for (size_t at = 0; at + kHeaderBytes <= bytes.size(); at += 8) {
    uint32_t magic;
    uint64_t body;
    std::memcpy(&magic, &bytes[at], sizeof magic);
    std::memcpy(&body, &bytes[at + 8], sizeof body);
    if (magic != kFatbinMagic || body > bytes.size() - at - kHeaderBytes) continue;
    fatbins = true;
    if (auto chosen = ptx::SelectPtx(std::as_bytes(std::span(&bytes[at], kHeaderBytes + body)), kCapability))
      for (std::string& text : *chosen) texts.push_back(std::move(text));
    at += (kHeaderBytes + body + 7) / 8 * 8 - 8;
  }
  if (!fatbins) texts.push_back(bytes);
  return texts;
}

// Without its line and its numbers, so that equal causes are equal.
std::string CauseOf(const std::string& reason) {
  const size_t colon = reason.starts_with("line ") ? reason.find(": ") : std::string::npos;
  std::string cause = colon == std::string::npos ? reason : reason.substr(colon + 2);
  std::replace_if(
      cause.begin(), cause.end(), [](unsigned char c) { return std::isdigit(c) != 0; }, 'N');
  return cause;
}

int Main(int argc, char** argv) {
  std::map<std::string, int> counts, causes;
  int kernels = 0;
  bool text_only = false;
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--blocks") options.best = Rung::kBlocks;
    if (word == "--text") text_only = true;
    if (word.starts_with("--")) continue;
    for (const std::string& text : TextsOf(argv[i])) {
      const auto rewritten = Rewrite(text, options);
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
        if (!plan.reasons.empty()) ++causes[CauseOf(plan.reasons.front())];
      }
    }
  }
  std::printf("%d kernels\n", kernels);
  for (const auto& [rung, count] : counts) std::printf("%5d  %s\n", count, rung.c_str());
  for (const auto& [cause, count] : causes) std::printf("%5d  %s\n", count, cause.c_str());
  return 0;
}

}  // namespace
}  // namespace vgpud::rewrite

int main(int argc, char** argv) { return vgpud::rewrite::Main(argc, argv); }
