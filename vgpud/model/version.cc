// SPDX-License-Identifier: Apache-2.0
#include "vgpud/model/version.h"

namespace vgpud::daemon {

const char* Version() { return VGPUD_VERSION; }

}  // namespace vgpud::daemon
