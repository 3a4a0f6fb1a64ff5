// SPDX-License-Identifier: Apache-2.0
// What most tests of the soft GPU read. As with base/precompiled/, no file may rely on it.
#include <gmock/gmock.h>

#include "base/precompiled/test.h"
#include "tests/unit/soft/rig/soft_fixture.h"
