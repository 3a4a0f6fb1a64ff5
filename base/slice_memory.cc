// SPDX-License-Identifier: Apache-2.0
#include "base/slice_memory.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <new>
#include <utility>

namespace vgpud {

namespace {

// Of a file whose mode lets nobody but root open it again: the mode is given back for a moment.
Result<UniqueFd> OpenForReading(const UniqueFd& grant) {
  const std::string path = fmt::format("/proc/self/fd/{}", grant.get());
  if (::fchmod(grant.get(), 0400) != 0) return FailErrno("grant page: chmod");
  UniqueFd opened{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!opened) return FailErrno(fmt::format("grant page: cannot open {} for reading (is /proc mounted?)", path));
  if (::fchmod(grant.get(), 0) != 0) return FailErrno("grant page: chmod 0");
  return opened;
}

// Refused where RLIMIT_MEMLOCK is used up: then they are in memory as long as the host has some.
void Lock(const SliceMemory& memory) {
  (void)::mlock(memory.grant.data(), kGrantPageBytes);
  (void)::mlock(memory.slots.data(), kSlotPageBytes);
}

}  // namespace

Result<SliceMemory> MakeSliceMemory(const std::string& name) {
  SliceMemory memory;
  memory.writable_grant_fd = TRY(MakeSealedMemfd("vgpu-grant-" + name, kGrantPageBytes));
  memory.grant = TRY(Mapping::Shared(memory.writable_grant_fd.get(), 0, kGrantPageBytes));
  new (memory.grant.data()) GrantPage;
  memory.grant_fd = TRY(OpenForReading(memory.writable_grant_fd));
  memory.slots_fd = TRY(MakeSealedMemfd("vgpu-slots-" + name, kSlotPageBytes));
  memory.slots = TRY(Mapping::Shared(memory.slots_fd.get(), 0, kSlotPageBytes, false));  // zeroes are a SlotPage
  Lock(memory);
  return memory;
}

Result<SliceMemory> AdoptSliceMemory(UniqueFd writable_grant_fd, UniqueFd slots_fd) {
  TRY(CheckSealedMemfd(writable_grant_fd.get(), kGrantPageBytes, "the grant page"));
  TRY(CheckSealedMemfd(slots_fd.get(), kSlotPageBytes, "the slot page"));
  SliceMemory memory;
  memory.grant_fd = TRY(OpenForReading(writable_grant_fd));
  memory.grant = TRY(Mapping::Shared(writable_grant_fd.get(), 0, kGrantPageBytes));
  memory.slots = TRY(Mapping::Shared(slots_fd.get(), 0, kSlotPageBytes, false));
  memory.writable_grant_fd = std::move(writable_grant_fd);
  memory.slots_fd = std::move(slots_fd);
  if (memory.grant_page().magic != GrantPage::kMagic || memory.grant_page().version != kSliceVersion)
    return Fail(std::errc::protocol_error, "its slice pages have another format");
  memory.grant_page().grant.fetch_and(~GrantPage::kRun, std::memory_order_seq_cst);
  memory.grant_page().make_room.store(0, std::memory_order_seq_cst);
  Lock(memory);
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
