// SPDX-License-Identifier: Apache-2.0
// The control API over its socket, on a daemon without VFs: which requests there are, what each kind of bad one is
// answered, and what the port for Prometheus answers.
#include <arpa/inet.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/unit/vgpud/control/control_rig.h"

namespace vgpud::daemon {
namespace {

TEST_F(ControlTest, EachRouteAnswersItsMethodsAndNoOthers) {
  const struct {
    const char* path;
    std::map<std::string, int> answers;  // without a body; what is not named is 405
  } kRoutes[] = {
      {"/v1/vfs", {{"GET", 200}, {"POST", 400}}},
      {"/v1/vfs/a", {{"GET", 404}, {"PATCH", 400}, {"DELETE", 404}}},
      {"/v1/vfs/a/reset", {{"POST", 404}}},
      {"/v1/vfs/a/pause", {{"POST", 404}}},
      {"/v1/vfs/a/resume", {{"POST", 404}}},
      {"/v1/stats", {{"GET", 200}}},
      {"/v1/gpu", {{"GET", 200}, {"PATCH", 400}}},
      {"/v1/settings", {{"PATCH", 400}}},
      {"/metrics", {{"GET", 200}}},
      {"/v1/report", {{"GET", 200}}},
      {"/v1/trace", {{"GET", 400}}},
      {"/v1/events", {{"GET", 200}}},
      {"/v1/processes", {{"GET", 200}}},
      {"/v1/vfs/a/log", {{"GET", 404}}},
      {"/v1/vfs/a/wait", {{"GET", 400}}},
  };
  for (const auto& route : kRoutes)
    for (const char* method : {"GET", "POST", "PATCH", "DELETE"}) {
      const auto it = route.answers.find(method);
      const Answer reply = Ask(method, route.path);
      EXPECT_EQ(it != route.answers.end() ? it->second : 405, reply.status) << method << route.path << reply.body;
      if (it == route.answers.end()) {
        EXPECT_EQ(fmt::format("{} does not take this method", route.path), reply.error());
      }
    }
  for (const char* path : {"/", "/v1", "/v1/vf", "/v1/vfsx", "/v1/vfs/", "/v1/vfs/a/b", "/v1/vfs//reset",
                           "/v1/vfs/a/resets", "/v1/vfs/a/b/reset", "/v2/vfs", "/metrics/"}) {
    const Answer reply = Ask("GET", path);
    EXPECT_EQ(404, reply.status) << path;
    EXPECT_EQ(fmt::format("there is no {}", path), reply.error());
  }
  for (const char* method : {"PUT", "HEAD", "OPTIONS", "TRACE"})
    EXPECT_EQ(501, Ask(method, "/v1/vfs").status) << method;
}

TEST_F(ControlTest, WhatIsReadWithoutAVf) {
  const Answer list = Ask("GET", "/v1/vfs");
  EXPECT_EQ((Json{{"apiVersion", "vgpud/v1"}, {"vfs", Json::array()}}), list.json());
  EXPECT_NE(std::string::npos, list.head.find("Content-Type: application/json\r\n")) << list.head;
  const Json gpu = Ask("GET", "/v1/gpu").json();
  EXPECT_EQ("soft0", gpu["name"]);
  EXPECT_EQ("soft", gpu["kind"]);
  EXPECT_EQ("7.5", gpu["compute_capability"]);
  EXPECT_EQ(0, gpu["vfs"]);
  EXPECT_EQ(12'000, gpu["preempt_timeout_us"]);
  EXPECT_EQ(0, gpu["switch_cost_ns"]);
  EXPECT_EQ(false, gpu["scheduler_fifo"]);
  EXPECT_EQ(11u, gpu["protections"].size());
  const Json stats = Ask("GET", "/v1/stats").json();
  EXPECT_EQ("on", stats["history"]["state"]);
  EXPECT_EQ(65'536, stats["trace"]["capacity"]);
  EXPECT_EQ(0, stats["trace"]["turns"]);
  EXPECT_EQ(Json::array(), stats["vfs"]);
  const Answer metrics = Ask("GET", "/metrics");
  EXPECT_NE(std::string::npos, metrics.head.find("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  EXPECT_NE(std::string::npos, metrics.body.find("\nvgpud_history_up{gpu=\"soft0\"} 1\n"));
}

TEST_F(ControlTest, OfAVfThatThereIsNotNothingIsChanged) {
  for (const auto& [method, path, body] : std::vector<std::array<const char*, 3>>{
           {"PATCH", "/v1/vfs/a", R"({"weight": 5})"},
           {"PATCH", "/v1/settings", R"({"gpu": {"idle": "hold"}, "vfs": {"a": {"weight": 5}}})"},
           {"GET", "/v1/stats?vf=a", ""},
           {"POST", "/v1/vfs/a/pause?dry_run=1", ""}}) {
    const Answer reply = Ask(method, path, body);
    EXPECT_EQ(404, reply.status) << path;
    EXPECT_EQ("there is no vf \"a\" (see: vgpuctl list)", reply.error()) << path;
  }
  EXPECT_EQ("yield", Ask("GET", "/v1/gpu").json()["idle"]);
}

TEST_F(ControlTest, TheGpuIsChangedOrOnlyWeighed) {
  const Answer weighed = Ask("PATCH", "/v1/gpu?dry_run=1", R"({"base_slice_us": 1000})");
  EXPECT_EQ(200, weighed.status);
  EXPECT_EQ(true, weighed.json()["dry_run"]);
  EXPECT_EQ(2000, Ask("GET", "/v1/gpu").json()["base_slice_us"]);
  const Answer changed = Ask("PATCH", "/v1/gpu?dry_run=0", R"({"base_slice_us": 1000, "policy": "relaxed"})");
  EXPECT_EQ(200, changed.status);
  EXPECT_EQ(false, changed.json()["dry_run"]);
  EXPECT_EQ(1000, changed.json()["gpu"]["base_slice_us"]);
  EXPECT_EQ("relaxed", Ask("GET", "/v1/gpu").json()["policy"]);
  const Answer all = Ask("PATCH", "/v1/settings", R"({"gpu": {"idle": "hold"}})");
  EXPECT_EQ(200, all.status);
  EXPECT_EQ(1u, all.json()["changes"].size());
  const Answer refused = Ask("PATCH", "/v1/gpu", R"({"min_slice_us": 30000})");
  EXPECT_EQ(409, refused.status);
  EXPECT_EQ("min_slice_us", refused.field());
  const Answer invalid = Ask("PATCH", "/v1/gpu", R"({"min_slice_us": 1})");
  EXPECT_EQ(400, invalid.status);
  EXPECT_EQ("min_slice_us", invalid.field());
}

TEST_F(ControlTest, AVfIsWeighedBeforeThereIsOne) {
  const Answer weighed = Ask("POST", "/v1/vfs?dry_run=1", R"({"name": "a", "weight": 300})");
  EXPECT_EQ(200, weighed.status);
  EXPECT_EQ(Json::parse(R"([{"vf": "a", "field": "share", "old": 0.0, "new": 1.0}])"), weighed.json()["effects"]);
  EXPECT_EQ(Json::array(), weighed.json()["changes"]);
  const Answer refused = Ask("POST", "/v1/vfs?dry_run=1", R"({"name": "a", "weight": 300, "guarantee": 0.5})");
  EXPECT_EQ(409, refused.status);
  EXPECT_EQ("guarantee", refused.field());
  EXPECT_EQ(400, Ask("POST", "/v1/vfs?dry_run=1", R"({"name": "A"})").status);
  EXPECT_EQ(Json::array(), Ask("GET", "/v1/vfs").json()["vfs"]);
}

TEST_F(ControlTest, AProgramThatDoesNotServeIsNoVf) {
  for (const char* program : {"/bin/false", "/nowhere/vgpud-vf"}) {
    config_.vf_program = program;
    control_.reset();
    vfs_.reset();
    vfs_ = *VfService::Make({loop_, replies_, config_, confinement_, *cgroups_, mover_});
    control_ = *Control::Serve(loop_, Control::Served(*vfs_), socket());
    fs::create_directory(config_.runtime_dir + "/vf");
    const Answer failed = Ask("POST", "/v1/vfs", R"({"name": "a", "transient": true})");
    EXPECT_EQ(500, failed.status) << failed.body;
    EXPECT_TRUE(failed.error().starts_with("vf \"a\" did not start: ")) << failed.error();
    EXPECT_EQ(Json::array(), Ask("GET", "/v1/vfs").json()["vfs"]) << "it is not kept";
  }
}

TEST_F(ControlTest, WhoStopsTakesNoNewVfs) {
  bool closed = false;
  vfs_->Close([&] { closed = true; });
  const Answer reply = Ask("POST", "/v1/vfs", R"({"name": "a"})");
  EXPECT_EQ(503, reply.status);
  EXPECT_EQ("vgpud is stopping", reply.error());
  while (!closed) (void)Ask("GET", "/v1/vfs");
}

struct ParameterCase {
  const char* method;
  const char* path;
  const char* field;
  const char* says;
};
constexpr ParameterCase kParameters[] = {
    {"GET", "/v1/vfs?x=1", "x", "unknown parameter \"x\": this request takes none; nothing was done"},
    {"GET", "/v1/report?from=2026-01-01&f=2", "f", "this request takes from to; nothing was done"},
    {"GET", "/v1/report?fro=2026-01-01", "fro", "unknown parameter"},
    {"GET", "/v1/stats?vf=a&vf=a", "vf", "parameter vf is given twice"},
    {"GET", "/v1/vfs?0123456789012345678901234567890123456789x=1", "0123456789012345678901234567890123456789",
     "\"0123456789012345678901234567890123456789\": this"},
    {"GET", "/v1/vfs?x", "", "is not KEY=VALUE"},
    {"PATCH", "/v1/gpu?dry_run=2", "dry_run", "dry_run 2 is unknown: allowed is 0 or 1"},
    {"PATCH", "/v1/gpu?dry_run=yes", "dry_run", "dry_run yes is unknown"},
    {"GET", "/v1/trace", "last_us", "last_us (missing) is not a number of microseconds in 1..600000000 (10 minutes)"},
    {"GET", "/v1/trace?last_us=0", "last_us", "last_us 0 is not"},
    {"GET", "/v1/trace?last_us=600000001", "last_us", "last_us 600000001 is not"},
    {"GET", "/v1/trace?last_us=5x", "last_us", "last_us 5x is not"},
    {"GET", "/v1/trace?last_us=-5", "last_us", "last_us -5 is not"},
    {"GET", "/v1/trace?last_us=99999999999999999999", "last_us", "is not a number"},
    {"GET", "/v1/report?from=x", "from", "from \"x\" is not a day"},
    {"GET", "/v1/report?from=2026-01-01&to=2026-02-30", "to", "to \"2026-02-30\" is not a day"},
    {"GET", "/v1/report?from=2026-01-02&to=2026-01-01", "from", "from 2026-01-02 is after to 2026-01-01"},
    {"GET", "/v1/report?from=2024-01-01&to=2025-02-04", "to", "are 401 days, more than 400: ask for fewer at once"},
};

TEST_F(ControlTest, AParameterThatIsWrongIsNamed) {
  for (const ParameterCase& c : kParameters) {
    const Answer reply = Ask(c.method, c.path);
    EXPECT_EQ(400, reply.status) << c.path;
    EXPECT_EQ(c.field, reply.field()) << c.path;
    EXPECT_NE(std::string::npos, reply.error().find(c.says)) << c.path << reply.error();
  }
}

TEST_F(ControlTest, ParametersAtTheirEdges) {
  for (const char* path :
       {"/v1/trace?last_us=1", "/v1/trace?last_us=600000000", "/v1/report?from=2024-01-01&to=2025-02-03",
        "/v1/report?from=2024-01-01&to=2024-01-01", "/v1/vfs?", "/v1/stats?vf="}) {
    const Answer reply = Ask("GET", path);
    EXPECT_EQ(200, reply.status) << path << reply.body;
    EXPECT_TRUE(reply.json().is_object()) << path << reply.body;
  }
}

TEST_F(ControlTest, AReportIsOfTheDaysThatWereAskedFor) {
  const auto days = [&](const std::string& query) {
    const Json report = Ask("GET", "/v1/report" + query).json();
    return report.value("from", "") + " " + report.value("to", "");
  };
  EXPECT_EQ("2026-01-01 2026-01-03", days("?from=2026-01-01&to=2026-01-03"));
  EXPECT_EQ("2026-01-01 2026-01-01", days("?from=2026-01-01"));
  EXPECT_EQ("2026-01-03 2026-01-03", days("?to=2026-01-03"));
  EXPECT_EQ(21u, days("").size());
}

TEST_F(ControlTest, AGetHasNoBody) {
  const std::string get = "GET /v1/vfs HTTP/1.1\r\nHost: x\r\n";
  for (const char* header : {"Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"}) {
    const Answer reply = Raw(get + header);
    EXPECT_EQ(400, reply.status) << header;
    EXPECT_EQ("a GET request takes no body: send it without one", reply.error());
    EXPECT_NE(std::string::npos, reply.head.find("Connection: close\r\n")) << reply.head;
  }
  EXPECT_EQ(200, Raw(get + "Connection: close\r\nContent-Length: 0\r\n\r\n").status);
}

TEST_F(ControlTest, RequestsHaveTheirLimits) {
  const std::string body = R"({"name": "A"})";
  const auto post = [&](size_t bytes) {
    return Ask("POST", "/v1/vfs", body + std::string(bytes - body.size(), ' ')).status;
  };
  EXPECT_EQ(400, post(65'536));
  EXPECT_EQ(413, post(65'537));
  const auto head = [&](size_t bytes) {
    const std::string start = "GET /v1/vfs HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX: ";
    return Raw(start + std::string(bytes - start.size() - 4, 'x') + "\r\n\r\n").status;
  };
  EXPECT_EQ(200, head(16'300));
  EXPECT_NE(200, head(16'500));
}

TEST_F(ControlTest, AConnectionServesOneRequestAfterTheOther) {
  const std::string get = "GET /v1/vfs HTTP/1.1\r\nHost: x\r\n";
  const std::string answers =
      Exchange(*ConnectUnix(socket(), SOCK_STREAM | SOCK_NONBLOCK), get + "\r\n" + get + "Connection: close\r\n\r\n");
  size_t count = 0;
  for (size_t at = 0; (at = answers.find("HTTP/1.1 200", at)) != std::string::npos; ++at) ++count;
  EXPECT_EQ(2u, count) << answers;
}

TEST_F(ControlTest, TheSocketIsForTheDaemonsUserAndGroup) {
  struct stat st {};
  ASSERT_EQ(0, ::stat(socket().c_str(), &st));
  EXPECT_EQ(0660u, st.st_mode & 0777u);
}

TEST_F(ControlTest, ThePortForPrometheusAnswersMetricsAlone) {
  for (const int family : {AF_INET, AF_INET6}) {
    UniqueFd probe{::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    sockaddr_storage at{};
    at.ss_family = static_cast<sa_family_t>(family);
    if (family == AF_INET)
      reinterpret_cast<sockaddr_in&>(at).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else
      reinterpret_cast<sockaddr_in6&>(at).sin6_addr = in6addr_loopback;
    socklen_t bytes = sizeof at;
    if (!probe || ::bind(probe.get(), reinterpret_cast<const sockaddr*>(&at),
                         family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6)) != 0)
      continue;
    ASSERT_EQ(0, ::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&at), &bytes));
    probe.Reset();
    const uint16_t port = ntohs(family == AF_INET ? reinterpret_cast<sockaddr_in&>(at).sin_port
                                                  : reinterpret_cast<sockaddr_in6&>(at).sin6_port);
    auto served = Control::ServeMetrics(loop_, Control::Served(*vfs_),
                                        fmt::format("{}:{}", family == AF_INET ? "127.0.0.1" : "[::1]", port));
    ASSERT_TRUE(served) << served.error().context;
    metrics_ = std::move(*served);
    const auto get = [&](const char* method, const char* path) {
      UniqueFd client{::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
      EXPECT_EQ(0, ::connect(client.get(), reinterpret_cast<const sockaddr*>(&at), bytes));
      return Parse(Exchange(client, fmt::format("{} {} HTTP/1.1\r\nHost: x\r\n\r\n", method, path)));
    };
    const Answer metrics = get("GET", "/metrics");
    EXPECT_EQ(200, metrics.status);
    EXPECT_NE(std::string::npos, metrics.head.find("Connection: close\r\n")) << "one request for each connection";
    EXPECT_NE(std::string::npos, metrics.body.find("vgpud_gpu_vfs{gpu=\"soft0\"} 0"));
    for (const char* path : {"/v1/vfs", "/v1/stats", "/v1/gpu", "/v1/report", "/"})
      EXPECT_EQ(404, get("GET", path).status) << path;
    for (const char* method : {"POST", "PATCH", "DELETE"}) EXPECT_EQ(501, get(method, "/metrics").status) << method;
    EXPECT_NE(std::string::npos, Ask("GET", "/metrics").body.find("vgpud_gpu_vfs{gpu=\"soft0\"} 0"))
        << "the socket answers too";
    const auto taken = Control::ServeMetrics(loop_, Control::Served(*vfs_),
                                             fmt::format("{}:{}", family == AF_INET ? "127.0.0.1" : "[::1]", port));
    ASSERT_FALSE(taken);
    EXPECT_EQ(std::errc::address_in_use, taken.error().code);
    EXPECT_NE(std::string::npos, taken.error().context.find("cannot listen there")) << taken.error().context;
  }
}

TEST_F(ControlTest, AnAddressNeedsAPort) {
  for (const char* address : {"127.0.0.1", "127.0.0.1:0", "[::1]", "[::1]:0", "::1", "x:1", "127.0.0.1:99999", ""}) {
    const auto served = Control::ServeMetrics(loop_, Control::Served(*vfs_), address);
    ASSERT_FALSE(served) << address;
    EXPECT_EQ(std::errc::invalid_argument, served.error().code) << address;
  }
}

class ControlWithoutHistoryTest : public ControlTest {
 protected:
  ControlWithoutHistoryTest() : ControlTest("/dev/null/none") {}
};

TEST_F(ControlWithoutHistoryTest, ReportsAreUnavailableAndTheRestIsNot) {
  const Answer report = Ask("GET", "/v1/report");
  EXPECT_EQ(503, report.status);
  const Json history = Ask("GET", "/v1/stats").json()["history"];
  EXPECT_EQ("off", history["state"]);
  EXPECT_EQ(report.error(), history["error"]);
  EXPECT_EQ("/dev/null/none/usage.db", history["path"]);
  EXPECT_NE(std::string::npos, Ask("GET", "/metrics").body.find("\nvgpud_history_up{gpu=\"soft0\"} 0\n"));
}

}  // namespace
}  // namespace vgpud::daemon
