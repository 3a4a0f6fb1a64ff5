// SPDX-License-Identifier: Apache-2.0
// Clients of vgpud that do what they should not, and its end at a bad moment. Real processes.
#include <arpa/inet.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "base/sanitizer.h"
#include "tests/integration/vgpud/vgpud_bed.h"
#include "tools/vgpuctl/http_client.h"

namespace vgpud::daemon {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
namespace fs = std::filesystem;

std::string ReadFile(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

size_t Descriptors(pid_t pid) {
  const fs::directory_iterator all(fmt::format("/proc/{}/fd", pid));
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

rlim_t AllowDescriptors(pid_t pid, rlim_t most) {
  rlimit before{};
  EXPECT_EQ(0, ::prlimit(pid, RLIMIT_NOFILE, nullptr, &before));
  const rlimit limit{most, before.rlim_max};
  EXPECT_EQ(0, ::prlimit(pid, RLIMIT_NOFILE, &limit, nullptr));
  return before.rlim_cur;
}

Json Ask(const VgpudBed& bed, const char* method, const std::string& path, int status = 200) {
  const auto reply = tools::HttpRequest(bed.runtime_dir() + "/control.sock", method, path, "", 10s);
  EXPECT_TRUE(reply) << reply.error().context;
  if (!reply) return {};
  EXPECT_EQ(status, reply->status) << method << path << reply->body;
  return Json::parse(reply->body, nullptr, false);
}

uint16_t FreePort() {
  const UniqueFd probe{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof at;
  EXPECT_EQ(0, ::bind(probe.get(), reinterpret_cast<const sockaddr*>(&at), bytes));
  EXPECT_EQ(0, ::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&at), &bytes));
  return ntohs(at.sin_port);
}

// A vgpud with a metrics port.
class MetricsBed : public VgpudBed {
 public:
  MetricsBed() : MetricsBed(FreePort()) {}
  UniqueFd Connect() const {
    UniqueFd client{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port_);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // Who finds the queue full is as good as one that waits in it.
    const timeval soon{0, 10'000};
    ::setsockopt(client.get(), SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon);
    (void)::connect(client.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at);
    return client;
  }
  bool Scraped() const {
    const UniqueFd client = Connect();
    const std::string text = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    const timeval limit{5, 0};
    ::setsockopt(client.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    std::array<char, 12> start{};
    return ::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL) > 0 &&
           ::recv(client.get(), start.data(), start.size(), MSG_WAITALL) > 0 &&
           std::string_view(start.data(), start.size()) == "HTTP/1.1 200";
  }

 private:
  explicit MetricsBed(uint16_t port) : VgpudBed({"--metrics-listen", fmt::format("127.0.0.1:{}", port)}), port_(port) {}
  const uint16_t port_;
};

TEST(VgpudControl, SilentClientsOfTheMetricsPortTakeNothingFromTheOperator) {
  MetricsBed bed;
  // For those that are let in or refused at once, and the operator.
  AllowDescriptors(bed.pid(), Descriptors(bed.pid()) + 100);
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 60; ++i) silent.push_back(bed.Connect());
  EXPECT_TRUE(Eventually([&] { return bed.Log().find("connections already") != std::string::npos; }));
  const Finished listed = bed.Ctl({"list", "--timeout", "5"});
  EXPECT_EQ(0, listed.status) << listed.err;
  silent.clear();
  EXPECT_TRUE(Eventually([&] { return bed.Scraped(); }));
  EXPECT_LT(bed.Log().size(), 10'000u);
}

TEST(VgpudControl, WithoutDescriptorsItWaitsAndDoesNotFloodItsLog) {
  if (kSanitizerBuild) GTEST_SKIP() << "a sanitizer needs descriptors, too: it looks at memory through a pipe";
  MetricsBed bed;
  const rlim_t usual = AllowDescriptors(bed.pid(), Descriptors(bed.pid()) + 2);
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 10; ++i) silent.push_back(bed.Connect());
  EXPECT_TRUE(Eventually([&] { return bed.Log().find("Too many open files") != std::string::npos; }));
  AllowDescriptors(bed.pid(), usual);
  EXPECT_TRUE(bed.Scraped());
  EXPECT_EQ(1u, Count(bed.Log(), "Too many open files")) << bed.Log().substr(0, 2'000);
}

TEST(VgpudControl, ClientsThatSendAByteNowAndThenDoNotKeepTheOperatorOut) {
  VgpudBed bed;
  std::vector<UniqueFd> slow;
  const auto fill = [&] {
    while (slow.size() < 300) {
      auto client = ConnectUnix(bed.runtime_dir() + "/control.sock", SOCK_STREAM | SOCK_NONBLOCK);
      if (!client) return slow.size() > 256;  // the kernel's queue is full: of those that are not let in
      EXPECT_EQ(4, ::send(client->get(), "GET ", 4, MSG_NOSIGNAL));
      slow.push_back(std::move(*client));
    }
    return true;
  };
  ASSERT_TRUE(Eventually(fill));
  const Finished listed = bed.Ctl({"list", "--timeout", "60"});
  EXPECT_EQ(0, listed.status) << listed.err;
}

TEST(VgpudControl, SigtermWhileAVfIsBeingDestroyedEndsTheDaemon) {
  VgpudBed bed;
  ASSERT_EQ(0, bed.Ctl({"create", "a", "--vram", "64MiB"}).status);
  const std::vector<pid_t> children = bed.Children({});
  ASSERT_EQ(1u, children.size());
  ::kill(children[0], SIGSTOP);  // deaf to the order to end: the destruction takes a while
  std::thread destroying{[&] { EXPECT_EQ(0, bed.Ctl({"destroy", "a"}).status); }};
  EXPECT_TRUE(Eventually([&] { return Ask(bed, "GET", "/v1/vfs/a").value("state", "") == "closing"; }));
  ::kill(bed.pid(), SIGTERM);
  const std::string status = fmt::format("/proc/{}/status", bed.pid());
  const bool ended = Eventually([&] { return ReadFile(status).find("State:\tZ") != std::string::npos; });
  EXPECT_TRUE(ended);
  if (!ended) ::kill(bed.pid(), SIGKILL);
  destroying.join();
  EXPECT_EQ(0, bed.Stop());
}

TEST(VgpudControl, AbortedTracesLeaveNothingBehind) {
  VgpudBed bed;
  for (const char* name : {"a", "b"})
    ASSERT_EQ(0, bed.Ctl({"create", name, "--vram", "64MiB", "--slice", "100us"}).status);
  {
    const UniqueFd a = bed.OpenChannel("a"), b = bed.OpenChannel("b");
    // More than a socket holds.
    EXPECT_TRUE(Eventually([&] { return Ask(bed, "GET", "/v1/stats")["vfs"][0]["slices"].get<uint64_t>() > 3'000; }));
  }
  const auto abort_some = [&](int count) {
    for (int i = 0; i < count; ++i) {
      auto client = ConnectUnix(bed.runtime_dir() + "/control.sock", SOCK_STREAM);
      ASSERT_TRUE(client);
      const std::string text =
          fmt::format("GET /v1/trace?last_us=600000000 HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", std::string(15'000, 'x'));
      ASSERT_EQ(static_cast<ssize_t>(text.size()), ::send(client->get(), text.data(), text.size(), MSG_NOSIGNAL));
      char byte = 0;
      ASSERT_EQ(1, ::recv(client->get(), &byte, 1, 0));  // it has begun
    }
  };
  const auto resident_kib = [&] {
    const std::string status = ReadFile(fmt::format("/proc/{}/status", bed.pid()));
    return std::stoull(status.substr(status.find("VmRSS:") + 6));
  };
  abort_some(50);
  EXPECT_TRUE(Ask(bed, "GET", "/v1/vfs").is_object());
  const auto before = resident_kib();
  abort_some(600);
  EXPECT_TRUE(Ask(bed, "GET", "/v1/vfs").is_object());
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they keep what was freed
  EXPECT_LT(resident_kib(), before + 4'000) << "15 kB of each of 600 requests stay";
#else
  static_cast<void>(before);
#endif
}

TEST(VgpudControl, ABodyWhereNoneBelongsIsNotTakenForARequest) {
  VgpudBed bed;
  ASSERT_EQ(0, bed.Ctl({"create", "a", "--vram", "64MiB"}).status);
  const std::string smuggled = "DELETE /v1/vfs/a HTTP/1.1\r\nHost: x\r\n\r\n";
  auto client = ConnectUnix(bed.runtime_dir() + "/control.sock", SOCK_STREAM);
  ASSERT_TRUE(client);
  const std::string text =
      fmt::format("GET /v1/vfs HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", smuggled.size(), smuggled);
  ASSERT_EQ(static_cast<ssize_t>(text.size()), ::send(client->get(), text.data(), text.size(), MSG_NOSIGNAL));
  std::string answer;
  std::array<char, 4096> piece;
  for (ssize_t n; (n = ::recv(client->get(), piece.data(), piece.size(), 0)) > 0;)
    answer.append(piece.data(), static_cast<size_t>(n));
  EXPECT_NE(std::string::npos, answer.find("HTTP/1.1 400")) << answer;
  EXPECT_NE(std::string::npos, answer.find("takes no body")) << answer;
  EXPECT_EQ("ready", Ask(bed, "GET", "/v1/vfs/a")["state"]);
}

TEST(VgpudControl, AParameterThatARequestDoesNotTakeIsNamedAndNothingIsDone) {
  VgpudBed bed;
  ASSERT_EQ(0, bed.Ctl({"create", "a", "--vram", "64MiB"}).status);
  const struct {
    const char* method;
    const char* path;
    const char* field;
  } kWrong[] = {{"DELETE", "/v1/vfs/a?dry_run=1", "dry_run"}, {"POST", "/v1/vfs/a/reset?dry_run=1", "dry_run"},
                {"DELETE", "/v1/vfs/a?dry_run", ""},          {"POST", "/v1/vfs/a/pause?dryrun=1", "dryrun"},
                {"GET", "/v1/stats?name=a", "name"},          {"GET", "/v1/report?from=2026-01-01&day=5", "day"},
                {"GET", "/v1/stats?vf=a&vf=b", "vf"}};
  for (const auto& wrong : kWrong) {
    const Json answer = Ask(bed, wrong.method, wrong.path, 400);
    EXPECT_EQ(wrong.field, answer.value("field", "")) << answer;
    EXPECT_EQ("ready", Ask(bed, "GET", "/v1/vfs/a")["state"]) << wrong.path;
  }
}

TEST(VgpudControl, ARefusedChangeNamesTheFieldToBlame) {
  VgpudBed bed({"--policy", "reserve"});
  ASSERT_EQ(0, bed.Ctl({"create", "a", "--vram", "64MiB", "--guarantee", "0.5"}).status);
  const auto refused = [&](const char* method, const char* path, const Json& body) {
    const auto reply = tools::HttpRequest(bed.runtime_dir() + "/control.sock", method, path, body.dump(), 10s);
    EXPECT_TRUE(reply && reply->status == 409) << body;
    return reply ? Json::parse(reply->body, nullptr, false).value("field", "") : "";
  };
  EXPECT_EQ("limit", refused("PATCH", "/v1/vfs/a", {{"weight", 200}, {"limit", 0.25}}));
  EXPECT_EQ("policy", refused("PATCH", "/v1/gpu", {{"policy", "strict"}, {"base_slice_us", 1000}}));
  EXPECT_EQ("idle", refused("PATCH", "/v1/gpu", {{"idle", "hold"}}));
  EXPECT_EQ("guarantee", refused("POST", "/v1/vfs", {{"name", "b"}, {"weight", 200}, {"guarantee", 0.9}}));
}

TEST(VgpudControl, FlagsOutOfRangeStopTheStart) {
  const struct {
    std::vector<std::string> flags;
    const char* says;
  } kWrong[] = {{{"--floor-percent", "4294967301"}, "floor_percent 4294967301 is out of range"},
                {{"--max-wait-us", "18446744073709551615"}, "max_wait_us 18446744073709551615 is out of range"},
                {{"--base-slice-us", "1"}, "base_slice_us 1 is out of range"}};
  for (const auto& wrong : kWrong) {
    // If it starts all the same, the directory that cannot be ends it.
    std::vector<std::string> argv = {std::getenv("VGPUD"), "--runtime-dir", "/dev/null/none"};
    argv.insert(argv.end(), wrong.flags.begin(), wrong.flags.end());
    const Finished finished = RunProgram(argv);
    EXPECT_EQ(2, finished.status);
    EXPECT_NE(std::string::npos, finished.err.find(wrong.says)) << finished.err;
  }
}

TEST(VgpudControl, AnAddressWithoutAPortIsRefused) {
  VgpudBed bed;
  ASSERT_EQ(0, bed.Stop());
  for (const char* address : {"::1", "[::1]", "127.0.0.1", "127.0.0.1:0", "[::1]:0"}) {
    const Finished finished = RunProgram({"/usr/bin/timeout", "5", std::getenv("VGPUD"), "--runtime-dir",
                                          bed.runtime_dir(), "--metrics-listen", address});
    EXPECT_EQ(1, finished.status) << address;
    EXPECT_NE(std::string::npos, finished.err.find("is not an address and a port")) << finished.err;
  }
}

TEST(VgpudControl, TheUsageHistoryIsForTheDaemonAlone) {
  VgpudBed bed;
  const fs::path state = bed.runtime_dir() + "/state";
  EXPECT_EQ(static_cast<fs::perms>(0750), fs::status(state).permissions());
  EXPECT_EQ(static_cast<fs::perms>(0640), fs::status(state / "usage.db").permissions());
  ASSERT_EQ(0, bed.Stop());
  fs::rename(state / "usage.db", state / "elsewhere");
  fs::create_symlink(state / "elsewhere", state / "usage.db");
  bed.Start();
  EXPECT_NE(std::string::npos, bed.Log().find("usage.db: it is a link")) << bed.Log();
  ASSERT_EQ(0, bed.Stop());
  fs::remove(state / "usage.db");
  if (::geteuid() != 0) return;
  ASSERT_EQ(0, ::chown(state.c_str(), 12345, static_cast<gid_t>(-1)));
  bed.Start();
  EXPECT_NE(std::string::npos, bed.Log().find("belongs to uid 12345")) << bed.Log();
}

TEST(VgpudControl, AReportOfManyDaysComesDayByDay) {
  VgpudBed bed;
  ASSERT_EQ(0, bed.Ctl({"create", "a", "--vram", "64MiB"}).status);
  const Json report = Ask(bed, "GET", "/v1/report?from=2026-01-01&to=2026-12-31");
  EXPECT_EQ("2026-01-01", report.value("from", "")) << report;
  EXPECT_TRUE(report.contains("rows") && report["rows"].is_array()) << report;
  const Json today = Ask(bed, "GET", "/v1/report");
  ASSERT_EQ(1u, today["rows"].size()) << today;
  EXPECT_EQ("a", today["rows"][0]["name"]);
}

}  // namespace
}  // namespace vgpud::daemon
