// SPDX-License-Identifier: Apache-2.0
// Other memory in place of pages that the program uses, and back, while its other threads may use them: they wait for
// the moment, and no write of theirs is lost (userfaultfd(2)). A system call of another thread that uses them in that
// moment may fail with EFAULT where only user space may be made to wait. Whole pages; any thread, but one call at a
// time. Nothing here writes to memory of the program's own, its heap included, while others wait, and no signal handler
// runs in the calling thread.
#pragma once

#include <cstdint>
#include <optional>

#include "guest-driver-shim/libcuda/channel/mappings.h"

namespace vgpud::cuda {

// May this process make its threads wait so?
bool CanReplacePages();
// Is all of it the program's alone: private, anonymous, to be read and written, and neither its first thread's stack
// nor the caller's?
bool IsOwnMemory(uint64_t at, uint64_t bytes);
// Returns what ReadTreatment returns for memory of the program's own; its cost does not grow with the number of
// mappings. Other threads that touch the looked-at page of a mapping wait meanwhile. The caller makes sure that nobody
// forks.
std::optional<Treatment> TreatmentOf(uint64_t at, uint64_t bytes);
// How much of [at, at + bytes) shows the same as `other`, page by page: a shared mapping of the same file.
uint64_t BytesShown(uint64_t at, uint64_t bytes, const void* other);
// `other`, memory of that size, gets the bytes of `at`; then put(context) has to replace `at`, and says whether it did.
// False: nothing has changed.
bool ReplacePages(uint64_t at, uint64_t bytes, void* other, bool (*put)(void* context), void* context);
// Private memory with the bytes of `other` in place of `at`, where something else that shows the same bytes may lie.
// False: nothing has changed; there may be no thread to be had for it.
bool RestorePages(uint64_t at, uint64_t bytes, const void* other);

}  // namespace vgpud::cuda
