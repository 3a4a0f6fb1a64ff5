// SPDX-License-Identifier: Apache-2.0
// How vgpud gets at the channels of a VF's executors (docs/adr/0010-control-files-are-handed-over.md).
#include <fmt/core.h>
#include <signal.h>

#include <utility>

#include "base/exec_link.h"
#include "base/foreign_fd.h"
#include "base/log.h"
#include "base/message.h"
#include "gpu/channels/channel_teller.h"
#include "vgpud/left_channels.h"
#include "vgpud/vf.h"

namespace vgpud::daemon {

Result<Vf::ChannelOffer> Vf::OfferChannels(Child::Spec* process) const {
  ChannelOffer offer;
  if (!around_.gpu.channel_turns()) return offer;
  SocketPair pair = TRY(MakeSeqpacketPair());
  offer.board = TRY(MakeSealedMemfd("vgpu-channels-" + spec_.name, rm::kChannelBoardBytes));
  offer.ours = std::move(pair.a);
  offer.theirs = std::move(pair.b);
  process->arguments.push_back("--tell-channels");
  process->files.push_back({offer.board.get(), exec_link::kChannelBoardFd});
  process->files.push_back({offer.theirs.get(), exec_link::kChannelSocketFd});
  return offer;
}

void Vf::AwaitChannels(uint64_t generation, Executor& executor, ChannelOffer offer) {
  if (!offer.ours) return;
  executor.hand_over = std::move(offer.ours);
  executor.board = std::move(offer.board);
  executor.tells = around_.loop.OnReadable(executor.hand_over.get(), [this, generation] { OnHandOver(generation); });
}

// Its one message: what it sends first it has sent before it read anything of a guest. The rest is never read.
void Vf::OnHandOver(uint64_t generation) {
  const auto it = executors_.find(generation);
  if (it == executors_.end()) return;
  Executor& executor = *it->second;
  auto taken = TakeHandOver(executor);
  around_.loop.Post([watch = std::shared_ptr<EventLoop::Watch>(std::move(executor.tells))] {});
  CloseElsewhere(std::move(executor.hand_over));
  if (!taken) {
    LOG_LIMITED(limiter_, kWarning, "vf={} executor pid={}: its channels are not switched off at the end of turns: {}",
                spec_.name, executor.child.pid(), taken.error().context);
    return;
  }
  if (around_.keeper != nullptr) {
    const auto kept = taken->Copy();
    if (kept) KeepChannels(*around_.keeper, spec_.name, generation, *kept);
  }
  const auto added = AddChannels(generation, executor, std::move(*taken), false);
  if (!added)
    LOG_LIMITED(limiter_, kWarning, "vf={} executor pid={}: {}", spec_.name, executor.child.pid(),
                added.error().context);
}

Result<KeptChannels> Vf::TakeHandOver(Executor& executor) const {
  Message message = TRY(ReceiveMessage(executor.hand_over.get()));
  const auto said = TRY(message.As<rm::HandOver>());
  const rm::HandOver known;
  if (said.magic != known.magic || said.version != known.version || message.fds.size() > rm::kMostControlFiles)
    return vgpud::Fail(std::errc::bad_message, "vgpud and vgpud-exec are not of one build");
  if (message.fds.empty()) return vgpud::Fail(std::errc::not_supported, "its driver was not seen making any");
  KeptChannels channels;
  channels.board = std::move(executor.board);
  for (ForeignFd& fd : message.fds) channels.files.push_back(fd.Trust());
  return channels;
}

Result<void> Vf::AddChannels(uint64_t generation, const Executor& executor, KeptChannels channels, bool resumed) {
  ChannelSource source;
  source.board = TRY(Mapping::Shared(channels.board.get(), 0, rm::kChannelBoardBytes, false));
  source.files = std::move(channels.files);
  source.name = fmt::format("vf={} executor pid={}", spec_.name, executor.child.pid());
  source.resumed = resumed;
  around_.gpu.AddChannels(id_, executor.channel, generation, std::move(source));
  return {};
}

// An earlier vgpud may have left it switched off.
void Vf::ResumeChannels(uint64_t generation, const Executor& executor, KeptChannels channels) {
  if (around_.gpu.channel_turns()) {
    if (AddChannels(generation, executor, std::move(channels), true)) return;
  } else if (const auto on = LetOn(channels); on) {
    return;
  }
  LOG(kError, "vf={} executor pid={}: it may have been switched off by the vgpud before, and can't be let on: killed",
      spec_.name, executor.child.pid());
  executor.child.Kill(SIGKILL);
}

}  // namespace vgpud::daemon
