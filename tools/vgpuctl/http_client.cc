// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/http_client.h"

#include <fmt/core.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"
#include "tools/vgpuctl/chunked.h"
#include "vgpud/model/api.h"

namespace vgpud::tools {
namespace {

constexpr size_t kMaxReplyBytes = 64u << 20;

class Deadline {
 public:
  explicit Deadline(std::chrono::milliseconds timeout) : end_(Now() + timeout), timeout_(timeout) {}
  Ns left() const { return end_ - Now(); }
  tl::unexpected<Error> Over(std::string_view what) const {
    return Fail(std::errc::timed_out, fmt::format("vgpud did not {} within {} ms", what, timeout_.count()));
  }
  Result<void> Wait(int fd, short events) const {
    for (;;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end_ - Now()).count();
      pollfd p{fd, events, 0};
      const int n = left > 0 ? ::poll(&p, 1, static_cast<int>(left)) : 0;
      if (n > 0) return {};
      if (n == 0) return Over("answer");
      if (errno != EINTR) return FailErrno("poll");
    }
  }

 private:
  TimePoint end_;
  std::chrono::milliseconds timeout_;
};

bool ClosedByPeer(int error) { return error == EPIPE || error == ECONNRESET; }

// False: vgpud stopped reading before the end. It may have answered all the same (413).
Result<bool> SendAll(int fd, std::string_view data, const Deadline& deadline) {
  while (!data.empty()) {
    TRY(deadline.Wait(fd, POLLOUT));
    const ssize_t n = ::send(fd, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) data.remove_prefix(static_cast<size_t>(n));
    if (n < 0 && ClosedByPeer(errno)) return false;
    if (n < 0 && errno != EAGAIN && errno != EINTR) return FailErrno("send to vgpud");
  }
  return true;
}

// What has come, at least a byte; empty: the connection has ended.
Result<std::string> ReceiveSome(int fd, const Deadline& deadline) {
  std::array<char, 65536> chunk;
  for (;;) {
    TRY(deadline.Wait(fd, POLLIN));
    const ssize_t n = ::recv(fd, chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (n == 0 || (n < 0 && ClosedByPeer(errno))) return std::string();
    if (n > 0) return std::string(chunk.data(), static_cast<size_t>(n));
    if (errno != EAGAIN && errno != EINTR) return FailErrno("receive from vgpud");
  }
}

Result<std::string> ReceiveAll(int fd, const Deadline& deadline, std::string data = {}) {
  while (data.size() < kMaxReplyBytes) {
    const std::string more = TRY(ReceiveSome(fd, deadline));
    if (more.empty()) return data;
    data += more;
  }
  return Fail(std::errc::protocol_error, "vgpud's reply is too long");
}

// The value of a header, `name` in lower case.
std::optional<std::string_view> Header(std::string_view headers, std::string_view name) {
  for (size_t at = 0; (at = headers.find("\r\n", at)) != std::string_view::npos;) {
    at += 2;
    const std::string_view line = headers.substr(at, headers.find("\r\n", at) - at);
    if (line.size() <= name.size() || line[name.size()] != ':' ||
        ::strncasecmp(line.data(), name.data(), name.size()) != 0)
      continue;
    const size_t value = line.find_first_not_of(' ', name.size() + 1);
    return value == std::string_view::npos ? std::string_view() : line.substr(value);
  }
  return std::nullopt;
}

std::optional<size_t> ContentLength(std::string_view headers) {
  const auto value = Header(headers, "content-length");
  size_t length = 0;
  if (!value || std::from_chars(value->data(), value->data() + value->size(), length).ec != std::errc{})
    return std::nullopt;
  return length;
}

}  // namespace

std::string HttpReply::Error() const {
  const auto json = nlohmann::json::parse(body, nullptr, false);
  const auto it = json.find("error");  // nothing, too, in what is no object
  return it != json.end() && it->is_string() ? it->get<std::string>() : std::string();
}

Result<HttpReply> ParseHttpReply(const std::string& raw) {
  const size_t headers_end = raw.find("\r\n\r\n");
  HttpReply reply;
  if (headers_end == std::string::npos || raw.compare(0, 7, "HTTP/1.") != 0 || raw.size() < 12 ||
      std::from_chars(raw.data() + 9, raw.data() + 12, reply.status).ptr != raw.data() + 12)
    return Fail(std::errc::protocol_error, "what answers there does not speak HTTP; is it a vgpud?");
  reply.body = raw.substr(headers_end + 4);
  const auto headers = std::string_view(raw).substr(0, headers_end);
  if (Header(headers, "transfer-encoding") == "chunked") {
    reply.body = TRY(JoinChunks(std::string_view(raw).substr(headers_end + 4)));
    return reply;
  }
  const auto length = ContentLength(headers);
  if (length && reply.body.size() < *length)
    return Fail(std::errc::protocol_error,
                fmt::format("vgpud's reply was cut off ({} of {} bytes)", reply.body.size(), *length));
  if (length) reply.body.resize(*length);
  return reply;
}

namespace {

std::string RequestText(const std::string& method, const std::string& path, const std::string& body) {
  return fmt::format(
      "{} {} HTTP/1.1\r\nHost: vgpud\r\nConnection: close\r\nContent-Type: application/json\r\n"
      "Content-Length: {}\r\n\r\n{}",
      method, path, body.size(), body);
}

// Waits its turn while the kernel's queue is full. That is served in order: who came back again and again would come
// after all who wait in it.
Result<UniqueFd> ConnectTo(const std::string& socket_path, const Deadline& deadline) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof address.sun_path)
    return Fail(std::errc::connection_refused, fmt::format("socket path \"{}\" is too long", socket_path));
  socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
  const auto us = std::chrono::ceil<std::chrono::microseconds>(deadline.left()).count();
  const timeval limit{us / 1'000'000, us % 1'000'000};
  if (us <= 0) return deadline.Over("let this client in");
  UniqueFd fd{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (!fd || ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0) return FailErrno("socket");
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  if (errno == EAGAIN) return deadline.Over("let this client in");
  const auto code = errno == EACCES ? std::errc::permission_denied : std::errc::connection_refused;
  return Fail(code, FailErrno(fmt::format("connect {}", socket_path)).value().context);
}

// Where there is one for this user alone, nobody else is before it.
Result<UniqueFd> Connect(const std::string& socket_path, const Deadline& deadline) {
  auto own = ConnectTo(control::OwnSocketPath(socket_path), deadline);
  return own ? std::move(own) : ConnectTo(socket_path, deadline);
}

}  // namespace

