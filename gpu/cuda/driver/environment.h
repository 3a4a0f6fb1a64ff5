// SPDX-License-Identifier: Apache-2.0
// What NVIDIA's driver finds in its process when it is loaded: its environment, its compilers, and nobody else's
// daemons.
#pragma once

#include <string>

namespace vgpud::driver {

// Before the driver is loaded, and before other threads. `address`: of the card that it is to see, as in Card::Choice;
// one whose UUID the kernel module does not tell is left to the driver.
void SetDriverEnvironment(const std::string& address);

// Loads what the driver loads itself when a program first needs it, from the place where the loader finds it or from
// the folder of `library`: in the jail there are no files. The log has a warning for each that there is not.
void LoadCompilers(const std::string& library);

}  // namespace vgpud::driver
