// SPDX-License-Identifier: Apache-2.0
#include "vgpud/device/channels_trial.h"

#include <fmt/core.h>

#include <algorithm>

#include "gpu/channels/channel_switch.h"
#include "gpu/channels/channels_text.h"

namespace vgpud::daemon {
namespace {

constexpr int kTurns = 3;

Error Refused(const rm::Outcome& outcome) {
  return {std::errc::not_supported, "the driver refused it: " + outcome.Words()};
}

// The turn's line has come: an error says what was expected of the kernel.
Result<void> Await(ExecQuestion& question, const char* what, int turn, Ns limit, const char* otherwise) {
  auto came = question.AwaitLine(fmt::format("{} {}", what, turn), limit);
  if (!came && came.error().code == std::errc::timed_out) return Fail(std::errc::timed_out, otherwise);
  return came;
}

}  // namespace

Result<std::string> TryChannels(const GpuChoice& choice, const ExecStart& start, Ns limit) {
  GpuChoice plain = choice;
  plain.cuda_rung = "gate";
  ExecQuestion question =
      TRY(ExecQuestion::Ask(plain, start, ExecArguments().Add(ExecOption::kTestRung, "channels").Take()));
  TRY(question.AwaitReady());
  const std::string line = TRY(question.LineThatBegins(rm::kChannelsWord, limit));
  const auto channels = rm::ReadChannels(line);
  if (!channels) return Fail(std::errc::protocol_error, "the executor's list of channels can't be read");
  const rm::OwnRmFile file(TRY(rm::TakeFileOf(question.pidfd(), channels->fd)));
  rm::ChannelSwitch turns(file, rm::DriverMajor());
  uint64_t slowest = 0;
  for (int turn = 1; turn <= kTurns; ++turn) {
    TRY(Await(question, "beats", turn, limit, "a kernel did not go on when it was let on the GPU again"));
    const TimePoint begun = Now();
    if (const rm::Outcome off = turns.Off(*channels); !off.ok()) return tl::unexpected(Refused(off));
    slowest = std::max(slowest, static_cast<uint64_t>((Now() - begun).count()));
    TRY(Await(question, "still", turn, limit, "a kernel went on while its channels were off"));
    if (const rm::Outcome on = turns.On(*channels); !on.ok()) return tl::unexpected(Refused(on));
  }
  TRY(Await(question, "beats", kTurns + 1, limit, "a kernel did not go on when it was let on the GPU again"));
  return fmt::format("a kernel without an end stood still {} times, by {} within {} us, and went on each time", kTurns,
                     rm::Name(turns.way()), slowest / 1000);
}

}  // namespace vgpud::daemon
