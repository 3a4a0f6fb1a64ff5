// SPDX-License-Identifier: Apache-2.0
// A VF's channel socket served by a FakeExecutor.
#pragma once

#include <functional>

#include "tests/unit/shim/fake_executor.h"

namespace vgpud {

// Serves one connection until the client goes. `opened` is called with its executor before the client hears of it.
void ServeConnection(int socket, const std::function<void(FakeExecutor&)>& opened = nullptr);

}  // namespace vgpud
