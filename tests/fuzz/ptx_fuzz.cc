// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: hostile PTX through parser, linker and decoder, then run for a while. Inputs that begin like PTX
// are taken as they are; all others are choices of a generator (hostile_ptx.h).
#include <algorithm>
#include <cstdlib>
#include <string>

#include "gpu/ptx/link.h"
#include "gpu/ptx/parser.h"
#include "tests/fuzz/hostile_ptx.h"
#include "tests/fuzz/hostile_run.h"
#include "tests/unit/soft/rig/ptx_check.h"

namespace {

constexpr uint64_t kBudget = 3000;  // warp instructions of one kernel

void CheckParts(const std::string& text) {
  const auto module = vgpud::ptx::Parse(text);
  if (module && !vgpud::ptx::BrokenInvariant(**module).empty()) std::abort();
  if (!module) vgpud::soft::CheckText(module.error());
  // The same text twice: everything that a part has for itself is renamed, everything else clashes.
  const std::string parts[] = {text, text};
  const auto linked = vgpud::ptx::ParseParts(parts);
  if (!linked) vgpud::soft::CheckText(linked.error());
}

// One wrong instruction keeps a kernel from running at all, so such lines go.
void LeaveOutWhatIsWrong(std::string& text) {
  constexpr int kMostRepairs = 24;
  vgpud::soft::HostileMachine machine;
  for (int repair = 0; repair < kMostRepairs; ++repair) {
    const uint32_t line = machine.WrongLine(text);
    if (line == 0) return;
    size_t begin = 0;
    for (uint32_t n = 1; n < line && begin != text.npos; ++n) begin = text.find('\n', begin) + 1;
    const size_t end = std::min(text.find('\n', begin), text.size());
    const bool structure = text[begin] == '{' || text[begin] == '}' || text.compare(begin, 1, ".") == 0;
    if (begin == end || (structure && end - begin < 3)) return;
    text.replace(begin, end - begin, "");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  vgpud::FuzzBytes in(data, size);
  const bool is_text = size != 0 && (data[0] == '.' || data[0] == '/' || data[0] == '\n');
  std::string text;
  if (is_text) {
    text.assign(reinterpret_cast<const char*>(data), size);
    CheckParts(text);
  } else {
    text = vgpud::soft::HostilePtx(in);
    if (in.Chance(16)) CheckParts(text);
    if (!in.Chance(8)) LeaveOutWhatIsWrong(text);
  }
  if (std::getenv("FUZZ_SHOW") != nullptr) std::fprintf(stderr, "%s\n", text.c_str());
  vgpud::soft::HostileMachine machine;
  machine.LoadAndRun(text, in, kBudget);
  return 0;
}
