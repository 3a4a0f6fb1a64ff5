// SPDX-License-Identifier: Apache-2.0
#include "vgpud/gpu/channel_files.h"

#include <utility>

#include "base/foreign_fd.h"
#include "base/message.h"
#include "gpu/channels/channel_teller.h"
#include "gpu/channels/driver_traits.h"
#include "gpu/channels/rm_file.h"

namespace vgpud::daemon {
namespace {

using State = rm::ChannelTurn::State;

Result<void> Switch(const ChannelFiles& channels, State to) {
  ChannelSource source = TRY(channels.Source({}, true));
  std::vector<std::unique_ptr<rm::RmFile>> files;
  for (UniqueFd& fd : source.files) files.push_back(std::make_unique<rm::OwnRmFile>(std::move(fd)));
  const auto* const board = source.board.At<const rm::ChannelBoard>(0);
  rm::ChannelTurn turn(
      std::move(files), rm::DriverMajor(), [board] { return rm::ReadBoard(*board); }, /*resumed=*/true);
  const State state = to == State::kOff ? turn.Off() : turn.On();
  if (state == to) return {};
  return Fail(std::errc::not_supported, turn.words());
}

}  // namespace

Result<ChannelFiles> ChannelFiles::Copy() const {
  ChannelFiles copy;
  copy.board = TRY(Dup(board.get()));
  for (const UniqueFd& file : files) copy.files.push_back(TRY(Dup(file.get())));
  return copy;
}

Result<ChannelSource> ChannelFiles::Source(std::string name, bool resumed) const {
  ChannelSource source;
  source.board = TRY(Mapping::Shared(board.get(), 0, rm::kChannelBoardBytes, false));
  source.files = std::move(TRY(Copy()).files);
  source.name = std::move(name);
  source.resumed = resumed;
  return source;
}

Result<void> ChannelFiles::TakeOff() const { return Switch(*this, State::kOff); }
Result<void> ChannelFiles::LetOn() const { return Switch(*this, State::kOn); }

Result<ChannelOffer> MakeChannelOffer(const std::string& vf) {
  SocketPair pair = TRY(MakeSeqpacketPair());
  ChannelOffer offer;
  offer.board = TRY(MakeSealedMemfd("vgpu-channels-" + vf, rm::kChannelBoardBytes));
  offer.ours = std::move(pair.a);
  offer.theirs = std::move(pair.b);
  return offer;
}

Result<ChannelFiles> TakeHandOver(UniqueFd ours, UniqueFd board) {
  auto message = ReceiveMessage(ours.get());
  CloseElsewhere(std::move(ours));
  if (!message) return tl::unexpected(std::move(message.error()));
  const auto said = TRY(message->As<rm::HandOver>());
  const rm::HandOver known;
  if (said.magic != known.magic || said.version != known.version || message->fds.size() > rm::kMostControlFiles)
    return Fail(std::errc::bad_message, "vgpud and vgpud-exec are not of one build");
  if (message->fds.empty()) return Fail(std::errc::not_supported, "its driver was not seen making any");
  ChannelFiles channels;
  channels.board = std::move(board);
  for (ForeignFd& fd : message->fds) channels.files.push_back(fd.Trust());
  return channels;
}

}  // namespace vgpud::daemon
