// SPDX-License-Identifier: Apache-2.0
// What a channel uses of its process. The server fills it in once, and it outlives the channel.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/host_memory.h"
#include "gpu/gpu.h"

namespace vgpud::exec {

class CardMemory;
class HostWork;

struct ChannelCallbacks {
  std::function<void()> interrupt;                 // raises the guest's interrupt
  std::function<void()> progress;                  // wakes the I/O thread; any thread
  std::function<std::unique_ptr<Gpu>()> make_gpu;  // a fresh, empty context
  std::function<uint64_t()> now_ns;                // CLOCK_MONOTONIC
  HostMemory* memory = nullptr;                    // nullptr: without a limit
  HostWork* work = nullptr;
  CardMemory* card = nullptr;             // nullptr: memory stays on the card
  std::function<void()> await_room = {};  // with `card`: without the lock, until there may be room on it
  bool asks_before_loads = false;         // somebody answers ModuleLoader::TakeRequest
  uint64_t linger_ns = 0;                 // how long a turn without work looks for more by itself
  uint64_t linger_woken_ns = 0;           // the same, for a program that slept and was just woken up
  uint64_t linger_most_ns = 0;            // the same, of a program that has last come back within this time
};

}  // namespace vgpud::exec
