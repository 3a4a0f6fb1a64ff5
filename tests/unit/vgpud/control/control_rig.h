// SPDX-License-Identifier: Apache-2.0
// Tests of the control API over its socket.
#pragma once

#include <gtest/gtest.h>

#include "tests/unit/vgpud/control/control_bed.h"

namespace vgpud::daemon {

class ControlTest : public testing::Test, protected ControlBed {
 protected:
  using ControlBed::ControlBed;
};

}  // namespace vgpud::daemon
