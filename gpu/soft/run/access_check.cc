// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/run/access_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/log.h"
#include "gpu/soft/run/grid.h"

namespace vgpud::soft {
namespace {
constexpr const char* kNames[] = {"load", "store", "atomic operation"};
const char* NameOf(CheckedAccess access) { return kNames[static_cast<size_t>(access)]; }
}  // namespace

void AccessCheck::Report(const Warp& w, const Inst* i, uint32_t lane, const std::string& what) {
  if (i == last_inst_ && &w == last_warp_) return;
  last_inst_ = i;
  last_warp_ = &w;
  if (++reports_ > kMostReports) return;
  // The check stands before the instruction that it belongs to, with the same line.
  std::string text = fmt::format("check: {}: {}", w.grid->Describe(w, i, lane), what);
  if (reports_ == kMostReports) text += "\ncheck: this was the last report, more are not told";
  LOG(kWarning, "{}", text);
  print_.Append(true, text + "\n");
}

// What is next to an address that lies in no allocation.
std::string AccessCheck::Where(uint64_t address) const {
  for (auto f = freed_.rbegin(); f != freed_.rend(); ++f)
    if (address >= f->address && address - f->address < f->bytes)
      return fmt::format("{} bytes into an allocation of {} bytes at {:#x} that was freed", address - f->address,
                         f->bytes, f->address);
  const auto before = arena_.LastUpTo(GpuVa{address});
  if (!before) return "before every allocation";
  const uint64_t end = Raw(before->address) + before->bytes;
  if (address < end)
    return fmt::format("across the end of the allocation of {} bytes at {:#x}", before->bytes, Raw(before->address));
  return fmt::format("{} bytes after the allocation of {} bytes at {:#x}", address - end, before->bytes,
                     Raw(before->address));
}

void AccessCheck::Global(const Warp& w, const Inst* i, uint32_t lane, uint64_t address, uint32_t bytes,
                         CheckedAccess access) {
  if (arena_.Contains(GpuVa{address}, bytes)) return;
  MutexLock lock(mutex_);
  Report(w, i, lane, fmt::format("{} of {} bytes at {:#x}: {}", NameOf(access), bytes, address, Where(address)));
}

AccessCheck::Written& AccessCheck::Of(const Warp& w) {
  Written& written = written_[w.shared];
  if (written.grid != w.grid || !std::equal(std::begin(written.block), std::end(written.block), w.cta->id)) {
    written.grid = w.grid;
    std::copy(std::begin(w.cta->id), std::end(w.cta->id), written.block);
    written.bytes.assign(w.shared_bytes, false);
  }
  return written;
}

void AccessCheck::Shared(const Warp& w, const Inst* i, uint32_t lane, uint32_t offset, uint32_t bytes,
                         CheckedAccess access) {
  MutexLock lock(mutex_);
  std::vector<bool>& written = Of(w).bytes;
  const auto begin = written.begin() + offset;
  if (access != CheckedAccess::kStore && std::find(begin, begin + bytes, false) != begin + bytes)
    Report(w, i, lane,
           fmt::format("shared {} of {} bytes at {:#x}, where the block has written nothing", NameOf(access), bytes,
                       offset));
  if (access != CheckedAccess::kLoad) std::fill(begin, begin + bytes, true);
}

void AccessCheck::SharedUnknown(const Warp& w) {
  MutexLock lock(mutex_);
  std::vector<bool>& written = Of(w).bytes;
  std::fill(written.begin(), written.end(), true);
}

void AccessCheck::Begin(const Grid& grid) {
  MutexLock lock(mutex_);
  std::erase_if(written_, [&](const auto& entry) { return entry.second.grid == &grid; });
  last_inst_ = nullptr;
}

void AccessCheck::Freed(GpuVa address, uint64_t bytes) {
  MutexLock lock(mutex_);
  freed_.push_back({Raw(address), bytes});
  if (freed_.size() > kMostFreed) freed_.pop_front();
}

uint64_t AccessCheck::reports() const {
  MutexLock lock(mutex_);
  return reports_;
}

const Inst* OpCheckAccess(Warp& w, const Inst* i) {
  AccessCheck* check = w.grid->device().check.get();
  if (check == nullptr) return i + 1;
  const auto space = static_cast<MemSpace>(i->aux & 15);
  const auto access = static_cast<CheckedAccess>(i->aux >> 4);
  const uint32_t bytes = i->offset[1];
  const std::byte* addresses = w.base[i->base[0]] + i->offset[0];
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(std::countr_zero(m));
    const uint64_t address = i->flags & kAddress32
                                 ? reinterpret_cast<const uint32_t*>(addresses)[l] + static_cast<uint32_t>(i->imm)
                                 : reinterpret_cast<const uint64_t*>(addresses)[l] + static_cast<uint64_t>(i->imm);
    const bool window = space == MemSpace::kGeneric && address - kSharedWindow < kWindowBytes;
    if (space == MemSpace::kShared || window) {
      const uint64_t offset = window ? address - kSharedWindow : address;
      if (offset < w.shared_bytes && bytes <= w.shared_bytes - offset)
        check->Shared(w, i, l, static_cast<uint32_t>(offset), bytes, access);
      continue;
    }
    if (space == MemSpace::kGeneric && address - kSharedWindow < kClusterWindowBytes) continue;  // of another block
    if (space == MemSpace::kGeneric && (address - kLocalWindow < kWindowBytes || address - kParamWindow < kWindowBytes))
      continue;
    check->Global(w, i, l, address, bytes, access);
  }
  return i + 1;
}

const Inst* OpSharedUnknown(Warp& w, const Inst* i) {
  if (AccessCheck* check = w.grid->device().check.get(); check != nullptr) check->SharedUnknown(w);
  return i + 1;
}

}  // namespace vgpud::soft
