// SPDX-License-Identifier: Apache-2.0
// How a block lies in its slot: this header, then the words of the threads (word w of thread t is the (w * threads +
// t)th), then static and dynamic shared memory, each from a multiple of 16 on.
#pragma once

#include <cstdint>

namespace vgpud::rewrite {

inline constexpr uint32_t kSlotBlock = 0;  // u32[3]: coordinates
inline constexpr uint32_t kSlotHeaderBytes = 16;
// Word 0 of each thread: the number of the safepoint where it goes on, 0 = it has ended.

}  // namespace vgpud::rewrite
