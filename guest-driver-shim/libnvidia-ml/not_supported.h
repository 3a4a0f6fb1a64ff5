// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vgpud::nvml {

// Answer of every export that nobody has written: NVML_ERROR_NOT_SUPPORTED, before nvmlInit NVML_ERROR_UNINITIALIZED.
// Any thread.
int NotSupported();

}  // namespace vgpud::nvml
