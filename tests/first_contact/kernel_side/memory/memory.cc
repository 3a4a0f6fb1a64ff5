// SPDX-License-Identifier: Apache-2.0
#include "tests/first_contact/kernel_side/memory/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/log.h"

namespace vgpud::kernel_side {
namespace {

constexpr uint64_t kPage = 4096, kAlignment = uint64_t{2} << 20;
constexpr off_t kStoreBytes = off_t{1} << 46;

uint64_t RoundUp(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

Result<Store> Store::Make() {
  Store store;
  store.file_.Reset(::memfd_create("kernel-side", MFD_CLOEXEC));
  if (!store.file_ || ::ftruncate(store.file_.get(), kStoreBytes) != 0) return FailErrno("the store");
  return store;
}

uint64_t Store::Take(uint64_t bytes) {
  const uint64_t at = next_;
  next_ += RoundUp(bytes, kAlignment);
  return at;
}

void Store::Release(uint64_t offset, uint64_t bytes) {
  ::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
              static_cast<off_t>(RoundUp(bytes, kPage)));
}

StoredMemory::StoredMemory(Store& store, FuseMount& mount, uint64_t bytes)
    : Memory(bytes), store_(store), mount_(mount), at_(store.Take(bytes)) {}

StoredMemory::~StoredMemory() {
  view_ = {};
  if (node_) mount_.Forget(*node_, at_, RoundUp(bytes(), kPage));
  store_.Release(at_, bytes());
}

bool StoredMemory::View() {
  if (view_) return true;
  const auto file = node_ ? mount_.OwnFile(*node_) : Result<int>(store_.file());
  auto view = file ? Mapping::Shared(*file, at_, RoundUp(bytes(), kPage)) : tl::unexpected(file.error());
  if (!view) {
    LOG(kError, "view of {} bytes of memory: {}", bytes(), view.error().context);
    return false;
  }
  view_ = std::move(*view);
  return true;
}

bool StoredMemory::Read(uint64_t offset, std::span<std::byte> to) {
  if (!Contains(offset, to.size()) || !View()) return false;
  std::memcpy(to.data(), view_.data() + offset, to.size());
  return true;
}

bool StoredMemory::Write(uint64_t offset, std::span<const std::byte> from) {
  if (!Contains(offset, from.size()) || !View()) return false;
  std::memcpy(view_.data() + offset, from.data(), from.size());
  return true;
}

std::optional<uint64_t> StoredMemory::ShareThrough(size_t node) {
  if (node_ && *node_ != node) return std::nullopt;
  if (!node_) view_ = {};
  node_ = node;
  return at_;
}

bool ProcessMemory::Read(uint64_t offset, std::span<std::byte> to) {
  return Contains(offset, to.size()) && process_.Read(address_ + offset, to.data(), to.size());
}

bool ProcessMemory::Write(uint64_t offset, std::span<const std::byte> from) {
  return Contains(offset, from.size()) && process_.Write(address_ + offset, from.data(), from.size());
}

}  // namespace vgpud::kernel_side
