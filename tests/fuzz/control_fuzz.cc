// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: what users of a host send to vgpud's control socket, in any order: requests whole and in parts,
// bodies, raw bytes, answers that are not taken, ends of connections. The input is a program of steps (kSteps); each
// takes its arguments from the bytes that follow. The daemon has a soft GPU, and VFs whose vgpud-vf never says a word.
#include <event2/event.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "tests/fuzz/fuzz_bytes.h"
#include "tests/unit/vgpud/control/control_bed.h"
#include "vgpud/tenants/tenants.h"

namespace vgpud::daemon {
namespace {

constexpr size_t kMostSteps = 48;
constexpr size_t kMostClients = 6;
constexpr int kInputsOfABed = 500;
constexpr uint64_t kMostVfs = 3;

// Root, and one for each kind of rights.
constexpr uid_t kUsers[] = {0, 1001, 1002, 1003, 1004, 1005};

constexpr std::string_view kMethods[] = {"GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "get", "\x7f"};
constexpr std::string_view kPaths[] = {"/v1/vfs",
                                       "/v1/vfs/a",
                                       "/v1/vfs/b",
                                       "/v1/vfs/slurm-1",
                                       "/v1/vfs/guest-vgpud0",
                                       "/v1/vfs/a/reset",
                                       "/v1/vfs/a/pause",
                                       "/v1/vfs/b/resume",
                                       "/v1/vfs/a/domain",
                                       "/v1/vfs/b/domain",
                                       "/v1/stats",
                                       "/v1/profiles",
                                       "/v1/gpus",
                                       "/v1/gpus/soft0",
                                       "/v1/gpu",
                                       "/v1/topo",
                                       "/v1/settings",
                                       "/metrics",
                                       "/v1/report",
                                       "/v1/trace",
                                       "/v1/processes",
                                       "/v1/events",
                                       "/v1/vfs/a/log",
                                       "/v1/vfs/a/wait",
                                       "/v1/config",
                                       "/v1/config/diff",
                                       "/v1/calendar",
                                       "/v1/config/reload",
                                       "/v1/tenants",
                                       "/v1/vfs/",
                                       "/v1/vfs/%2e%2e/a%00",
                                       "/v1/vfs/a/../b",
                                       "*",
                                       "http://x:70000/v1/vfs"};
constexpr std::string_view kKeys[] = {"dry_run", "queue",     "if_revision", "uuid",  "vf",  "gpu",        "from", "to",
                                      "last_us", "if_unused", "follow",      "after", "for", "timeout_ms", ""};
constexpr std::string_view kValues[] = {
    "1", "0", "a", "soft0", "gone", "2026-01-01", "2026-12-31", "99999999999999999999", "%31", "%", "-1"};
constexpr std::string_view kFields[] = {"name",
                                        "profile",
                                        "vram_bytes",
                                        "host_memory_bytes",
                                        "paused",
                                        "transient",
                                        "domain",
                                        "domain_uuid",
                                        "gpu",
                                        "placement",
                                        "numa_node",
                                        "tenant",
                                        "weight",
                                        "slice_us",
                                        "priority",
                                        "group",
                                        "guarantee",
                                        "limit",
                                        "burst_us",
                                        "wake_first",
                                        "policy",
                                        "idle",
                                        "vfs",
                                        "gpus",
                                        "base_slice_us",
                                        "group_weight",
                                        "ends_with_domain",
                                        "switch_target",
                                        "a",
                                        "b",
                                        "0",
                                        ""};
constexpr std::string_view kTexts[] = {
    "a",     "b",     "slurm-1", "guest-vgpud0", "team-a",  "team-b",
    "1/4",   "soft0", "spread",  "numa",         "reserve", "strict",
    "yield", "",      "\\u0000", "\\ud800",      "\xff",    "01234567-89ab-cdef-0123-456789abcdef",
    "a/b",   "\\n"};
constexpr std::string_view kHeaders[] = {"Connection: close\r\n",
                                         "Connection: keep-alive\r\n",
                                         "Expect: 100-continue\r\n",
                                         "Content-Length: 5\r\n",
                                         "Content-Length: -1\r\n",
                                         "Content-Length: 18446744073709551616\r\n",
                                         "Content-Length: 1048577\r\n",
                                         "Transfer-Encoding: chunked\r\n",
                                         "Transfer-Encoding: identity\r\n",
                                         "Host: x\r\n",
                                         ": x\r\n",
                                         "X\r\n",
                                         " folded\r\n",
                                         "Upgrade: h2c\r\n",
                                         "X: \0y\r\n"};

std::string Value(FuzzBytes& bytes, int depth);

std::string Object(FuzzBytes& bytes, int depth) {
  std::string text = "{";
  for (uint32_t fields = bytes.Pick(6); fields > 0; --fields)
    text += fmt::format("{}\"{}\": {}", text.size() > 1 ? ", " : "", bytes.Of(kFields), Value(bytes, depth + 1));
  return text + "}";
}

std::string Value(FuzzBytes& bytes, int depth) {
  switch (bytes.Pick(depth < 4 ? 10 : 8)) {
    case 0:
      return fmt::format("{}", bytes.Number());
    case 1:
      return fmt::format("-{}", bytes.Number());
    case 2:
      return fmt::format("{}.{}e{}", bytes.Byte(), bytes.Byte(), static_cast<int>(bytes.Pick(700)) - 350);
    case 3:
      return "null";
    case 4:
      return bytes.Chance(2) ? "true" : "false";
    case 5:
      return fmt::format("{}", 1048576 * (1 + bytes.Pick(64)));
    case 6:
      return fmt::format("0.{}", bytes.Pick(100));
    case 7:
      return fmt::format("\"{}\"", bytes.Of(kTexts));
    case 8:
      return fmt::format("[{}, {}]", Value(bytes, depth + 1), Value(bytes, depth + 1));
    default:
      return Object(bytes, depth);
  }
}

std::string RawText(FuzzBytes& bytes) {
  const auto some = bytes.Take(bytes.Byte());
  return {reinterpret_cast<const char*>(some.data()), some.size()};
}

std::string Body(FuzzBytes& bytes) {
  switch (bytes.Pick(6)) {
    case 0:
      return "";
    case 1:
      return RawText(bytes);
    case 2:
      return std::string(1 + 100 * bytes.Pick(3000), "[{ "[bytes.Pick(3)]);
    default:
      return Object(bytes, 0);
  }
}

std::string Chunked(FuzzBytes& bytes, const std::string& body) {
  std::string text;
  for (size_t at = 0; at < body.size();) {
    const size_t size = std::min<size_t>(1 + bytes.Byte(), body.size() - at);
    const size_t said = bytes.Chance(16) ? bytes.Number() : size;
    text += fmt::format("{:x}{}\r\n{}\r\n", said, bytes.Chance(8) ? ";x=y" : "", body.substr(at, size));
    at += size;
  }
  return text + (bytes.Chance(8) ? "" : "0\r\n\r\n");
}

std::string HttpRequest(FuzzBytes& bytes) {
  std::string text = fmt::format("{} {}", bytes.Of(kMethods), bytes.Of(kPaths));
  for (uint32_t parameters = bytes.Pick(3); parameters > 0; --parameters)
    text += fmt::format("{}{}={}", text.find('?') == std::string::npos ? '?' : '&', bytes.Of(kKeys), bytes.Of(kValues));
  text += bytes.Chance(16) ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n";
  for (uint32_t headers = bytes.Pick(3); headers > 0; --headers) text += bytes.Of(kHeaders);
  if (bytes.Chance(32)) text += "X: " + std::string(bytes.Raw<uint16_t>(), 'x') + "\r\n";
  const std::string body = Body(bytes);
  if (!body.empty() && bytes.Chance(4)) return text + "Transfer-Encoding: chunked\r\n\r\n" + Chunked(bytes, body);
  if (!body.empty()) text += fmt::format("Content-Length: {}\r\n", body.size());
  return text + "\r\n" + body;
}

class Bed : ControlBed {
 public:
  Bed() {
    config_.vf_program = config_.runtime_dir + "/says-nothing";
    std::ofstream(config_.vf_program) << "#!/bin/sh\nexec sleep 20\n";
    fs::permissions(config_.vf_program, fs::perms::owner_all);
    fs::create_directory(config_.runtime_dir + "/vf");
    for (const char* setting : {"team-a.vfs=1", "team-a.vram=64MiB", "team-b.vfs=1"})
      CHECK(SetInTenant(&config_.tenants, setting).has_value());
    CHECK(SetInSite(&config_.site, fmt::format("vfs={}", kMostVfs)).has_value());
    config_.access = {.users = {{"m", 1001, May::kManage, ""},
                                {"a", 1002, May::kManage, "team-a"},
                                {"b", 1003, May::kManage, "team-b"},
                                {"l", 1004, May::kLook, ""}},
                      .others = May::kNothing};
    Begin();
    ClientLimits limits;
    limits.connections = {.what = "connections", .each = 3, .all = 5, .reserved = 2};
    for (RateLimit* rate : {&limits.requests, &limits.answer_bytes}) rate->each_per_second = rate->all_per_second = 0;
    limits.untaken_bytes.each = 64 << 10;
    limits.untaken_bytes.all = 128 << 10;
    limits.long_answers = {.what = "reports and traces", .each = 1, .all = 3, .reserved = 1};
    limits.followers = {.what = "followers", .each = 1, .all = 3, .reserved = 1};
    limits.new_vfs = {
        .what = "new VFs", .each_per_second = 5, .each_at_once = 5, .all_per_second = 0, .all_at_once = 0};
    limits.user = [this](int) { return user_; };
    limits.sharer = [this](int) { return Sharer{fmt::format("user {}", user_), user_ == 0}; };
    Serve(limits, true);
  }

  void Play(FuzzBytes bytes) {
    for (size_t step = 0; step < kMostSteps && !bytes.empty(); ++step)
      (this->*kSteps[bytes.Pick(std::size(kSteps))])(bytes);
    clients_.clear();
    user_ = 0;
    Pump();
    Look();
  }

 private:
  struct Client {
    UniqueFd fd;
    std::string unsent;
  };
  void Pump() {
    for (int i = 0; i < 8; ++i) event_base_loop(loop_.base(), EVLOOP_NONBLOCK);
  }
  Client* Any(FuzzBytes& bytes) {
    return clients_.empty() ? nullptr : &clients_[bytes.Pick(static_cast<uint32_t>(clients_.size()))];
  }
  static void Send(Client* client, size_t most) {
    const ssize_t sent = ::send(client->fd.get(), client->unsent.data(), std::min(most, client->unsent.size()),
                                MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) client->unsent.erase(0, static_cast<size_t>(sent));
  }

  void Come(FuzzBytes& bytes) {
    if (clients_.size() >= kMostClients) clients_.erase(clients_.begin());
    Pump();  // those before it have been judged by their user
    user_ = bytes.Of(kUsers);
    if (auto fd = ConnectUnix(socket(), SOCK_STREAM | SOCK_NONBLOCK)) clients_.push_back({std::move(*fd), {}});
    Pump();
  }
  void Request(FuzzBytes& bytes) {
    Client* const client = Any(bytes);
    if (client == nullptr) return Come(bytes);
    client->unsent += HttpRequest(bytes);
    Send(client, SIZE_MAX);
    Pump();
  }
  void Write(FuzzBytes& bytes) {
    Client* const client = Any(bytes);
    if (client == nullptr) return;
    client->unsent += bytes.Chance(2) ? HttpRequest(bytes) : RawText(bytes);
    Send(client, bytes.Byte());
    Pump();
  }
  void Read(FuzzBytes& bytes) {
    Client* const client = Any(bytes);
    if (client == nullptr) return;
    std::array<char, 65536> piece;
    for (uint32_t times = bytes.Pick(8); times > 0; --times) {
      (void)!::recv(client->fd.get(), piece.data(), piece.size(), MSG_DONTWAIT);
      Pump();
    }
  }
  void Go(FuzzBytes& bytes) {
    if (clients_.empty()) return;
    clients_.erase(clients_.begin() + bytes.Pick(static_cast<uint32_t>(clients_.size())));
    if (bytes.Chance(2)) Pump();
  }
  void SayNoMore(FuzzBytes& bytes) {
    if (Client* const client = Any(bytes)) ::shutdown(client->fd.get(), bytes.Chance(2) ? SHUT_RD : SHUT_WR);
    Pump();
  }

  // Root is served, whatever the others did, and everybody is within the limits.
  void Look() {
    const auto look = [this](const char* path) {
      const Answer answer = ControlBed::Ask("GET", path);
      if (answer.status != 200 || answer.json().is_discarded()) std::abort();
      return answer.json();
    };
    (void)look("/v1/stats");
    if (look("/v1/vfs")["vfs"].size() > kMostVfs) std::abort();
    for (const TenantReport& tenant : vfs_->limits().List())
      for (const ResourceRow& row : kResourceRows)
        if (const auto& most = tenant.quota.together[row.resource]; most && tenant.use[row.resource] > *most)
          std::abort();
  }

  using Step = void (Bed::*)(FuzzBytes&);
  static constexpr Step kSteps[] = {&Bed::Come,  &Bed::Request, &Bed::Request, &Bed::Request,
                                    &Bed::Write, &Bed::Read,    &Bed::Go,      &Bed::SayNoMore};
  std::vector<Client> clients_;
  uid_t user_ = 0;
};

}  // namespace
}  // namespace vgpud::daemon

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vgpud;
  using namespace vgpud::daemon;
  static std::unique_ptr<Bed> bed;
  static int inputs = 0;
  // Before the statics that the first bed has made.
  if (inputs == 1) std::atexit([] { bed.reset(); });
  if (inputs++ % kInputsOfABed == 0) {
    SetLogSink([](std::optional<LogLevel>, std::string_view, std::string_view) { return true; });
    bed.reset();
    bed = std::make_unique<Bed>();
  }
  bed->Play({data, size});
  return 0;
}
