// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/ask.h"

#include <fmt/format.h>

#include <chrono>

#include "tools/vgpuctl/http_client.h"

namespace vgpud::kubernetes {

using std::chrono_literals::operator""s;

Result<std::string> AskVgpud(const std::string& socket, const std::string& method, const std::string& path,
                             const std::string& body) {
  constexpr auto kPatience = 5s;
  const tools::HttpReply reply = TRY(tools::HttpRequest(socket, method, path, body, kPatience));
  if (reply.ok()) return reply.body;
  const std::string said = reply.Error();
  return Fail(std::errc::operation_not_permitted,
              said.empty() ? fmt::format("vgpud answered {} to {} {}", reply.status, method, path) : said);
}

}  // namespace vgpud::kubernetes
