// SPDX-License-Identifier: Apache-2.0
// What one user of the control API has of it, beside what others have.
#include <event2/event.h>
#include <malloc.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "base/log.h"
#include "tests/unit/vgpud/control/control_rig.h"
#include "vgpud/tenants/tenants.h"

namespace vgpud::daemon {
namespace {

// Clients are of a user without privileges, who has less than usual.
class ControlSharesTest : public ControlTest {
 protected:
  static ClientLimits OfUser() {
    ClientLimits limits;
    limits.sharer = [](int) { return Sharer{"user 7"}; };
    return limits;
  }
  static RateLimit OneRequestPer(uint32_t per_second) {
    return {
        .what = "requests", .each_per_second = per_second, .each_at_once = 1, .all_per_second = 0, .all_at_once = 0};
  }
  void ServeUntil(const std::function<bool()>& is_so) {
    for (const TimePoint end = Now() + 30s; !is_so() && Now() < end;) event_base_loop(loop_.base(), EVLOOP_NONBLOCK);
    ASSERT_TRUE(is_so());
  }
  static auto Descriptors() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  }
};

TEST_F(ControlSharesTest, WhoHasNoPlaceIsToldWhyAndClosedAtOnce) {
  ClientLimits limits = OfUser();
  limits.connections = {.what = "connections", .each = 2, .all = 4, .reserved = 1};
  bool is_root = false;
  limits.sharer = [&is_root](int) { return is_root ? Sharer{"user 0", true} : Sharer{"user 7"}; };
  Serve(limits);
  std::vector<UniqueFd> held;
  for (int i = 0; i < 2; ++i) held.push_back(*ConnectUnix(socket(), SOCK_STREAM | SOCK_NONBLOCK));
  const Answer refused = Raw("");
  EXPECT_EQ(503, refused.status);
  EXPECT_EQ("user 7 has 2 connections already, the most that one may have: wait until one of them ends",
            refused.error());
  is_root = true;
  EXPECT_EQ(200, Ask("GET", "/v1/vfs").status) << "the others have their own";
  is_root = false;
  held.pop_back();
  EXPECT_EQ(200, Ask("GET", "/v1/vfs").status);
}

TEST_F(ControlSharesTest, WhoHasNoneGetsAPlaceOfWhoHasMost) {
  ClientLimits limits;
  limits.connections = {.what = "connections", .each = 3, .all = 5, .reserved = 1};
  std::string name = "user 7";
  limits.sharer = [&name](int) { return Sharer{name}; };
  Serve(limits);
  const auto come = [this] { return *ConnectUnix(socket(), SOCK_STREAM | SOCK_NONBLOCK); };
  const auto has_left = [](const UniqueFd& client) {
    char next = 0;
    return ::recv(client.get(), &next, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
  };
  std::vector<UniqueFd> of_7;
  for (int i = 0; i < 3; ++i) of_7.push_back(come());
  EXPECT_EQ(503, Raw("").status);
  name = "user 8";
  const UniqueFd of_8 = come();
  EXPECT_EQ(503, Raw("").status) << "has one";
  EXPECT_EQ(0, std::count_if(of_7.begin(), of_7.end(), has_left));
  name = "user 9";
  EXPECT_EQ(200, Ask("GET", "/v1/vfs").status);
  EXPECT_EQ(1, std::count_if(of_7.begin(), of_7.end(), has_left));
  EXPECT_FALSE(has_left(of_8));
}

TEST_F(ControlSharesTest, MoreConnectionsThanAreLetInAtOnceAreAllAnswered) {
  ClientLimits limits = OfUser();
  limits.connections = {.what = "connections", .each = 3, .all = 500};
  Serve(limits);
  std::vector<UniqueFd> held;
  for (int i = 0; i < 300; ++i) held.push_back(*ConnectUnix(socket(), SOCK_STREAM | SOCK_NONBLOCK));
  EXPECT_EQ(503, Raw("").status) << "it is behind all of them";
  size_t refused = 0;
  for (const UniqueFd& client : held) {
    char first = 0;
    refused += ::recv(client.get(), &first, 1, MSG_DONTWAIT) == 1;
  }
  EXPECT_EQ(297u, refused);
}

TEST_F(ControlSharesTest, ACrowdThatLeavesAtOnceKeepsNobodyOut) {
  ClientLimits limits;
  limits.connections = {.what = "connections", .each = 100, .all = 500};
  Serve(limits);
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 130; ++i) {
      const UniqueFd client = *ConnectUnix(socket(), SOCK_STREAM | SOCK_NONBLOCK);
      if (i % 2 == 0) (void)!::send(client.get(), "GET /v1/vfs HTTP/1.1\r\n\r\n", 24, MSG_NOSIGNAL);
    }
    ASSERT_EQ(200, Ask("GET", "/v1/vfs").status) << round;
  }
}

