// SPDX-License-Identifier: Apache-2.0
// How vgpud gets at the channels of an executor (docs/adr/0010-control-files-are-handed-over.md): the executor hands
// its control files over while it is still all ours, before it has read anything of a guest, and from then on writes on
// a board what its driver makes and frees.
#pragma once

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "gpu/channels/channel_board.h"

namespace vgpud::rm {

inline constexpr size_t kMostControlFiles = 4;
// The one message of an executor, with its files; none: its driver was not seen making channels.
struct HandOver {
  static constexpr uint32_t kMagic = 0x4f48434d;
  uint32_t magic = kMagic;
  uint32_t version = 1;  // of this and of the board
};

// In the executor, once, when its driver has made a context and before the jail: maps `board`, sends the files through
// `socket`, and has the board follow what the driver does. An error: vgpud hears nothing, and the channels are not
// used for turns.
[[nodiscard]] Result<void> TellChannels(UniqueFd board, UniqueFd socket);

}  // namespace vgpud::rm
