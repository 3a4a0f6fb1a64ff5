#include "gpu/exec/area.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/check.h"
#include "guest-driver-shim/include/uapi/vgpu_abi.h"

namespace vgpud {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kMaxAreaBytes = uint64_t{64} << 30;

Result<void> CheckFile(int fd, const exec_link::Piece& piece) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return FailErrno("fstat of guest memory");
  const auto size = static_cast<uint64_t>(st.st_size);
  if (piece.offset > size || piece.bytes > size - piece.offset)
    return Fail(std::errc::invalid_argument,
                fmt::format("guest memory file has {} bytes, a piece wants {} at {}", size, piece.bytes, piece.offset));
  return {};
}

}  // namespace

Result<std::unique_ptr<GuestArea>> GuestArea::Start(const exec_link::Area& first) {
  if (first.total_bytes == 0 || first.total_bytes % kPage != 0 || first.total_bytes > kMaxAreaBytes)
    return Fail(std::errc::invalid_argument, fmt::format("area {}: {} bytes", first.area, first.total_bytes));
  if (first.total_pieces == 0 || first.total_pieces > VGPU_MAX_SEGMENTS)
    return Fail(std::errc::invalid_argument, fmt::format("area {}: {} pieces", first.area, first.total_pieces));
  auto area = std::make_unique<GuestArea>();
  area->mapping_ = TRY(Mapping::Reserve(first.total_bytes));
  area->total_pieces_ = first.total_pieces;
  return area;
}

Result<void> GuestArea::Add(const exec_link::Area& message, std::span<const exec_link::Piece> pieces,
                            std::span<const UniqueFd> fds) {
  if (message.total_bytes != mapping_.size() || message.total_pieces != total_pieces_ ||
      message.first_piece != pieces_ || pieces.empty() || pieces.size() > total_pieces_ - pieces_)
    return Fail(std::errc::invalid_argument,
                fmt::format("area {}: message with pieces {}+{} of {} does not follow {}", message.area,
                            message.first_piece, pieces.size(), message.total_pieces, pieces_));
  for (const exec_link::Piece& piece : pieces) {
    if (piece.fd_index >= fds.size() || piece.bytes == 0 || piece.bytes % kPage != 0 || piece.offset % kPage != 0 ||
        !mapping_.Contains(mapped_, piece.bytes))
      return Fail(std::errc::invalid_argument,
                  fmt::format("area {}: piece of {} bytes, fd {} of {}, does not fit at {} of {}", message.area,
                              piece.bytes, piece.fd_index, fds.size(), mapped_, mapping_.size()));
    const int fd = fds[piece.fd_index].get();
    TRY(CheckFile(fd, piece));
    TRY(mapping_.MapAt(mapped_, fd, piece.offset, piece.bytes, piece.writable != 0));
    mapped_ += piece.bytes;
    writable_ = writable_ && piece.writable != 0;
    ++pieces_;
  }
  if (complete() && mapped_ != mapping_.size())
    return Fail(std::errc::invalid_argument,
                fmt::format("area {}: pieces add up to {} of {} bytes", message.area, mapped_, mapping_.size()));
  return {};
}

void GuestArea::Drop() {
  void* p = ::mmap(mapping_.data(), mapping_.size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
                   -1, 0);
  CHECK(p != MAP_FAILED);
}

}  // namespace vgpud
