// SPDX-License-Identifier: Apache-2.0
// Channels of executors that an earlier vgpud has left, before there is a scheduler that could have them switched.
#pragma once

#include "vgpud/kept_vf.h"

namespace vgpud::daemon {

// What the executor has on the GPU is off it, or on it again, whatever the vgpud before did. Errors: why not.
[[nodiscard]] Result<void> TakeOff(const KeptChannels& channels);
[[nodiscard]] Result<void> LetOn(const KeptChannels& channels);

}  // namespace vgpud::daemon
