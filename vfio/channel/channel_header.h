// SPDX-License-Identifier: Apache-2.0
// What this side says in the header of a channel, whose memory the guest or a client of the host shares with us.
#pragma once

#include <cstdint>

#include "vfio/memory/dma_table.h"

namespace vgpud::vfio {

// The error that ends the CUDA process, as the header in `area` says; 0: none, or its memory is gone.
uint32_t StickyError(const Area& area);
// Says that the channel is lost, and why, unless its executor has given a reason itself. May wait for as long as
// whoever shares the memory likes, where that is a client of the host (vfio/memory/file_work.h).
void MarkHeaderLost(const Area& area);

}  // namespace vgpud::vfio
