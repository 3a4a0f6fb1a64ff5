// SPDX-License-Identifier: Apache-2.0
// What the driver in this process makes. A program that calls OwnObjects() gets an ioctl of its own in front of the C
// library's, which a library that is loaded later calls, too.
#pragma once

#include "gpu/channels/rm_objects.h"

namespace vgpud::rm {

// Of the driver's ioctls of this process so far. Any thread, at any time.
ObservedObjects& OwnObjects();
// `changed` runs after each ioctl that was looked at, in the thread that made it. Said before the driver is loaded.
void OnObserved(void (*changed)());
// Has nvidia-uvm agreed, for this process, to let the GPU reach no memory that was not given to it? Asked for in front
// of the driver's own question (UvmInitialize); false before that, and in a build without rm_controls.
bool HmmIsDisabled();

}  // namespace vgpud::rm
