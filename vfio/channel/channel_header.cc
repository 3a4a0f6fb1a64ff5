// SPDX-License-Identifier: Apache-2.0
#include "vfio/channel/channel_header.h"

#include <unistd.h>

#include <cstddef>

#include "guest-driver-shim/include/uapi/vgpu_abi.h"

namespace vgpud::vfio {
namespace {

constexpr uint32_t kLaunchFailed = 719;  // CUDA_ERROR_LAUNCH_FAILED
constexpr char kLostText[] =
    "the executor of this CUDA process ended unexpectedly (killed or crashed); see vgpud's log";

// Copies into an area; false when the file behind it does not take it.
bool WriteArea(const Area& area, uint64_t at, const void* data, size_t bytes) {
  for (const FilePiece& piece : area.pieces) {
    if (at >= piece.bytes) {
      at -= piece.bytes;
      continue;
    }
    if (!piece.writable || bytes > piece.bytes - at) return false;
    return ::pwrite(piece.file->get(), data, bytes, static_cast<off_t>(piece.offset + at)) ==
           static_cast<ssize_t>(bytes);
  }
  return false;
}

}  // namespace

uint32_t StickyError(const Area& area) {
  if (area.pieces.empty()) return 0;
  uint32_t sticky = 0;
  const FilePiece& first = area.pieces[0];
  const off_t at = static_cast<off_t>(first.offset + offsetof(vgpu_channel_header, sticky_error));
  return ::pread(first.file->get(), &sticky, sizeof sticky, at) == sizeof sticky ? sticky : 0;
}

void MarkHeaderLost(const Area& area) {
  if (area.pieces.empty()) return;
  // An error that the executor itself has reported explains more than ours: keep it.
  if (StickyError(area) == 0) {
    const uint32_t sticky = kLaunchFailed;
    WriteArea(area, offsetof(vgpu_channel_header, error_text), kLostText, sizeof kLostText);
    WriteArea(area, offsetof(vgpu_channel_header, sticky_error), &sticky, sizeof sticky);
  }
  const uint32_t lost = VGPU_CHANNEL_LOST;
  WriteArea(area, offsetof(vgpu_channel_header, state), &lost, sizeof lost);
}

}  // namespace vgpud::vfio