TEST_F(ControlSharesTest, RequestsWaitForTheRateOfTheirUser) {
  ClientLimits limits = OfUser();
  limits.requests = {
      .what = "requests", .each_per_second = 10, .each_at_once = 1, .all_per_second = 0, .all_at_once = 0};
  Serve(limits);
  const TimePoint start = Now();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(200, Ask("GET", "/v1/vfs").status);
  EXPECT_GE(Now() - start, 300ms);
}

// User 8 comes and goes. Each time that makes room for a connection of user 7, whose requests wait for their rate, and
// each time one of those has to go.
TEST_F(ControlSharesTest, WhoHadToGoKeepsNoDescriptor) {
  ClientLimits limits;
  limits.connections = {.what = "connections", .each = 3, .all = 4, .reserved = 1};
  limits.requests = {
      .what = "requests", .each_per_second = 1, .each_at_once = 1, .all_per_second = 0, .all_at_once = 0};
  std::string name;
  size_t let_in = 0;
  limits.sharer = [&](int) {
    ++let_in;
    return Sharer{name};
  };
  Serve(limits);
  const auto serve = [this] {
    for (int i = 0; i < 10; ++i) event_base_loop(loop_.base(), EVLOOP_NONBLOCK);
  };
  const auto come_and_go = [&](const std::string& who, const std::string& requests) {
    name = who;
    UniqueFd client = *ConnectUnix(socket(), SOCK_STREAM | SOCK_NONBLOCK);
    EXPECT_EQ(static_cast<ssize_t>(requests.size()),
              ::send(client.get(), requests.data(), requests.size(), MSG_NOSIGNAL));
    for (const size_t before = let_in; let_in == before;) serve();
    client.Reset();
    serve();
  };
  std::string requests;
  for (int i = 0; i < 1000; ++i) requests += "GET /v1/vfs HTTP/1.1\r\n\r\n";
  for (int i = 0; i < 3; ++i) come_and_go("user 7", requests);
  const auto full = Descriptors();
  for (int round = 0; round < 50; ++round) {
    come_and_go("user 8", "");
    come_and_go("user 7", requests);
  }
  EXPECT_LE(Descriptors(), full + 1);
}

// A client that has sent more behind its request than libevent reads ahead: libevent does not hear when it leaves.
const std::string kMoreBehind = "GET /v1/vfs HTTP/1.1\r\nX: " + std::string(20'000, 'x');

// Each of these requests waits a second longer than the one before it.
TEST_F(ControlSharesTest, AClientThatLeavesWhileItsRequestWaitsKeepsNoPlace) {
  ClientLimits limits = OfUser();
  limits.requests = OneRequestPer(1);
  limits.connections = {.what = "connections", .each = 80, .all = 100};
  int let_in = 0;
  limits.sharer = [&let_in](int) {
    ++let_in;
    return Sharer{"user 7"};
  };
  Serve(limits);
  const auto before = Descriptors();
  std::vector<UniqueFd> clients;
  const std::string text = "GET /v1/vfs HTTP/1.1\r\n\r\n" + kMoreBehind;
  for (int i = 0; i < 60; ++i) {
    clients.push_back(*ConnectUnix(socket(), SOCK_STREAM | SOCK_NONBLOCK));
    ASSERT_EQ(static_cast<ssize_t>(text.size()), ::send(clients.back().get(), text.data(), text.size(), MSG_NOSIGNAL));
  }
  ServeUntil([&] { return let_in == 60; });
  for (int i = 0; i < 20; ++i) event_base_loop(loop_.base(), EVLOOP_NONBLOCK);  // their requests are read
  clients.clear();
  ServeUntil([&] { return Descriptors() == before; });
}

TEST_F(ControlSharesTest, WhatAClientThatHasLeftAskedForIsNotDone) {
  config_.vf_program = config_.runtime_dir + "/starts-for-ever";
  std::ofstream(config_.vf_program) << "#!/bin/sh\nexec sleep 60\n";
  fs::permissions(config_.vf_program, fs::perms::owner_all);
  fs::create_directory(config_.runtime_dir + "/vf");
  ASSERT_TRUE(SetInSite(&config_.site, "vfs=2"));
  Begin();
  ClientLimits limits = OfUser();
  limits.requests = OneRequestPer(20);
  Serve(limits);
  const auto names = [this] {
    std::string all;
    const Json answer = Ask("GET", "/v1/vfs").json();
    for (const Json& vf : answer["vfs"]) all += vf.value("name", "?");
    return all;
  };
  ASSERT_EQ("", names());
  for (const char* const name : {"a", "b"}) {
    UniqueFd client = *ConnectUnix(socket(), SOCK_STREAM | SOCK_NONBLOCK);
    const std::string body = fmt::format(R"({{"name": "{}", "transient": true}})", name);
    const std::string text =
        fmt::format("POST /v1/vfs HTTP/1.1\r\nContent-Length: {}\r\n\r\n{}{}", body.size(), body, kMoreBehind);
    ASSERT_EQ(static_cast<ssize_t>(text.size()), ::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL));
    if (name[0] == 'b') ServeUntil([&] { return names() == "b"; });
  }
  EXPECT_EQ("b", names());
}

