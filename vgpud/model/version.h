// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vgpud::daemon {

// Of this vgpud, like "0.1.0".
const char* Version();

}  // namespace vgpud::daemon
