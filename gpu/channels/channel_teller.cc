// SPDX-License-Identifier: Apache-2.0
#include "gpu/channels/channel_teller.h"

#include <algorithm>
#include <memory>
#include <mutex>

#include "base/mapping.h"
#include "base/message.h"
#include "gpu/channels/observe.h"

namespace vgpud::rm {
namespace {

struct Teller {
  std::mutex mutex;
  Mapping board;
  std::vector<int> files;
  uint64_t told = ~uint64_t{0};
};
// For ever: threads of the driver call until the process has ended.
Teller* teller = nullptr;

// In the middle of an ioctl of the driver: before the driver goes on, the board says what it has.
void Tell() {
  const ObservedObjects& objects = OwnObjects();
  const std::lock_guard lock(teller->mutex);
  const uint64_t revision = objects.revision();
  if (revision == teller->told) return;
  teller->told = revision;
  WriteBoard(*teller->board.At<ChannelBoard>(0), objects.Channels(), objects.overflowed(), teller->files);
}

}  // namespace

Result<void> TellChannels(UniqueFd board, UniqueFd socket) {
  auto made = std::make_unique<Teller>();
  TRY(CheckSealedMemfd(board.get(), kChannelBoardBytes, "the board of channels"));
  made->board = TRY(Mapping::Shared(board.get(), 0, kChannelBoardBytes));
  for (const ClientChannels& client : OwnObjects().Channels())
    if (std::find(made->files.begin(), made->files.end(), client.fd) == made->files.end() &&
        made->files.size() < kMostControlFiles)
      made->files.push_back(client.fd);
  teller = made.release();
  Tell();
  OnObserved(&Tell);
  return SendStruct(socket.get(), HandOver{}, teller->files);
}

}  // namespace vgpud::rm
