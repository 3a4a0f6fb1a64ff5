// SPDX-License-Identifier: Apache-2.0
// The CUDA version that programs are told.
#pragma once

namespace vgpud::cuda {

// Ours, the one that this library has the calls of.
inline constexpr int kDriverVersion = 13000;

// Ours, or that of the driver behind a virtual function of this process if one is older: a runtime that needs a newer
// one says so, instead of sending machine code that the driver does not know. Asks the hosts, until they have answered,
// and needs no cuInit. Any thread.
int DriverVersion();

}  // namespace vgpud::cuda
