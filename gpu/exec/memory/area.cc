// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/memory/area.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/jail/rules.h"
#include "base/sanitizer.h"
#include "guest-driver-shim/include/uapi/vgpu_abi.h"

namespace vgpud::exec {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kMaxAreaBytes = uint64_t{64} << 30;
// What vgpud-vf answers to the mapping of a piece that it has taken back meanwhile (vfio/channel/executor_memory.h).
constexpr auto kWithdrawn = std::errc::no_such_device_or_address;

Result<void> CheckFile(int fd, const exec_link::Piece& piece) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return FailErrno("fstat of guest memory");
  // Of its last page it may have a part only: as memory there is all of it.
  const uint64_t size = (static_cast<uint64_t>(st.st_size) + kPage - 1) & ~(kPage - 1);
  if (piece.offset > size || piece.bytes > size - piece.offset)
    return Fail(std::errc::invalid_argument,
                fmt::format("guest memory file has {} bytes, a piece wants {} at {}", size, piece.bytes, piece.offset));
  return {};
}

// Who watches takes a call for done when the next one is asked, and answers this one without doing anything. Unwatched
// it does nothing either: nothing is there.
void TellOver() {
  if (kSanitizerBuild) return;
  while (::munmap(reinterpret_cast<void*>(kGuestFence), kPage) != 0 && errno == EINTR) {
  }
}

}  // namespace

Result<std::unique_ptr<GuestArea>> GuestArea::Start(GuestWindow& window, const exec_link::Area& first,
                                                    bool keeps_file) {
  if (first.total_bytes == 0 || first.total_bytes % kPage != 0 || first.total_bytes > kMaxAreaBytes)
    return Fail(std::errc::invalid_argument, fmt::format("area {}: {} bytes", first.area, first.total_bytes));
  if (first.total_pieces == 0 || first.total_pieces > VGPU_MAX_SEGMENTS)
    return Fail(std::errc::invalid_argument, fmt::format("area {}: {} pieces", first.area, first.total_pieces));
  auto area = std::make_unique<GuestArea>();
  area->mapping_ = TRY(window.Reserve(first.total_bytes));
  area->window_ = &window;
  area->total_pieces_ = first.total_pieces;
  area->keeps_file_ = keeps_file && first.total_pieces == 1;
  return area;
}

Result<void> GuestArea::Add(const exec_link::Area& message, std::span<const exec_link::Piece> pieces,
                            std::span<ForeignFd> fds) {
  if (dropped_) return {};
  if (message.total_bytes != mapping_.size() || message.total_pieces != total_pieces_ ||
      message.first_piece != pieces_ || pieces.empty() || pieces.size() > total_pieces_ - pieces_)
    return Fail(std::errc::invalid_argument,
                fmt::format("area {}: message with pieces {}+{} of {} does not follow {}", message.area,
                            message.first_piece, pieces.size(), message.total_pieces, pieces_));
  for (const exec_link::Piece& piece : pieces) {
    if ((!fds.empty() && piece.fd_index >= fds.size()) || piece.bytes == 0 || piece.bytes % kPage != 0 ||
        piece.offset % kPage != 0 || !mapping_.Contains(mapped_, piece.bytes))
      return Fail(std::errc::invalid_argument,
                  fmt::format("area {}: piece of {} bytes, fd {} of {}, does not fit at {} of {}", message.area,
                              piece.bytes, piece.fd_index, fds.size(), mapped_, mapping_.size()));
    const auto mapped = Map(piece, fds);
    if (!mapped && fds.empty() && mapped.error().code == kWithdrawn) return Drop(), Result<void>{};
    failed_ |= !mapped && mapped.error().code == std::errc::not_enough_memory;
    if (!failed_) TRY(mapped);
    mapped_ += piece.bytes;
    writable_ = writable_ && piece.writable != 0;
    if (keeps_file_ && !fds.empty()) {
      file_ = std::move(fds[piece.fd_index]);
      file_offset_ = piece.offset;
    }
    ++pieces_;
  }
  if (complete() && mapped_ != mapping_.size())
    return Fail(std::errc::invalid_argument,
                fmt::format("area {}: pieces add up to {} of {} bytes", message.area, mapped_, mapping_.size()));
  return {};
}

Result<void> GuestArea::Map(const exec_link::Piece& piece, std::span<const ForeignFd> fds) {
  if (!fds.empty()) {
    const int fd = fds[piece.fd_index].get();
    TRY(CheckFile(fd, piece));
    return mapping_.MapAt(mapped_, fd, piece.offset, piece.bytes, piece.writable != 0);
  }
  // The descriptor is there from the moment the watcher has agreed.
  const auto map = [&] {
    return mapping_.MapAt(mapped_, kGuestFileNumber, piece.offset, piece.bytes, piece.writable != 0);
  };
  auto mapped = map();
  // A signal may interrupt the question.
  while (!mapped && mapped.error().code == std::errc::interrupted) mapped = map();
  ::close(kGuestFileNumber);
  return mapped;
}

void GuestArea::Drop() {
  if (std::exchange(dropped_, true)) return;
  users_->Leave();
  window_->Release(mapping_);
  // Pieces and the reserved rest apart: who watches sees each piece go as it came.
  mapping_.UnmapFront(mapped_);
  mapping_ = Mapping{};
  file_.Reset();
  TellOver();
}

GuestArea::~GuestArea() { Drop(); }

}  // namespace vgpud::exec
