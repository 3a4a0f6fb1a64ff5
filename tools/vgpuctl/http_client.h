// SPDX-License-Identifier: Apache-2.0
// A blocking HTTP/1.1 client over a Unix socket: one request, one connection. Knows just what vgpud answers with.
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"
#include "tools/vgpuctl/chunked.h"

namespace vgpud::tools {

struct HttpReply {
  int status = 0;
  std::string body;

  bool ok() const { return status >= 200 && status < 300; }
  // What vgpud says is wrong, of a body {"error": TEXT}; empty if the body is something else.
  std::string Error() const;
};

// `path`: "/v1/vfs". `timeout` is for all of it: to be let in, to send, and the whole answer. Errors:
// connection_refused (nobody serves `socket_path`), timed_out, protocol_error.
[[nodiscard]] Result<HttpReply> HttpRequest(const std::string& socket_path, const std::string& method,
                                            const std::string& path, const std::string& body,
                                            std::chrono::milliseconds timeout);

// GET of something of any length: the body of a 2xx reply in chunks goes to `sink` as it comes, that of any other into
// the reply. `timeout` is for all of it up to the first byte, `pause` from then on for each wait. Errors as above,
// those of `sink`, and connection_reset: vgpud ended the connection before the answer's end.
[[nodiscard]] Result<HttpReply> HttpDownload(const std::string& socket_path, const std::string& path,
                                             const BodySink& sink, std::chrono::milliseconds timeout,
                                             std::chrono::milliseconds pause);

// The reply in `raw`, which ends where the connection did. protocol_error when it is none or was cut off.
[[nodiscard]] Result<HttpReply> ParseHttpReply(const std::string& raw);

}  // namespace vgpud::tools