Result<HttpReply> HttpRequest(const std::string& socket_path, const std::string& method, const std::string& path,
                              const std::string& body, std::chrono::milliseconds timeout) {
  const Deadline deadline{timeout};
  const UniqueFd fd = TRY(Connect(socket_path, deadline));
  const bool sent = TRY(SendAll(fd.get(), RequestText(method, path, body), deadline));
  const std::string raw = TRY(ReceiveAll(fd.get(), deadline));
  if (raw.empty())
    return Fail(std::errc::protocol_error, sent ? "vgpud closed the connection without an answer"
                                                : "vgpud closed the connection before it had read the request");
  return ParseHttpReply(raw);
}

Result<HttpReply> HttpDownload(const std::string& socket_path, const std::string& path, const BodySink& sink,
                               std::chrono::milliseconds timeout, std::chrono::milliseconds pause) {
  const Deadline begin{timeout};
  const UniqueFd fd = TRY(Connect(socket_path, begin));
  (void)TRY(SendAll(fd.get(), RequestText("GET", path, ""), begin));
  std::string head;
  size_t headers_end = std::string::npos;
  while (headers_end == std::string::npos && head.size() < kMaxReplyBytes) {
    const std::string more = TRY(ReceiveSome(fd.get(), begin));
    if (more.empty()) return Fail(std::errc::protocol_error, "vgpud closed the connection without an answer");
    head += more;
    headers_end = head.find("\r\n\r\n");
  }
  const auto headers = std::string_view(head).substr(0, headers_end);
  if (!head.starts_with("HTTP/1.1 2") || Header(headers, "transfer-encoding") != "chunked")
    return ParseHttpReply(TRY(ReceiveAll(fd.get(), Deadline{timeout}, std::move(head))));
  ChunkReader reader{sink};
  TRY(reader.Feed(std::string_view(head).substr(headers_end + 4)));
  while (!reader.done()) {
    const std::string more = TRY(ReceiveSome(fd.get(), Deadline{pause}));
    if (more.empty()) return Fail(std::errc::connection_reset, "vgpud's reply was cut off");
    TRY(reader.Feed(more));
  }
  return HttpReply{200, {}};
}

}  // namespace vgpud::tools
