// HTTP/1.1 bodies that come in pieces (RFC 9112, "Chunked Transfer Coding").
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace vgpud {

// The pieces of `body` joined. An error: it was cut off, or is not chunked.
[[nodiscard]] Result<std::string> JoinChunks(std::string_view body);

}  // namespace vgpud
