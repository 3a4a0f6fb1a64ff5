// SPDX-License-Identifier: Apache-2.0
// The request that makes a VF.
#pragma once

#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/new_vf.h"

namespace vgpud::tools {

// An exit code after saying what is wrong.
tl::expected<CtlJson, int> CreateBody(const NewVf& vf);

}  // namespace vgpud::tools
