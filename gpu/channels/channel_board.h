// SPDX-License-Identifier: Apache-2.0
// Where an executor writes what its driver has made, for as long as it lives: a page of shared memory that vgpud reads
// when it needs it. There is no queue that somebody could fill, and nobody waits for anybody. The writer may lie, and
// may write while it is read: what is read is copied once, checked once, and has a limit.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "gpu/channels/rm_objects.h"

namespace vgpud::rm {

// Zeroes are one without channels. Executors of another release have another version of the hand-over
// (channel_teller.h), so that nobody maps a layout that he does not know.
struct ChannelBoard {
  enum Kind : uint32_t { kGroup = 1, kChannel = 2 };
  struct Entry {
    std::atomic<uint32_t> client, subdevice, handle;
    std::atomic<uint32_t> kind_and_file;  // Kind, and << 8 the number of the file in the hand-over; kNoFile: none
  };
  static constexpr uint32_t kMostEntries = 1023;
  static constexpr uint32_t kNoFile = 0xff;

  std::atomic<uint32_t> sequence;  // odd while it is being written
  std::atomic<uint32_t> count;
  std::atomic<uint32_t> incomplete;  // 1: there is more than fits, or than the observer has room for
  uint32_t mbz;
  Entry entries[kMostEntries];
};
static_assert(sizeof(ChannelBoard) == 16384);
inline constexpr uint64_t kChannelBoardBytes = sizeof(ChannelBoard);

// Writes what there is now. `files`: the descriptors that were handed over, in that order. One writer at a time.
void WriteBoard(ChannelBoard& board, const std::vector<ClientChannels>& clients, bool incomplete,
                const std::vector<int>& files);

struct BoardReading {
  uint32_t sequence = 0;
  bool incomplete = false;
  uint32_t unreachable = 0;             // channels of files that were not handed over
  std::vector<ClientChannels> clients;  // `fd` is the number of the file in the hand-over
};
// nullopt: it changed each time that it was looked at, or says what no board can say.
std::optional<BoardReading> ReadBoard(const ChannelBoard& board);

}  // namespace vgpud::rm
