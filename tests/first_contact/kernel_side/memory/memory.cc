// SPDX-License-Identifier: Apache-2.0
#include "tests/first_contact/kernel_side/memory/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace vgpud::kernel_side {
namespace {

constexpr uint64_t kPage = 4096, kAlignment = uint64_t{2} << 20;

uint64_t RoundUp(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

Result<Store> Store::Make() {
  Store store;
  store.file_.Reset(::memfd_create("kernel-side", MFD_CLOEXEC));
  if (!store.file_ || ::ftruncate(store.file_.get(), kMappedBytes) != 0) return FailErrno("the store");
  store.view_ = TRY(Mapping::Shared(store.file_.get(), 0, kMappedBytes));
  return store;
}

std::optional<uint64_t> Store::Take(uint64_t bytes) {
  if (bytes > kMappedBytes || RoundUp(bytes, kAlignment) > kMappedBytes - next_) return std::nullopt;
  const uint64_t at = next_;
  next_ += RoundUp(bytes, kAlignment);
  return at;
}

void Store::Release(uint64_t offset, uint64_t bytes) {
  ::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
              static_cast<off_t>(RoundUp(bytes, kPage)));
}

std::shared_ptr<StoredMemory> StoredMemory::Make(Store& store, FuseMount& mount, uint64_t bytes) {
  const auto at = store.Take(bytes);
  return at ? std::shared_ptr<StoredMemory>(new StoredMemory(store, mount, *at, bytes)) : nullptr;
}

StoredMemory::~StoredMemory() {
  if (node_) mount_.Forget(*node_, at_, RoundUp(bytes(), kPage));
  store_.Release(at_, bytes());
}

std::byte* StoredMemory::Data() const {
  std::byte* const all = node_ ? mount_.View(*node_) : store_.view();
  return all == nullptr ? nullptr : all + at_;
}

bool StoredMemory::Read(uint64_t offset, std::span<std::byte> to) {
  const std::byte* const data = Contains(offset, to.size()) ? Data() : nullptr;
  if (data == nullptr) return false;
  std::memcpy(to.data(), data + offset, to.size());
  return true;
}

bool StoredMemory::Write(uint64_t offset, std::span<const std::byte> from) {
  std::byte* const data = Contains(offset, from.size()) ? Data() : nullptr;
  if (data == nullptr) return false;
  std::memcpy(data + offset, from.data(), from.size());
  return true;
}

std::optional<uint64_t> StoredMemory::ShareThrough(size_t node) {
  if (node_ && *node_ != node) return std::nullopt;
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
