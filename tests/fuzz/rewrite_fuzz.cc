// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: hostile PTX through the rewriter (gpu/rewrite). What it makes must be PTX again; a kernel that the
// soft GPU took before is taken after it, and runs. Inputs as those of ptx_fuzz.
#include <cstdlib>
#include <cstring>
#include <string>

#include "gpu/ptx/parser.h"
#include "gpu/rewrite/rewrite.h"
#include "gpu/rewrite/turns.h"
#include "tests/fuzz/hostile_ptx.h"
#include "tests/fuzz/hostile_run.h"
#include "tests/unit/soft/rig/ptx_check.h"

namespace {

using namespace vgpud;

constexpr uint64_t kBudget = 3000;  // warp instructions of one kernel
constexpr int kMostKernels = 4;

GpuResult<std::unique_ptr<GpuModule>> Load(soft::HostileMachine& machine, const std::string& text) {
  return machine.gpu.Load(std::as_bytes(std::span(text.data(), text.size())));
}

// Does the soft GPU take a launch of one block? Then it is run for a while.
bool Takes(soft::HostileMachine& machine, const GpuModule& module, const std::string& kernel, uint32_t threads,
           const std::vector<std::byte>& params) {
  const FunctionInfo* function = module.Function(kernel);
  if (function == nullptr) return false;
  if (function->uses_heap && !machine.gpu.MakeHeap()) return false;
  auto grid = machine.gpu.Launch(*function, {{1, 1, 1}, {threads, 1, 1}, 0}, params, 48 << 10);
  if (!grid) return false;
  std::atomic<uint32_t> word{0};
  (void)(*grid)->Run({&word, 0}, kBudget);
  return true;
}

void CheckKernel(const std::string& text, const rewrite::Rewritten& rewritten, const rewrite::KernelPlan& plan,
                 FuzzBytes& in) {
  soft::HostileMachine before, after;
  const auto original = Load(before, text), changed = Load(after, rewritten.text);
  if (!original) return;
  if (!changed) std::abort();
  const FunctionInfo* function = (*original)->Function(plan.name);
  if (function == nullptr) return;
  std::vector<std::byte> params = before.Params(in, function->param_bytes);
  const uint32_t threads = 1 + in.Pick(40);
  if (!Takes(before, **original, plan.name, threads, params)) return;
  if (plan.rung == rewrite::Rung::kNone) return;
  rewrite::GridTurns turns(plan, {1, 1, 1}, threads, 0, 1);
  rewrite::GridTurns::Launch launch = turns.Next();
  const auto area = after.gpu.Alloc(turns.control_words() * 4 + 256 + turns.slot_area_bytes());
  if (!area || !after.gpu.CopyIn(*area, std::as_bytes(std::span(launch.control)))) return;
  launch.turn.control = Raw(*area);
  launch.turn.stop_word = Raw(*area) + 4 * turns.control_words();  // some word: it has changed or has not
  launch.turn.saved = (Raw(*area) + 4 * turns.control_words() + 16) / 16 * 16;
  params.resize(plan.turn_offset);
  const auto* turn = reinterpret_cast<const std::byte*>(&launch.turn);
  params.insert(params.end(), turn, turn + sizeof launch.turn);
  if (!Takes(after, **changed, plan.entry, threads, params)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzBytes in(data, size);
  const bool is_text = size != 0 && (data[0] == '.' || data[0] == '/' || data[0] == '\n');
  std::string text = is_text ? std::string(reinterpret_cast<const char*>(data), size) : soft::HostilePtx(in);
  if (!is_text && !in.Chance(8)) soft::LeaveOutWhatIsWrong(text);
  if (std::getenv("FUZZ_SHOW") != nullptr) std::fprintf(stderr, "%s\n", text.c_str());
  rewrite::Options options;
  options.best = in.Chance(4) ? rewrite::Rung::kBlocks : rewrite::Rung::kSafepoints;
  options.poll_after = in.Pick(3);
  options.keep_originals = in.Chance(4);
  const auto rewritten = rewrite::Rewrite(text, options);
  if (!rewritten) {
    soft::CheckText(rewritten.error());
    return 0;
  }
  const auto parsed = ptx::Parse(rewritten->text);
  if (!parsed || !ptx::BrokenInvariant(**parsed).empty()) std::abort();
  int kernels = 0;
  for (const rewrite::KernelPlan& plan : rewritten->kernels)
    if (kernels++ < kMostKernels) CheckKernel(text, *rewritten, plan, in);
  return 0;
}
