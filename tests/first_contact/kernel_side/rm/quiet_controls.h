// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace vgpud::kernel_side {

// Is the control one that succeeds and answers what it was asked with: mostly zeroes, "no such feature"?
bool IsQuietControl(uint32_t command);

}  // namespace vgpud::kernel_side
