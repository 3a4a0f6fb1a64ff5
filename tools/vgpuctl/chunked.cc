#include "tools/vgpuctl/chunked.h"

#include <charconv>

namespace vgpud {

Result<std::string> JoinChunks(std::string_view body) {
  std::string joined;
  for (;;) {
    size_t length = 0;
    const auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), length, 16);
    const size_t line = body.find("\r\n");
    if (error != std::errc{} || line == std::string_view::npos || end > body.data() + line)
      return Fail(std::errc::protocol_error, "vgpud's reply was cut off");
    body.remove_prefix(line + 2);
    if (length == 0) return joined;
    if (body.size() < 2 || length > body.size() - 2 || body.substr(length, 2) != "\r\n")
      return Fail(std::errc::protocol_error, "vgpud's reply was cut off");
    joined += body.substr(0, length);
    body.remove_prefix(length + 2);
  }
}

}  // namespace vgpud
