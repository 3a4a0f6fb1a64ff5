// SPDX-License-Identifier: Apache-2.0
// The request that makes a VF.
#pragma once

#include "tools/vgpuctl/ask.h"

namespace vgpud::tools {

// From args.name and what was typed of knobs, memory and profile; an exit code after saying what is wrong.
tl::expected<CtlJson, int> CreateBody(const CtlArgs& args);

}  // namespace vgpud::tools
