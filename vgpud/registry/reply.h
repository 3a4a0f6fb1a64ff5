// SPDX-License-Identifier: Apache-2.0
// How requests that take a while are answered.
#pragma once

#include <functional>

#include "vgpud/model/api_error.h"

namespace vgpud::daemon {

// Called once, on the main thread, perhaps before the call returns that it was given to.
template <class T>
using Reply = std::function<void(ApiResult<T>)>;

}  // namespace vgpud::daemon
