// SPDX-License-Identifier: Apache-2.0
// Experiments with the driver's own controls for channels (docs/gpu-check.md): at most some thousand calls a second.
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/clock.h"
#include "tools/gpucheck/driver.h"
#include "tools/gpucheck/probe.h"

namespace gpucheck {
namespace {

namespace rm = vgpud::rm;
using Verdict = Seen::Verdict;

constexpr int kRounds = 30;
constexpr double kLookS = 0.02;

rm::Answer Ask(const rm::RmFile& file, uint32_t client, uint32_t object, rm::Command command, void* params,
               uint32_t bytes) {
  return file.Control(client, object, command, params, bytes);
}

double Us(uint64_t ns) { return static_cast<double>(ns) / 1000; }

double Part(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<size_t>(part * static_cast<double>(values.size())))];
}

// Another one for a device that is made up.
const char* ControlDevice() {
  const char* const told = std::getenv("GPU_CHECK_CONTROL_DEVICE");
  return told != nullptr ? told : "/dev/nvidiactl";
}

// Takes A off and lets it on again, kRounds times: is it still while it is off, and does it go on?
Seen StopTest(Pair& pair, const std::function<rm::Outcome()>& off, const std::function<rm::Outcome()>& on) {
  std::string why;
  if (!StartBoth(pair, why)) return NotMeasured(why);
  std::vector<double> call_us, last_us;
  int frozen = 0, resumed = 0;
  rm::Outcome outcome;
  for (int n = 0; n < kRounds; ++n) {
    const uint64_t begun = vgpud::MonotonicNs();
    outcome = off();
    if (!outcome.ok()) break;
    call_us.push_back(Us(outcome.answer.took_ns));
    uint64_t beats = pair.a.board().beats(), last = begun;
    for (uint64_t now = begun; now < begun + 5'000'000; now = vgpud::MonotonicNs())
      if (const uint64_t more = pair.a.board().beats(); more != beats) {
        beats = more;
        last = now;
      }
    last_us.push_back(Us(last - begun));
    bool looked = pair.a.AwaitLook();
    beats = pair.a.board().beats();
    usleep(static_cast<useconds_t>(kLookS * 1e6));
    looked = pair.a.AwaitLook() && looked;
    frozen += looked && pair.a.board().beats() == beats;
    if (outcome = on(); !outcome.ok()) break;
    for (const double end = Seconds() + 1; pair.a.board().beats() == beats && Seconds() < end;) usleep(200);
    resumed += pair.a.board().beats() != beats;
  }
  StopBoth(pair);
  Seen seen{
      outcome.ok() && frozen == kRounds && resumed == kRounds ? Verdict::kPass : Verdict::kFail, outcome.Words(), {}};
  seen.figures = {{"rounds", static_cast<double>(call_us.size())},
                  {"frozen", frozen},
                  {"resumed", resumed},
                  {"call_p50_us", Part(call_us, 0.5)},
                  {"call_max_us", Part(call_us, 1)},
                  {"last_beat_p50_us", Part(last_us, 0.5)},
                  {"last_beat_max_us", Part(last_us, 1)}};
  return seen;
}