TEST_F(ControlSharesTest, RequestsThatWaitAreNotReadWithoutEnd) {
  ClientLimits limits;
  limits.requests = {
      .what = "requests", .each_per_second = 1, .each_at_once = 1, .all_per_second = 0, .all_at_once = 0};
  bool is_root = false;
  limits.sharer = [&is_root](int) { return is_root ? Sharer{"user 0", true} : Sharer{"user 7"}; };
  Serve(limits);
  const UniqueFd client = *ConnectUnix(socket(), SOCK_STREAM | SOCK_NONBLOCK);
  std::string requests;
  for (int i = 0; i < 1000; ++i) requests += "GET /v1/nothing HTTP/1.1\r\n\r\n";
  size_t taken = 0;
  for (int round = 0; round < 300; ++round) {
    for (ssize_t n; (n = ::send(client.get(), requests.data(), requests.size(), MSG_NOSIGNAL)) > 0;)
      taken += static_cast<size_t>(n);
    is_root = true;
    ASSERT_EQ(200, Ask("GET", "/v1/vfs").status);
  }
  EXPECT_LT(taken, size_t{2} << 20) << "no more than sockets hold";
}

TEST_F(ControlSharesTest, WhoLeavesBehindAnotherRequestDoesNotWaitForRoom) {
  config_.vf_program = config_.runtime_dir + "/starts-for-ever";
  std::ofstream(config_.vf_program) << "#!/bin/sh\nexec sleep 60\n";
  fs::permissions(config_.vf_program, fs::perms::owner_all);
  fs::create_directory(config_.runtime_dir + "/vf");
  ASSERT_TRUE(SetInSite(&config_.site, "vfs=1"));
  Begin();
  Serve(OfUser());
  const auto send = [this](const std::string& path, const std::string& body, const std::string& behind) {
    UniqueFd client = *ConnectUnix(socket(), SOCK_STREAM | SOCK_NONBLOCK);
    const std::string text =
        fmt::format("POST {} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{}{}", path, body.size(), body, behind);
    EXPECT_EQ(static_cast<ssize_t>(text.size()), ::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL));
    return client;
  };
  const auto serve_until = [this](const std::function<bool(const Json&)>& is_so) {
    const TimePoint end = Now() + 20s;
    while (!is_so(Ask("GET", "/v1/gpus").json()) && Now() < end) {
    }
    return Now() < end;
  };
  const auto waiting = [](int64_t wanted) {
    return [wanted](const Json& gpus) { return gpus.value("waiting", int64_t{-1}) == wanted; };
  };
  const UniqueFd first = send("/v1/vfs", R"({"name": "a", "transient": true})", "");
  ASSERT_TRUE(serve_until([this](const Json&) { return Ask("GET", "/v1/vfs").json()["vfs"].size() == 1; }));
  UniqueFd second = send("/v1/vfs?queue=1", R"({"name": "b", "transient": true})", kMoreBehind);
  ASSERT_TRUE(serve_until(waiting(1)));
  second.Reset();
  EXPECT_TRUE(serve_until(waiting(0)));
}

