// SPDX-License-Identifier: Apache-2.0
// The part of an executor in trying the rung "channels": a kernel that beats while somebody else takes it off the GPU.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "gpu/cuda/card.h"

namespace vgpud::driver {

// Starts a kernel without an end and says, each time by one line: what the driver has made of channels (ChannelsText),
// "beats N" when the kernel gets on again, "still N" when it has not for a while, N from 1 on. Ends when the process is
// killed; an error: there is nothing to be tried. After the first line the process needs nobody.
[[nodiscard]] Result<std::string> BeatForTrial(const Card& card, const std::function<void(const std::string&)>& say);

}  // namespace vgpud::driver
