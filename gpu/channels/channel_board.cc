// SPDX-License-Identifier: Apache-2.0
#include "gpu/channels/channel_board.h"

#include <algorithm>

namespace vgpud::rm {
namespace {

// A driver makes some tens of objects one after the other; whoever writes all the time is not waited for.
constexpr int kLooks = 16;
constexpr auto kRelaxed = std::memory_order_relaxed;

uint32_t NumberOf(const std::vector<int>& files, int fd) {
  const auto found = std::find(files.begin(), files.end(), fd);
  return found == files.end() ? ChannelBoard::kNoFile : static_cast<uint32_t>(found - files.begin());
}

struct Copied {
  uint32_t client, subdevice, handle, kind_and_file;
};

// False: somebody wrote meanwhile.
bool CopyOnce(const ChannelBoard& board, std::vector<Copied>* entries, BoardReading* reading) {
  reading->sequence = board.sequence.load(std::memory_order_acquire);
  if ((reading->sequence & 1) != 0) return false;
  const uint32_t count = std::min(board.count.load(kRelaxed), ChannelBoard::kMostEntries);
  reading->incomplete = board.incomplete.load(kRelaxed) != 0;
  entries->clear();
  for (uint32_t n = 0; n < count; ++n) {
    const ChannelBoard::Entry& entry = board.entries[n];
    entries->push_back({entry.client.load(kRelaxed), entry.subdevice.load(kRelaxed), entry.handle.load(kRelaxed),
                        entry.kind_and_file.load(kRelaxed)});
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  return board.sequence.load(kRelaxed) == reading->sequence;
}

bool Sort(const std::vector<Copied>& entries, BoardReading* reading) {
  for (const Copied& entry : entries) {
    const uint32_t kind = entry.kind_and_file & 0xff, file = entry.kind_and_file >> 8;
    if ((kind != ChannelBoard::kGroup && kind != ChannelBoard::kChannel) || file > ChannelBoard::kNoFile) return false;
    if (file == ChannelBoard::kNoFile) {
      ++reading->unreachable;
      continue;
    }
    auto client = std::find_if(reading->clients.begin(), reading->clients.end(), [&](const ClientChannels& known) {
      return known.client == entry.client && known.fd == static_cast<int>(file);
    });
    if (client == reading->clients.end()) {
      ClientChannels made;
      made.fd = static_cast<int>(file);
      made.client = entry.client;
      made.subdevice = entry.subdevice;
      client = reading->clients.insert(client, made);
    }
    (kind == ChannelBoard::kGroup ? client->groups : client->channels).push_back(entry.handle);
  }
  return true;
}

}  // namespace

void WriteBoard(ChannelBoard& board, const std::vector<ClientChannels>& clients, bool incomplete,
                const std::vector<int>& files) {
  const uint32_t before = board.sequence.load(kRelaxed);
  board.sequence.store(before | 1, kRelaxed);
  std::atomic_thread_fence(std::memory_order_release);
  uint32_t count = 0;
  const auto write = [&](const ClientChannels& client, const std::vector<uint32_t>& handles, ChannelBoard::Kind kind) {
    const uint32_t file = NumberOf(files, client.fd);
    for (const uint32_t handle : handles) {
      if (count == ChannelBoard::kMostEntries) {
        incomplete = true;
        return;
      }
      ChannelBoard::Entry& entry = board.entries[count++];
      entry.client.store(client.client, kRelaxed);
      entry.subdevice.store(client.subdevice, kRelaxed);
      entry.handle.store(handle, kRelaxed);
      entry.kind_and_file.store(kind | file << 8, kRelaxed);
    }
  };
  for (const ClientChannels& client : clients) {
    write(client, client.groups, ChannelBoard::kGroup);
    write(client, client.channels, ChannelBoard::kChannel);
  }
  board.count.store(count, kRelaxed);
  board.incomplete.store(incomplete ? 1 : 0, kRelaxed);
  board.sequence.store((before | 1) + 1, std::memory_order_release);
}

std::optional<BoardReading> ReadBoard(const ChannelBoard& board) {
  std::vector<Copied> entries;
  for (int look = 0; look < kLooks; ++look) {
    BoardReading reading;
    if (!CopyOnce(board, &entries, &reading)) continue;
    return Sort(entries, &reading) ? std::optional(std::move(reading)) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace vgpud::rm
