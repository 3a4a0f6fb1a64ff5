// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: hostile PTX through parser, linker and decoder, then run for a while. Inputs that begin like PTX
// are taken as they are; all others are choices of a generator (hostile_ptx.h).
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
    if (!in.Chance(8)) vgpud::soft::LeaveOutWhatIsWrong(text);
  }
  if (std::getenv("FUZZ_SHOW") != nullptr) std::fprintf(stderr, "%s\n", text.c_str());
  vgpud::soft::HostileMachine machine;
  machine.LoadAndRun(text, in, kBudget);
  return 0;
}