TEST_F(ControlSharesTest, AUserMakesSoManyVfs) {
  ClientLimits limits = OfUser();
  limits.new_vfs = {.what = "new VFs", .each_per_second = 1, .each_at_once = 2, .all_per_second = 0, .all_at_once = 0};
  Serve(limits);
  const std::string body = R"({"name": "a", "vram_bytes": 1048576})";
  EXPECT_EQ(200, Ask("POST", "/v1/vfs?dry_run=1", body).status) << "which makes none";
  for (int i = 0; i < 2; ++i) EXPECT_NE(429, Ask("POST", "/v1/vfs", body).status);
  const Answer refused = Ask("POST", "/v1/vfs", body);
  EXPECT_EQ(429, refused.status);
  EXPECT_EQ(0u, refused.error().find("user 7 makes too many VFs: 2 at once and 1 per second")) << refused.error();
  EXPECT_EQ(429, Ask("POST", "/v1/vfs/a/reset").status) << "which starts its processes";
}

// The answer to GET /v1/vfs is long: there are very many VFs that are lost.
class ControlLongAnswersTest : public ControlSharesTest {
 protected:
  static constexpr uint32_t kLost = 800;
  static constexpr uint32_t kMostUntaken = 4 << 20;

  ControlLongAnswersTest() {
    const fs::path definitions = fs::path(config_.state_dir) / "vfs";
    for (const fs::path& made : {fs::path(config_.state_dir), definitions}) {
      fs::create_directory(made);
      fs::permissions(made, fs::perms::owner_all);
    }
    // The reason why it is lost repeats it.
    const std::string text = '"' + std::string(1000, 'x');
    for (uint32_t i = 0; i < kLost; ++i) std::ofstream(definitions / fmt::format("lost-{}.json", i)) << text;
    SetLogSink([](std::optional<LogLevel>, std::string_view, std::string_view) { return true; });  // of each of them
    Begin();
    bool restored = false;
    vfs_->Restore({}, [&restored] { restored = true; });
    ServeUntil([&restored] { return restored; });
    SetLogSink(nullptr);
    limits_.untaken_bytes = {
        .what = "untaken bytes of answers", .each = 1 << 20, .all = kMostUntaken, .idle = std::chrono::seconds{1}};
    limits_.answer_bytes.each_per_second = limits_.answer_bytes.all_per_second = 0;  // no limit
    limits_.sharer = [this](int) { return Sharer{name_}; };
    Serve(limits_);
  }
  // It asks and takes nothing.
  void AskOnly(const std::string& name) {
    name_ = name;
    deaf_.push_back(*ConnectUnix(socket(), SOCK_STREAM | SOCK_NONBLOCK));
    const std::string text = "GET /v1/vfs HTTP/1.1\r\n\r\n";
    ASSERT_EQ(static_cast<ssize_t>(text.size()), ::send(deaf_.back().get(), text.data(), text.size(), MSG_NOSIGNAL));
    for (int i = 0; i < 5; ++i) event_base_loop(loop_.base(), EVLOOP_NONBLOCK);
  }
  bool HasAnswer(const UniqueFd& client) {
    char first = 0;
    return ::recv(client.get(), &first, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
  }

  ClientLimits limits_;
  std::string name_ = "user 1";
  std::vector<UniqueFd> deaf_;
};

TEST_F(ControlLongAnswersTest, AnswersThatNobodyTakesAreBoundedAndKeepNobodyOut) {
  const std::string whole = Ask("GET", "/v1/vfs").body;
  ASSERT_LT(uint32_t{384} << 10, whole.size()) << "more than the socket takes of it";
  const auto memory = [] {
    const auto now = ::mallinfo2();
    return now.uordblks + now.hblkhd;
  };
  const size_t before = memory();
  for (int user = 0; user < 6; ++user)
    for (int i = 0; i < 10; ++i) AskOnly(fmt::format("user {}", 100 + user));
  // More of them than there is room for have asked, and as many as there is room for have their answer.
  const auto answered = [this] {
    return static_cast<uint32_t>(
        std::count_if(deaf_.begin(), deaf_.end(), [this](const auto& each) { return HasAnswer(each); }));
  };
  ServeUntil([&] { return answered() * whole.size() > kMostUntaken - 2 * whole.size(); });
  EXPECT_LT(memory(), before + kMostUntaken + (4 << 20));
  name_ = "user 7";
  EXPECT_EQ(whole, Ask("GET", "/v1/vfs").body) << "as long as theirs, which yield";
  EXPECT_LT(memory(), before + kMostUntaken + (4 << 20));
}

}  // namespace
}  // namespace vgpud::daemon