// Strict turns of A and B by the best way that works.
Seen RoundRobinAt(Pair& pair, double seconds, unsigned slice_us) {
  std::string why;
  if (!StartBoth(pair, why)) return NotMeasured(why);
  rm::ChannelSwitch a(*pair.file_a, pair.driver_major), b(*pair.file_b, pair.driver_major);
  const rm::ClientChannels of_a = pair.a.Channels(), of_b = pair.b.Channels();
  rm::Outcome outcome = b.Off(of_b);
  const double alone = pair.a.BeatsPerSecond(seconds / 4);
  const uint64_t before_a = pair.a.board().beats(), before_b = pair.b.board().beats();
  std::vector<double> switch_us;
  bool turn_of_a = true;
  const double begun = Seconds();
  while (outcome.ok() && Seconds() - begun < seconds) {
    usleep(slice_us);
    const uint64_t asked = vgpud::MonotonicNs();
    outcome = turn_of_a ? a.Off(of_a) : b.Off(of_b);
    if (outcome.ok()) outcome = turn_of_a ? b.On(of_b) : a.On(of_a);
    switch_us.push_back(Us(vgpud::MonotonicNs() - asked));
    turn_of_a = !turn_of_a;
  }
  const double took = Seconds() - begun;
  const auto done_a = static_cast<double>(pair.a.board().beats() - before_a);
  const auto done_b = static_cast<double>(pair.b.board().beats() - before_b);
  if (a.is_off()) (void)a.On(of_a);
  if (b.is_off()) (void)b.On(of_b);
  StopBoth(pair);
  const double whole = done_a + done_b, off_by = whole > 0 ? std::abs(done_a - done_b) / whole : 1;
  Seen seen{outcome.ok() && off_by < 0.02 ? Verdict::kPass : Verdict::kFail,
            fmt::format("by {}; {}", rm::Name(a.way()), outcome.Words()),
            {}};
  const double sum = alone > 0 ? whole / took / alone : 0;
  seen.figures = {{"slice_us", slice_us},
                  {"turns", static_cast<double>(switch_us.size())},
                  {"uneven", off_by},
                  {"sum_by_alone", sum},
                  {"switch_p50_us", Part(switch_us, 0.5)},
                  {"switch_p99_us", Part(switch_us, 0.99)},
                  {"switch_max_us", Part(switch_us, 1)}};
  return seen;
}

}  // namespace

Seen NotMeasured(std::string why) { return {Verdict::kNotMeasured, std::move(why), {}}; }

bool StartBoth(Pair& pair, std::string& why) {
  for (Worker* const worker : {&pair.a, &pair.b}) {
    worker->Tell(Task::kRun);
    for (const double end = Seconds() + 20; worker->board().beats() == 0;) {
      if (Seconds() > end) {
        why = "its kernel does not run";
        return false;
      }
      usleep(1000);
    }
  }
  return true;
}

void StopBoth(Pair& pair) {
  for (Worker* const worker : {&pair.a, &pair.b}) {
    worker->board().task = Task::kNone;
    (void)worker->Await(State::kDone, 20);
  }
}

Seen Handles(Pair& pair, const Settings&) {
  const rm::ClientChannels channels = pair.a.Channels();
  uint32_t id = 0;
  uint64_t timeslice = 0;
  rm::Answer answer =
      Ask(*pair.file_a, channels.client, channels.compute_group, rm::Command::kGroupInfo, &id, sizeof id);
  const double took = Us(answer.took_ns);
  if (answer.ok())
    answer = Ask(*pair.file_a, channels.client, channels.compute_group, rm::Command::kGetTimeslice, &timeslice,
                 sizeof timeslice);
  return {answer.ok() ? Verdict::kPass : Verdict::kFail,
          rm::Words(answer),
          {{"group_id", id},
           {"timeslice_us", static_cast<double>(timeslice)},
           {"call_us", took},
           {"channels", static_cast<double>(channels.channels.size())},
           {"channels_in_group", static_cast<double>(channels.of_compute_group.size())},
           {"groups", static_cast<double>(channels.groups.size())}}};
}

Seen Negatives(Pair& pair, const Settings&) {
  const rm::ClientChannels channels = pair.a.Channels();
  const rm::OwnRmFile own{vgpud::UniqueFd{open(ControlDevice(), O_RDWR | O_CLOEXEC)}};
  uint32_t id = 0;
  uint8_t wrong[8] = {1};
  const rm::Answer stranger =
      Ask(own, channels.client, channels.compute_group, rm::Command::kGroupInfo, &id, sizeof id);
  const uint32_t bytes = rm::TraitsOf(pair.driver_major).schedule_bytes;
  const rm::Answer size =
      Ask(*pair.file_a, channels.client, channels.compute_group, rm::Command::kSchedule, wrong, 5 - bytes);
  const bool right = stranger.status == 0x23 && size.status == 0x1f;
  return {right ? Verdict::kPass : Verdict::kFail,
          fmt::format("by another file: {}; with parameters of {} bytes: {}", rm::Words(stranger), 5 - bytes,
                      rm::Words(size)),
          {{"stranger_status", stranger.status}, {"size_status", size.status}}};
}

