// SPDX-License-Identifier: Apache-2.0
// The JSON text in VFIO_USER_VERSION: what a client says about itself, and our answer.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace vgpud::vfio {

// Several times what a client needs to say; a longer text is refused unread.
inline constexpr size_t kMaxVersionText = 4096;
// Objects and arrays within each other.
inline constexpr size_t kMaxVersionDepth = 8;

// The defaults are those of the protocol ("VFIO_USER_VERSION").
struct ClientCapabilities {
  uint64_t max_msg_fds = 1;
  uint64_t max_data_xfer_size = 1 << 20;
  uint64_t max_dma_maps = 65535;
  uint64_t page_sizes = 4096;
};

// Parses the client's text (without its NUL; empty: nothing said). Unknown keys are skipped, whatever they hold.
//   EINVAL  no JSON object, longer or deeper than the limits, or a known key twice, of another type or out of range
[[nodiscard]] Result<ClientCapabilities> ParseVersionText(std::string_view text);

// Our answer.
std::string_view VersionText();

}  // namespace vgpud::vfio
