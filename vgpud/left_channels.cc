// SPDX-License-Identifier: Apache-2.0
#include "vgpud/left_channels.h"

#include "base/mapping.h"
#include "gpu/channels/channel_turn.h"
#include "gpu/channels/driver_traits.h"
#include "gpu/channels/rm_file.h"

namespace vgpud::daemon {
namespace {

using State = rm::ChannelTurn::State;

Result<void> Switch(const KeptChannels& channels, State to) {
  KeptChannels copy = TRY(channels.Copy());
  const Mapping board = TRY(Mapping::Shared(copy.board.get(), 0, rm::kChannelBoardBytes, false));
  std::vector<std::unique_ptr<rm::RmFile>> files;
  for (UniqueFd& fd : copy.files) files.push_back(std::make_unique<rm::OwnRmFile>(std::move(fd)));
  rm::ChannelTurn turn(
      std::move(files), rm::DriverMajor(), [&board] { return rm::ReadBoard(*board.At<const rm::ChannelBoard>(0)); },
      /*resumed=*/true);
  const State state = to == State::kOff ? turn.Off() : turn.On();
  if (state == to) return {};
  return Fail(std::errc::not_supported, turn.words());
}

}  // namespace

Result<void> TakeOff(const KeptChannels& channels) { return Switch(channels, State::kOff); }
Result<void> LetOn(const KeptChannels& channels) { return Switch(channels, State::kOn); }

}  // namespace vgpud::daemon
