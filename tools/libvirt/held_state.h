// SPDX-License-Identifier: Apache-2.0
// QEMU does not know that the state of a VF would be lost when it migrates or saves a guest. An image in a format that
// QEMU cannot migrate (VDI), opened by it and given to no device, makes it refuse: the guest sees nothing of it, and
// the error names the image's node.
#pragma once

#include <string>

namespace vgpud::tools {

// The whole file: a disk of 1 MiB without any data.
std::string HeldStateImage();

}  // namespace vgpud::tools
