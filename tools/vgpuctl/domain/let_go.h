// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <tl/expected.hpp>

#include "tools/vgpuctl/commands.h"

namespace vgpud::tools {

// Returns when the guest of the domain `args.name` has let the device go: when `is_there` says no. `device` as the user
// called it. Errors: an exit code, after saying why not; those of `is_there`, or --timeout is over.
tl::expected<void, int> WaitUntilGone(const CtlArgs& args, const std::string& device,
                                      const std::function<tl::expected<bool, int>()>& is_there);

}  // namespace vgpud::tools
