// SPDX-License-Identifier: Apache-2.0
// What a made-up driver asks the model of its control device beside the ioctls of a real one: it has no GPU that would
// know.
#pragma once

#include <cstdint>

namespace rm_model {

struct Told {
  uint32_t client, channel, runs, pad;
};
static_assert(sizeof(Told) == 16);
// _IOWR('F', N, Told), which a jail with a driver lets pass, and no number of the driver's: the channel is bound; would
// the GPU run its work now?
inline constexpr unsigned long kBindRequest = 3ul << 30 | 16 << 16 | 'F' << 8 | 0xf1;
inline constexpr unsigned long kRunsRequest = 3ul << 30 | 16 << 16 | 'F' << 8 | 0xf2;

}  // namespace rm_model
