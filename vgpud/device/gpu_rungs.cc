// SPDX-License-Identifier: Apache-2.0
#include "vgpud/device/gpu_rungs.h"

#include <fmt/core.h>

#include <algorithm>

#include "vgpud/device/channels_trial.h"
#include "vgpud/device/exec_question.h"

namespace vgpud::daemon {
namespace {

// From when the driver has started; it compiles in it. Whoever does not end by then does not leave the GPU.
constexpr std::chrono::seconds kLimit{10};
constexpr Ns kKillLimit = std::chrono::seconds{10};

// Behind what its log has to say.
std::string LastLine(std::string said) {
  while (!said.empty() && said.back() == '\n') said.pop_back();
  return said.substr(said.rfind('\n') + 1);
}

Result<std::string> TryOne(GpuChoice choice, const ExecStart& start, const std::string& rung) {
  choice.cuda_rung = rung;
  ExecQuestion question =
      TRY(ExecQuestion::Ask(choice, start, ExecArguments().Add(ExecOption::kTestRung, rung).Take()));
  TRY(question.AwaitReady());
  auto said = question.Await(kLimit);
  if (!said && said.error().code == std::errc::timed_out)
    return Fail(std::errc::timed_out, fmt::format("a kernel did not leave the GPU within {} s", kLimit.count()));
  if (!said) return said;
  return LastLine(*said);
}

Result<std::string> TryProgram(GpuChoice choice, const ExecStart& start) {
  choice.cuda_rung = "gate";
  ExecQuestion question =
      TRY(ExecQuestion::Ask(choice, start, ExecArguments().Add(ExecOption::kTestRung, kProgramTrial).Take()));
  TRY(question.AwaitReady());
  auto said = question.Await(kLimit);
  const std::string refused = question.refused();
  const std::string calls = refused.empty() ? "" : fmt::format("; system calls that were refused: {}", refused);
  if (!said && said.error().code == std::errc::timed_out)
    return Fail(std::errc::timed_out, fmt::format("a program did not end within {} s{}", kLimit.count(), calls));
  if (!said) return Fail(said.error().code, said.error().context + calls);
  return LastLine(*said) + calls;
}

// The process of an endless kernel is killed, and the GPU must be there for another one.
Result<std::string> TryKill(GpuChoice choice, const ExecStart& start) {
  choice.cuda_rung = "gate";
  ExecQuestion question =
      TRY(ExecQuestion::Ask(choice, start, ExecArguments().Add(ExecOption::kTestRung, "kill").Take()));
  TRY(question.AwaitReady());
  TRY(question.AwaitLine("running", kLimit));
  const Ns took = TRY(question.Kill(kKillLimit));
  if (const auto next = TryOne(choice, start, "gate"); !next)
    return Fail(next.error().code, "after a kernel was killed, the next one: " + next.error().context);
  return fmt::format("the process of a kernel without an end was gone {} us after it was killed, and the next one ran",
                     std::chrono::duration_cast<std::chrono::microseconds>(took).count());
}

constexpr const char* kByKernels[] = {"gate", "blocks", "safepoints"};

}  // namespace

std::vector<GpuRung> TryRungs(const GpuChoice& choice, const ExecStart& start) {
  std::vector<GpuRung> rungs;
  const auto add = [&](const char* name, const Result<std::string>& tried) {
    rungs.push_back({name, tried.has_value(), tried ? *tried : tried.error().context});
  };
  std::string why_not;
  for (const char* name : kByKernels) {
    if (!why_not.empty()) {
      rungs.push_back({name, false, "not tried: " + why_not});
      continue;
    }
    add(name, TryOne(choice, start, name));
    if (!rungs.back().works) why_not = fmt::format("it builds on {}, which does not work", name);
    if (choice.cuda_rung == name) why_not = "--cuda-rung " + choice.cuda_rung;
  }
  add(kChannelsRung, TryChannels(choice, start, kLimit));
  add("kill", TryKill(choice, start));
  add(kProgramTrial, TryProgram(choice, start));
  return rungs;
}

std::string BestRung(const std::vector<GpuRung>& rungs) {
  std::string best;
  for (const char* name : kByKernels)
    if (std::any_of(rungs.begin(), rungs.end(), [&](const GpuRung& rung) { return rung.works && rung.name == name; }))
      best = name;
  return best;
}

}  // namespace vgpud::daemon
