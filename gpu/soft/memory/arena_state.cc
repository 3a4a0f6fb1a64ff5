// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "gpu/soft/code/inst.h"
#include "gpu/soft/memory/arena.h"
#include "gpu/soft/state/state_stream.h"

namespace vgpud::soft {
namespace {
constexpr uint64_t kPage = uint64_t{1} << kPageShift;
}  // namespace

void Arena::SaveBlocks(StateWriter& out) const {
  MutexLock lock(mutex_);
  out.Put<uint64_t>(this->bytes());
  out.Put<uint64_t>(used_.size());
  for (const auto& [offset, block] : used_) {
    out.Put<uint64_t>(offset);
    out.Put<uint64_t>(block.asked);
    out.Put<uint8_t>(block.pinned);
  }
}

// Whole pages: a kernel may have written beyond an allocation, and may read that again.
void Arena::SaveContents(StateWriter& out) const {
  for (size_t page = 0; page < page_users_.size(); ++page)
    if (page_users_[page] != 0) out.PutSparse({memory() + page * kPage, kPage});
}

void Arena::LoadBlocks(StateReader& in) {
  const auto bytes = in.Get<uint64_t>();
  const uint64_t all = this->bytes();
  if (in.ok() && bytes != all)
    return in.Fail({CuStatus::kNotSupported,
                    fmt::format("saved context: of a device with {} bytes of memory, this one has {}", bytes, all)});
  const auto count = in.GetUpTo<uint64_t>(all / kGranule, "number of allocations");
  free_.clear();
  uint64_t end = 0;
  for (uint64_t n = 0; n < count && in.ok(); ++n) {
    const auto offset = in.GetUpTo<uint64_t>(all - 1, "place of an allocation");
    const auto asked = in.GetUpTo<uint64_t>(all - offset, "size of an allocation");
    const bool pinned = in.GetBool("kind of an allocation");
    const uint64_t rounded = Rounded(asked);
    if (offset % kGranule != 0 || offset < end || asked == 0 || rounded > all - offset) in.Bad("allocation", offset);
    if (!in.ok()) break;
    if (offset != end) free_[end] = offset - end;
    {
      MutexLock lock(mutex_);
      used_[offset] = {rounded, asked, pinned};
    }
    MapPages(offset, rounded, 1);
    end = offset + rounded;
  }
  if (end != all) free_[end] = all - end;
}

void Arena::LoadContents(StateReader& in) {
  for (size_t page = 0; page < page_users_.size() && in.ok(); ++page)
    if (page_users_[page] != 0) in.GetSparse({memory() + page * kPage, kPage}, "page of memory");
}

std::map<uint64_t, uint64_t> Arena::Pinned() const {
  std::map<uint64_t, uint64_t> pinned;
  MutexLock lock(mutex_);
  for (const auto& [offset, block] : used_)
    if (block.pinned) pinned[vram_va() + offset] = block.asked;
  return pinned;
}

}  // namespace vgpud::soft
