// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "tests/first_contact/kernel_side/engine/engine.h"

namespace vgpud::kernel_side {

std::unique_ptr<Engine> MakeCopyEngine(Surroundings& surroundings);

}  // namespace vgpud::kernel_side
