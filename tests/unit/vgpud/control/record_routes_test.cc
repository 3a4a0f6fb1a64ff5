// SPDX-License-Identifier: Apache-2.0
// Events and lines of logs over the control socket: all at once, and as they come.
#include <thread>

#include "tests/unit/vgpud/control/control_rig.h"
#include "vgpud/events/chronicle.h"

namespace vgpud::daemon {
namespace {

class RecordRoutesTest : public ControlTest {
 protected:
  static std::string Get(const std::string& path) { return fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", path); }
  // A client that follows `path`, and what it has got so far.
  struct Client {
    UniqueFd fd;
    std::string got;
    bool ended = false;
  };
  Client Follow(const std::string& path) {
    Client client{*ConnectUnix(socket(), SOCK_STREAM | SOCK_NONBLOCK), {}};
    const std::string request = Get(path);
    EXPECT_EQ(static_cast<ssize_t>(request.size()), ::send(client.fd.get(), request.data(), request.size(), 0));
    return client;
  }
  // Serves until the client has got `text`, or its connection has ended.
  void ServeUntil(Client* client, const std::string& text) {
    const auto reader = loop_.OnReadable(client->fd.get(), [&] {
      std::array<char, 65536> piece;
      const ssize_t n = ::recv(client->fd.get(), piece.data(), piece.size(), 0);
      if (n > 0) client->got.append(piece.data(), static_cast<size_t>(n));
      client->ended = n <= 0;
      if (n <= 0 || client->got.find(text) != std::string::npos) loop_.Stop();
    });
    if (client->got.find(text) == std::string::npos && !client->ended) loop_.Run();
    EXPECT_NE(std::string::npos, client->got.find(text)) << client->got;
  }
  const Chronicle& chronicle() { return vfs_->chronicle(); }
};

TEST_F(RecordRoutesTest, EventsAreListedWithNumbers) {
  EXPECT_EQ((Json{{"apiVersion", "vgpud/v1"}, {"events", Json::array()}, {"missed", 0}, {"next", 0}}),
            Ask("GET", "/v1/events").json());
  chronicle().Add({.kind = event_kind::kReset, .vf = "a", .gpu = "soft0", .by = "user 7", .unix_ms = 5});
  chronicle().Add({.kind = event_kind::kFault, .vf = "b", .pid = 9, .text = "error=700", .unix_ms = 6});
  EXPECT_EQ((Json::array(
                {{{"number", 1}, {"unix_ms", 5}, {"kind", "reset"}, {"vf", "a"}, {"gpu", "soft0"}, {"by", "user 7"}},
                 {{"number", 2}, {"unix_ms", 6}, {"kind", "fault"}, {"vf", "b"}, {"pid", 9}, {"text", "error=700"}}})),
            Ask("GET", "/v1/events").json()["events"]);
  EXPECT_EQ(2, Ask("GET", "/v1/events?vf=b").json()["events"][0]["number"]);
  EXPECT_EQ(1u, Ask("GET", "/v1/events?after=1").json()["events"].size());
  for (const char* path : {"/v1/events?after=x", "/v1/events?after=-1", "/v1/events?follow=2", "/v1/events?last=1",
                           "/v1/events?after=99999999999999999999"})
    EXPECT_EQ(400, Ask("GET", path).status) << path;
  EXPECT_EQ(405, Ask("POST", "/v1/events").status);
}

TEST_F(RecordRoutesTest, AChangeIsAnEventWithOldAndNewValueAndWho) {
  ASSERT_EQ(200, Ask("PATCH", "/v1/gpu?dry_run=1", R"({"base_slice_us": 3000})").status);
  EXPECT_TRUE(Ask("GET", "/v1/events").json()["events"].empty());
  ASSERT_EQ(200, Ask("PATCH", "/v1/gpu", R"({"base_slice_us": 3000})").status);
  const Json event = Ask("GET", "/v1/events").json()["events"][0];
  EXPECT_EQ("changed", event["kind"]);
  EXPECT_EQ("soft0", event["gpu"]);
  EXPECT_EQ(fmt::format("user {}", ::getuid()), event["by"]);
  EXPECT_EQ("base_slice_us", event["changes"][0]["field"]);
  EXPECT_EQ(3000, event["changes"][0]["new"]);
  EXPECT_NE(3000, event["changes"][0]["old"]);
}

TEST_F(RecordRoutesTest, AFollowerGetsWhatIsThereAndThenEachAsItComes) {
  chronicle().Add({.kind = event_kind::kCreated, .vf = "a"});
  Client client = Follow("/v1/events?follow=1");
  ServeUntil(&client, "\"created\"");
  EXPECT_NE(std::string::npos, client.got.find("Content-Type: application/x-ndjson\r\n")) << client.got;
  std::thread log([this] { chronicle().Heard("a", "soft0", 3, "x: guest kernel failed: error=719 trap"); });
  ServeUntil(&client, "error=719 trap");
  log.join();
  EXPECT_EQ(std::string::npos, client.got.find("missed"));
  // One without anything new is shown that vgpud lives, and not closed.
  ServeUntil(&client, "\r\n1\r\n\n\r\n1\r\n\n\r\n1\r\n\n");
  chronicle().Add({.kind = event_kind::kDestroyed, .vf = "a"});
  ServeUntil(&client, "\"destroyed\"");
}

TEST_F(RecordRoutesTest, OneWhoDoesNotReadIsToldHowManyItMissed) {
  Client client = Follow("/v1/events?follow=1&vf=a");
  chronicle().Add({.kind = event_kind::kCreated, .vf = "a"});
  ServeUntil(&client, "\"created\"");
  // More than sockets and the list hold.
  const std::string text(2000, 'x');
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 100; ++i) chronicle().Add({.kind = event_kind::kFault, .vf = "a", .text = text});
    const auto soon = loop_.Timer([this] { loop_.Stop(); });
    soon->Arm(1ms);
    loop_.Run();
  }
  chronicle().Add({.kind = event_kind::kDestroyed, .vf = "a"});
  ServeUntil(&client, "\"destroyed\"");
  uint64_t missed = 0, got = 0;
  for (size_t at = 0; (at = client.got.find("{\"missed\":", at)) != std::string::npos; ++at)
    missed += std::stoul(client.got.substr(at + 10));
  for (size_t at = 0; (at = client.got.find("\"kind\":\"fault\"", at)) != std::string::npos; ++at) ++got;
  EXPECT_GT(missed, 0u);
  EXPECT_EQ(4000u, missed + got);
}

TEST_F(RecordRoutesTest, AUserHasSoManyFollowers) {
  ClientLimits limits;
  limits.sharer = [](int) { return Sharer{"user 1"}; };
  limits.followers = {.what = "followers", .each = 2, .all = 3};
  Serve(limits);
  chronicle().Add({.kind = event_kind::kCreated, .vf = "a"});
  Client one = Follow("/v1/events?follow=1"), other = Follow("/v1/events?follow=1");
  ServeUntil(&one, "\"created\"");
  ServeUntil(&other, "\"created\"");
  const Answer third = Ask("GET", "/v1/events?follow=1");
  EXPECT_EQ(429, third.status) << third.error();
  one.fd.Reset();
  Client again = Follow("/v1/events?follow=1");
  while (again.got.find("\"created\"") == std::string::npos) {
    ServeUntil(&again, "\r\n\r\n");
    if (again.got.find("429") == std::string::npos) break;
    again = Follow("/v1/events?follow=1");  // the place is free when libevent has heard of the end
  }
  ServeUntil(&again, "\"created\"");
}

TEST_F(RecordRoutesTest, LinesOfAVfAreThereAlsoWhenItIsGone) {
  EXPECT_EQ(404, Ask("GET", "/v1/vfs/a/log").status);
  EXPECT_EQ(404, Ask("GET", "/v1/vfs/a/log?follow=1").status);
  chronicle().Heard("a", "soft0", 3, "vgpud-vf[a]: info: one");
  chronicle().Heard("b", "soft0", 4, "vgpud-vf[b]: info: other");
  const Json lines = Ask("GET", "/v1/vfs/a/log").json()["lines"];
  ASSERT_EQ(1u, lines.size());
  EXPECT_EQ("vgpud-vf[a]: info: one", lines[0]["text"]);
  EXPECT_EQ(3, lines[0]["pid"]);
  Client client = Follow("/v1/vfs/a/log?follow=1");
  ServeUntil(&client, "info: one");
  chronicle().Heard("b", "soft0", 4, "vgpud-vf[b]: info: not this");
  chronicle().Heard("a", "soft0", 3, "vgpud-vf[a]: info: two");
  ServeUntil(&client, "info: two");
  EXPECT_EQ(std::string::npos, client.got.find("not this"));
}

TEST_F(RecordRoutesTest, WaitingForAVf) {
  EXPECT_EQ((Json{{"apiVersion", "vgpud/v1"}, {"name", "a"}, {"state", "gone"}}),
            Ask("GET", "/v1/vfs/a/wait?for=gone").json());
  EXPECT_EQ(404, Ask("GET", "/v1/vfs/a/wait?for=idle").status);
  const Answer late = Ask("GET", "/v1/vfs/a/wait?for=ready&timeout_ms=60");
  EXPECT_EQ(504, late.status);
  EXPECT_EQ("vf \"a\" is not ready after 60 ms: there is no such VF", late.error());
  for (const char* path : {"?for=busy", "", "?for=ready&timeout_ms=x", "?for=ready&timeout_ms=99999999999"})
    EXPECT_EQ(400, Ask("GET", std::string("/v1/vfs/a/wait") + path).status) << path;
  // One that leaves, and one that still waits when vgpud ends.
  Follow("/v1/vfs/a/wait?for=ready").fd.Reset();
  const Client waits = Follow("/v1/vfs/a/wait?for=ready");
  EXPECT_EQ(200, Ask("GET", "/v1/vfs").status);
}

}  // namespace
}  // namespace vgpud::daemon