Seen PreemptAlone(Pair& pair, const Settings&) {
  std::string why;
  if (!StartBoth(pair, why)) return NotMeasured(why);
  const rm::ClientChannels channels = pair.a.Channels();
  rm::ChannelSwitch a(*pair.file_a, pair.driver_major);
  const auto statistics = [&] {
    rm::SwitchStatistics s{channels.compute_group, 0, 0, 0, 0, 0, 0, 0};
    (void)Ask(*pair.file_a, channels.client, channels.subdevice, rm::Command::kSwitchStatistics, &s, sizeof s);
    return s;
  };
  const rm::SwitchStatistics before = statistics();
  rm::Outcome outcome;
  double worst = 0;
  for (int n = 0; n < 5; ++n) {
    outcome = a.PreemptGroup(channels, channels.compute_group, std::chrono::milliseconds(100));
    worst = std::max(worst, Us(outcome.answer.took_ns));
    if (!outcome.ok()) break;
  }
  const rm::SwitchStatistics after = statistics();
  StopBoth(pair);
  const bool in_the_middle = after.by_instruction > before.by_instruction && after.by_wait == before.by_wait;
  return {outcome.ok() && in_the_middle ? Verdict::kPass
          : outcome.ok()                ? Verdict::kRecorded
                                        : Verdict::kFail,
          outcome.Words(),
          {{"call_max_us", worst},
           {"saves", after.saves - before.saves},
           {"by_instruction", after.by_instruction - before.by_instruction},
           {"by_block", after.by_block - before.by_block},
           {"by_wait", after.by_wait - before.by_wait}}};
}

Seen DisableGroup(Pair& pair, const Settings&) {
  const rm::ClientChannels channels = pair.a.Channels();
  const rm::ChannelSwitch a(*pair.file_a, pair.driver_major);
  return StopTest(
      pair, [&] { return a.Disable(channels, channels.of_compute_group, true); },
      [&] { return a.Disable(channels, channels.of_compute_group, false); });
}

Seen DisableAll(Pair& pair, const Settings&) {
  const rm::ClientChannels channels = pair.a.Channels();
  const rm::ChannelSwitch a(*pair.file_a, pair.driver_major), b(*pair.file_b, pair.driver_major);
  Seen seen = StopTest(
      pair, [&] { return a.Disable(channels, channels.channels, true); },
      [&] { return a.Disable(channels, channels.channels, false); });
  // Named by a client that they are none of: recorded, no matter how it ends.
  rm::ClientChannels crossed = pair.b.Channels();
  rm::DisableChannels params{};
  params.disable = 1;
  params.count = 1;
  params.clients[0] = channels.client;
  params.channels[0] = channels.channels.empty() ? 0 : channels.channels[0];
  const rm::Answer answer =
      Ask(*pair.file_b, crossed.client, crossed.subdevice, rm::Command::kDisableChannels, &params, sizeof params);
  params.disable = 0;
  if (answer.ok())
    (void)Ask(*pair.file_b, crossed.client, crossed.subdevice, rm::Command::kDisableChannels, &params, sizeof params);
  seen.said += fmt::format("; by another process's client: {}", rm::Words(answer));
  seen.figures.emplace_back("cross_client_status", answer.status);
  return seen;
}

Seen Unschedule(Pair& pair, const Settings&) {
  const rm::ClientChannels channels = pair.a.Channels();
  rm::ChannelSwitch a(*pair.file_a, pair.driver_major);
  Seen seen = StopTest(
      pair,
      [&] {
        const rm::Outcome off = a.Schedule(channels, channels.compute_group, false);
        if (!off.ok()) return off;
        rm::Outcome left = a.PreemptGroup(channels, channels.compute_group, std::chrono::milliseconds(100));
        left.answer.took_ns += off.answer.took_ns;
        return left;
      },
      [&] { return a.Schedule(channels, channels.compute_group, true); });
  const Seen only = StopTest(
      pair, [&] { return a.Schedule(channels, channels.compute_group, false); },
      [&] { return a.Schedule(channels, channels.compute_group, true); });
  seen.said += fmt::format("; without preempting: {}",
                           only.verdict == Verdict::kPass ? "stops, too" : "does not stop it: " + only.said);
  for (const auto& [name, value] : only.figures) seen.figures.emplace_back("alone_" + name, value);
  return seen;
}

