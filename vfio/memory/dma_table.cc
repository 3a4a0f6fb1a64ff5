// SPDX-License-Identifier: Apache-2.0
#include "vfio/memory/dma_table.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "vfio/memory/client_file.h"

namespace vgpud::vfio {
namespace {

constexpr uint64_t kPage = 4096;

std::string Text(const IovaRange& range) { return fmt::format("{:#x}+{:#x}", range.first(), range.bytes); }

constexpr const char* kSharedMemoryFix =
    "its memory is not shared with this device; start QEMU with -object memory-backend-memfd,id=ram,size=...,share=on "
    "-machine memory-backend=ram, or in libvirt <memoryBacking><source type='memfd'/><access mode='shared'/>"
    "</memoryBacking>";

}  // namespace

Result<void> DmaTable::Map(IovaRange range, Access access, ForeignFd& file, uint64_t offset) {
  if (range.bytes == 0 || range.first() + (range.bytes - 1) < range.first())
    return Fail(std::errc::invalid_argument, fmt::format("DMA_MAP {}: empty or wraps", Text(range)));
  const auto next = regions_.upper_bound(range.last());
  if (next != regions_.begin() && std::prev(next)->second.range.Overlaps(range))
    return Fail(std::errc::file_exists,
                fmt::format("DMA_MAP {}: overlaps {}", Text(range), Text(std::prev(next)->second.range)));
  if (regions_.size() >= kMaxDmaRegions)
    return Fail(std::errc::no_space_on_device,
                fmt::format("DMA_MAP {}: {} regions is the limit", Text(range), kMaxDmaRegions));
  SharedFd shared;
  uint64_t page = kPage;
  if (file) {
    if (((range.first() | range.bytes | offset) & (kPage - 1)) != 0)
      return Fail(std::errc::invalid_argument,
                  fmt::format("DMA_MAP {} offset {:#x}: not page aligned", Text(range), offset));
    shared = TRY(CheckFile(file, offset, range.bytes, access));
    page = PageOf(shared->get());
  }
  regions_.emplace(range.first(), Region{range, access, std::move(shared), offset, page});
  return {};
}

Result<SharedFd> DmaTable::CheckFile(ForeignFd& file, uint64_t offset, uint64_t bytes, Access access) {
  TRY(CheckClientFile(file, offset, bytes, access.write, "DMA_MAP"));
  struct stat st {};
  if (::fstat(file.get(), &st) != 0) return FailErrno("DMA_MAP: fstat");
  const int mode = ::fcntl(file.get(), F_GETFL) & O_ACCMODE;
  // Firmware maps pieces of one memfd dozens of times: one descriptor of it is enough.
  std::erase_if(files_, [](const auto& entry) { return entry.second.expired(); });
  const FileId id{st.st_dev, st.st_ino, mode};
  if (const auto known = files_.find(id); known != files_.end()) {
    const UniqueFd closed = file.Trust();  // memory closes at once
    return known->second.lock();
  }
  if (files_.size() >= kMaxDmaFiles)
    return Fail(std::errc::no_space_on_device, fmt::format("DMA_MAP: {} different files is the limit", kMaxDmaFiles));
  // The last one gives the memory back, which takes its time when there is much.
  const auto holder = std::make_shared<ForeignFd>(std::move(file));
  const SharedFd shared{holder, &holder->unique()};
  files_.emplace(id, shared);
  return shared;
}

Result<void> DmaTable::CheckUnmap(IovaRange range) const {
  if (range.bytes == 0 || range.first() + (range.bytes - 1) < range.first())
    return Fail(std::errc::invalid_argument, fmt::format("DMA_UNMAP {}: empty or wraps", Text(range)));
  const auto next = regions_.upper_bound(range.last());
  if (next == regions_.begin() || !std::prev(next)->second.range.Overlaps(range))
    return Fail(std::errc::no_such_file_or_directory, fmt::format("DMA_UNMAP {}: nothing mapped there", Text(range)));
  const IovaRange& region = std::prev(next)->second.range;
  if (region.first() != range.first() || region.bytes != range.bytes)
    return Fail(std::errc::invalid_argument,
                fmt::format("DMA_UNMAP {}: is not a mapping as it was made ({} is one)", Text(range), Text(region)));
  return {};
}

void DmaTable::Unmap(IovaRange range) { regions_.erase(range.first()); }

void DmaTable::Clear() { regions_.clear(); }

Result<std::vector<FilePiece>> DmaTable::Resolve(IovaRange range, bool write) const {
  if (range.bytes == 0 || range.first() + (range.bytes - 1) < range.first())
    return Fail(std::errc::invalid_argument, fmt::format("guest memory {}: empty or wraps", Text(range)));
  std::vector<FilePiece> pieces;
  uint64_t at = range.first();
  uint64_t left = range.bytes;
  auto it = regions_.upper_bound(at);
  if (it != regions_.begin()) --it;
  for (; left != 0; ++it) {
    if (it == regions_.end() || at < it->second.range.first() || at > it->second.range.last())
      return Fail(std::errc::bad_address, fmt::format("guest memory {}: {:#x} is not mapped", Text(range), at));
    const Region& region = it->second;
    if (region.file == nullptr)
      return Fail(std::errc::bad_address, fmt::format("guest memory {}: {}", Text(range), kSharedMemoryFix));
    if (!region.access.read || (write && !region.access.write))
      return Fail(std::errc::bad_address,
                  fmt::format("guest memory {}: {:#x} is read-only for devices", Text(range), at));
    const uint64_t inside = at - region.range.first();
    const uint64_t bytes = std::min(left, region.range.bytes - inside);
    pieces.push_back({region.file, region.offset + inside, bytes, region.access.write, {Iova{at}, bytes}, region.page});
    at += bytes;
    left -= bytes;
  }
  return pieces;
}

Result<void> DmaTable::Read(Iova from, std::span<std::byte> out) const {
  for (const FilePiece& piece : TRY(Resolve({from, out.size()}, false))) {
    if (::pread(piece.file->get(), out.data(), piece.bytes, static_cast<off_t>(piece.offset)) !=
        static_cast<ssize_t>(piece.bytes))
      return Fail(std::errc::bad_address,
                  fmt::format("guest memory {}: the file behind it is cut off", Text(piece.guest)));
    out = out.subspan(piece.bytes);
  }
  return {};
}

Result<void> DmaTable::Write(Iova to, std::span<const std::byte> in) const {
  for (const FilePiece& piece : TRY(Resolve({to, in.size()}, true))) {
    if (::pwrite(piece.file->get(), in.data(), piece.bytes, static_cast<off_t>(piece.offset)) !=
        static_cast<ssize_t>(piece.bytes))
      return Fail(std::errc::bad_address,
                  fmt::format("guest memory {}: the file behind it cannot be written", Text(piece.guest)));
    in = in.subspan(piece.bytes);
  }
  return {};
}

bool Area::Overlaps(const IovaRange& range) const {
  return std::any_of(pieces.begin(), pieces.end(), [&](const FilePiece& p) { return p.guest.Overlaps(range); });
}

}  // namespace vgpud::vfio
