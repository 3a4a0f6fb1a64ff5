// SPDX-License-Identifier: Apache-2.0
// The memory of the slice pages (base/slice_page.h): how vgpud makes it, and how the others map it.
#pragma once

#include <atomic>
#include <string>

#include "base/fd.h"
#include "base/mapping.h"
#include "base/slice_page.h"

namespace vgpud {

// As its maker has it, which never waits for a page of it: they are locked in memory where the limits allow it. Whoever
// has `slots_fd` could take pages away again (a hole in the file): it goes only to processes that give it up before
// they face a guest. The descriptors are for handing on.
struct SliceMemory {
  UniqueFd grant_fd;  // read-only: whoever gets it cannot map the page for writing, nor open it again for that
  UniqueFd slots_fd;
  UniqueFd writable_grant_fd;  // for the vgpud after this one, and for nobody else
  Mapping grant;               // the only writable view there is, with a GrantPage in it
  Mapping slots;               // read-only; a SlotPage
  GrantPage& grant_page() const { return *grant.At<GrantPage>(0); }
  const SlotPage& slot_page() const { return *slots.At<const SlotPage>(0); }
};
// The grant page's file has no permission bits left, so that opening it again through /proc fails for everybody without
// CAP_DAC_OVERRIDE; its owner may give them back (fchmod), as a vgpud that starts anew has to. A seal
// (F_SEAL_FUTURE_WRITE) would keep that one out as well.
[[nodiscard]] Result<SliceMemory> MakeSliceMemory(const std::string& name);

// The pages that an earlier vgpud has made, from the descriptors that it had of them. Nobody may have the GPU: the run
// bit is taken back. EPROTO: of another build.
[[nodiscard]] Result<SliceMemory> AdoptSliceMemory(UniqueFd writable_grant_fd, UniqueFd slots_fd);

// As everybody else has it.
struct SliceView {
  Mapping grant;  // read-only
  Mapping slots;
  const GrantPage& grant_page() const { return *grant.At<const GrantPage>(0); }
  SlotPage& slot_page() const { return *slots.At<SlotPage>(0); }
};
// EPROTO: pages of another build.
[[nodiscard]] Result<SliceView> MapSlices(int grant_fd, int slots_fd);

// How much memory of the VF each of its executors holds: behind the slot page, in the same file. vgpud-vf writes it, as
// it has the ledger; executors can, too. For display, trusted for nothing; a vgpud-vf that does not know it leaves 0.
struct HeldMemory {
  std::atomic<uint64_t> vram_bytes[kMaxExecutors];
};
inline constexpr uint64_t kHeldMemoryAt = kSlotPageBytes - sizeof(HeldMemory);
static_assert(sizeof(SlotPage) <= kHeldMemoryAt && kHeldMemoryAt % alignof(HeldMemory) == 0);

// For how long an executor has been on the GPU; it writes its clock itself.
inline uint64_t TimeOnGpu(const ExecClock& clock, uint64_t now_ns) {
  const uint64_t since = clock.since_ns.load(std::memory_order_relaxed);
  const uint64_t running = since != 0 && since < now_ns ? now_ns - since : 0;
  return clock.on_gpu_ns.load(std::memory_order_relaxed) + running;
}

// `slots`: of the whole file.
inline HeldMemory& HeldMemoryIn(const Mapping& slots) { return *slots.At<HeldMemory>(kHeldMemoryAt); }

}  // namespace vgpud
