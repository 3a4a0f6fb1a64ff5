// SPDX-License-Identifier: Apache-2.0
// A thread that nobody waits for: for calls into the kernel that take as long as somebody else likes.
#pragma once

#include <functional>

namespace vgpud {

// Starts a thread that runs `main` and ends; it takes no signals and has a small stack. What `main` holds has to
// outlive everything else or be its own. `name`: at most 15 bytes. False: there can be no more threads.
[[nodiscard]] bool StartDetachedThread(const char* name, std::function<void()> main);

}  // namespace vgpud
