// SPDX-License-Identifier: Apache-2.0
#include "base/slice_memory.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <new>

namespace vgpud {

Result<SliceMemory> MakeSliceMemory(const std::string& name) {
  SliceMemory memory;
  const UniqueFd grant = TRY(MakeSealedMemfd("vgpu-grant-" + name, kGrantPageBytes));
  memory.grant = TRY(Mapping::Shared(grant.get(), 0, kGrantPageBytes));
  new (memory.grant.data()) GrantPage;
  const std::string path = fmt::format("/proc/self/fd/{}", grant.get());
  memory.grant_fd = UniqueFd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!memory.grant_fd)
    return FailErrno(fmt::format("grant page: cannot open {} for reading (is /proc mounted?)", path));
  if (::fchmod(grant.get(), 0) != 0) return FailErrno("grant page: chmod 0");
  memory.slots_fd = TRY(MakeSealedMemfd("vgpu-slots-" + name, kSlotPageBytes));
  memory.slots = TRY(Mapping::Shared(memory.slots_fd.get(), 0, kSlotPageBytes, false));  // zeroes are a SlotPage
  // Refused where RLIMIT_MEMLOCK is used up: then they are in memory as long as the host has some.
  (void)::mlock(memory.grant.data(), kGrantPageBytes);
  (void)::mlock(memory.slots.data(), kSlotPageBytes);
  return memory;
}

Result<SliceView> MapSlices(int grant_fd, int slots_fd) {
  SliceView view;
  view.grant = TRY(Mapping::Shared(grant_fd, 0, kGrantPageBytes, false));
  view.slots = TRY(Mapping::Shared(slots_fd, 0, kSlotPageBytes));
  if (view.grant_page().magic != GrantPage::kMagic || view.grant_page().version != kSliceVersion)
    return Fail(std::errc::protocol_error,
                "the slice pages have another format: vgpud, vgpud-vf and vgpud-exec are not of one build");
  return view;
}

}  // namespace vgpud
