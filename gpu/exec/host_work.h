// SPDX-License-Identifier: Apache-2.0
// What an executor does for its guest without a turn: reading images, copying, keeping the ring. It says so in its slot
// (base/slice_page.h), for the operator to see; vgpud limits it by what the kernel says.
#pragma once

#include <ctime>

#include "base/slice_page.h"

namespace vgpud::exec {

class HostWork {
 public:
  explicit HostWork(ExecSlot& slot) : slot_(slot) {}

  // The processor time of the calling thread since its last call; a thread calls it of one object only. One system
  // call.
  void CountThread() {
    thread_local uint64_t counted = 0;
    timespec t{};
    if (::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0) return;
    const uint64_t now = static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
    slot_.host_work_ns.fetch_add(now - counted, std::memory_order_relaxed);
    counted = now;
  }
  void CountLoad(uint64_t image_bytes) {
    slot_.module_loads.fetch_add(1, std::memory_order_relaxed);
    slot_.module_bytes.fetch_add(image_bytes, std::memory_order_relaxed);
  }

 private:
  ExecSlot& slot_;
};

}  // namespace vgpud::exec
