// SPDX-License-Identifier: Apache-2.0
// Experiments that need no controls of the driver.
#include <fmt/core.h>
#include <unistd.h>

#include "tools/gpucheck/driver.h"
#include "tools/gpucheck/probe.h"

namespace gpucheck {

using Verdict = Seen::Verdict;

Seen KillOne(Pair& pair, const Settings& settings) {
  std::string why;
  if (!StartBoth(pair, why)) return NotMeasured(why);
  const double gone = pair.b.Kill(10);
  const double rate = pair.a.BeatsPerSecond(settings.seconds / 4);
  pair.a.board().task = Task::kNone;
  const bool ends = pair.a.Await(State::kDone, 20);
  return {gone >= 0 && gone < 5 && rate > 0 && ends ? Verdict::kPass : Verdict::kFail,
          ends ? "the neighbour went on and ended well" : "the neighbour did not end",
          {{"gone_after_ms", 1000 * gone}, {"neighbours_beats_per_s", rate}}};
}

Seen ManagedMemory(Pair&, const Settings&) {
  return NotMeasured(
      "managed memory is never given to VFs, and a program that asks for more of it than the card has free can hang a "
      "GPU "
      "that others use, too");
}

Seen ContextSwitchTrace(Pair&, const Settings&) {
  return NotMeasured(
      "it needs NVIDIA's profiler: nsys profile --gpuctxsw=true ./gpu_probe --only E8, on a GPU of your own (it may "
      "turn a "
      "setting of the device on)");
}

// How long a short kernel of B takes beside an endless one of A when nobody stops it: the driver's own time slices.
Seen WithoutControl(Pair& pair, const Settings&) {
  pair.b.Tell(Task::kLaunchLatency);
  if (!pair.b.Await(State::kDone, 60)) return NotMeasured("launches do not end");
  const auto alone = static_cast<double>(pair.b.board().result);
  pair.a.Tell(Task::kRun);
  for (const double end = Seconds() + 20; pair.a.board().beats() == 0;) {
    if (Seconds() > end) return NotMeasured("its kernel does not run");
    usleep(1000);
  }
  pair.b.Tell(Task::kLaunchLatency);
  const bool ended = pair.b.Await(State::kDone, 120);
  const auto beside = static_cast<double>(pair.b.board().result);
  pair.a.board().task = Task::kNone;
  (void)pair.a.Await(State::kDone, 20);
  return {ended ? Verdict::kRecorded : Verdict::kFail,
          ended ? "" : "a kernel beside an endless one does not end",
          {{"worst_alone_us", alone / 1000}, {"worst_beside_endless_us", beside / 1000}}};
}

}  // namespace gpucheck