Seen Timeslices(Pair& pair, const Settings& settings) {
  std::string why;
  if (!StartBoth(pair, why)) return NotMeasured(why);
  const rm::ClientChannels channels = pair.a.Channels();
  uint64_t before = 0;
  Seen seen{Verdict::kRecorded, {}, {}};
  rm::Answer answer =
      Ask(*pair.file_a, channels.client, channels.compute_group, rm::Command::kGetTimeslice, &before, sizeof before);
  for (uint64_t us : {uint64_t{0}, uint64_t{1}, uint64_t{200}, uint64_t{1000}, uint64_t{16000}, uint64_t{1000000}}) {
    answer = Ask(*pair.file_a, channels.client, channels.compute_group, rm::Command::kSetTimeslice, &us, sizeof us);
    const uint64_t b_before = pair.b.board().beats();
    const double a = pair.a.BeatsPerSecond(settings.seconds / 4);
    const auto b = static_cast<double>(pair.b.board().beats() - b_before) / (settings.seconds / 4);
    seen.said += fmt::format("{}{} us: {}", seen.said.empty() ? "" : "; ", us, rm::Words(answer));
    seen.figures.emplace_back(fmt::format("a_by_b_at_{}_us", us), b > 0 ? a / b : 0);
  }
  (void)Ask(*pair.file_a, channels.client, channels.compute_group, rm::Command::kSetTimeslice, &before, sizeof before);
  StopBoth(pair);
  return seen;
}

Seen RoundRobin(Pair& pair, const Settings& settings) {
  return RoundRobinAt(pair, settings.seconds, settings.slices_us.front());
}

Seen RoundRobinOther(Pair& pair, const Settings& settings) {
  Seen all{Verdict::kRecorded, {}, {}};
  for (size_t n = 1; n < settings.slices_us.size(); ++n) {
    const Seen one = RoundRobinAt(pair, settings.seconds, settings.slices_us[n]);
    all.said += (n > 1 ? "; " : "") + one.said;
    for (const auto& [name, value] : one.figures)
      all.figures.emplace_back(fmt::format("{}_at_{}", name, settings.slices_us[n]), value);
    if (one.verdict == Verdict::kFail) all.verdict = Verdict::kFail;
  }
  return all;
}

Seen Digests(Pair& pair, const Settings&) {
  constexpr uint32_t kSteps = 20'000;
  pair.a.Tell(Task::kRun, kSteps);
  if (!pair.a.Await(State::kDone, 30)) return NotMeasured("the kernel did not end");
  const uint64_t expected = pair.a.board().result;
  const rm::ClientChannels channels = pair.a.Channels();
  rm::ChannelSwitch a(*pair.file_a, pair.driver_major);
  rm::Outcome outcome;
  int stops = 0;
  pair.a.Tell(Task::kRun, kSteps);
  for (const double end = Seconds() + 60; outcome.ok() && pair.a.board().state != State::kDone && Seconds() < end;
       ++stops) {
    if (outcome = a.Off(channels); !outcome.ok()) break;
    usleep(500);
    outcome = a.On(channels);
    usleep(500);
  }
  const bool ended = pair.a.Await(State::kDone, 30);
  return {ended && pair.a.board().result == expected && stops > 0 ? Verdict::kPass : Verdict::kFail,
          outcome.Words(),
          {{"stops", stops}}};
}

Seen CopyWhileOff(Pair& pair, const Settings&) {
  const rm::ClientChannels channels = pair.a.Channels();
  rm::ChannelSwitch a(*pair.file_a, pair.driver_major);
  pair.a.Tell(Task::kCopy);
  if (!pair.a.Await(State::kRuns, 10)) return NotMeasured("the copy did not begin");
  std::vector<double> off_us;
  rm::Outcome outcome;
  for (const double end = Seconds() + 30; pair.a.board().state == State::kRuns && outcome.ok() && Seconds() < end;) {
    if (outcome = a.Off(channels); !outcome.ok()) break;
    off_us.push_back(Us(outcome.answer.took_ns));
    usleep(2000);
    outcome = a.On(channels);
    usleep(2000);
  }
  const bool ended = pair.a.Await(State::kDone, 30);
  return {ended && outcome.ok() ? Verdict::kPass : Verdict::kFail,
          outcome.Words(),
          {{"stops", static_cast<double>(off_us.size())},
           {"off_p50_us", Part(off_us, 0.5)},
           {"off_max_us", Part(off_us, 1)}}};
}

}  // namespace gpucheck
