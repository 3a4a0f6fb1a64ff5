// SPDX-License-Identifier: Apache-2.0
// vgpud, vgpuctl and vgpud-vf as real processes; executors that burn time.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "tests/integration/vgpud/vgpud_bed.h"
#include "tools/vgpuctl/http_client.h"

namespace vgpud::daemon {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

Json CtlJson(const VgpudBed& bed, std::vector<std::string> args) {
  args.insert(args.end(), {"-o", "json"});
  const Finished finished = bed.Ctl(args);
  EXPECT_EQ(0, finished.status) << finished.err;
  Json json = Json::parse(finished.out, nullptr, false);
  EXPECT_TRUE(json.is_object()) << finished.out;
  return json;
}

void Create(const VgpudBed& bed, const std::string& name) {
  const Finished created = bed.Ctl({"create", name, "--vram", "64MiB"});
  ASSERT_EQ(0, created.status) << created.err;
}

Json StatsOf(const VgpudBed& bed, const std::string& vf) { return CtlJson(bed, {"stats", vf})["vfs"][0]; }
std::string StateOf(const VgpudBed& bed, const std::string& vf) { return CtlJson(bed, {"show", vf})["state"]; }
uint64_t Received(const VgpudBed& bed, const std::string& vf) { return StatsOf(bed, vf)["received_ns"]; }

// Shares, in percent, of the GPU time that all VFs together received between two snapshots.
std::vector<double> Shares(const Json& before, const Json& after, const char* counter) {
  std::vector<double> shares;
  double all = 0;
  for (size_t i = 0; i < after["vfs"].size(); ++i) {
    shares.push_back(after["vfs"][i][counter].get<double>() - before["vfs"][i][counter].get<double>());
    all += shares.back();
  }
  for (double& share : shares) share *= 100 / all;
  return shares;
}

// An interval of `length` on the daemon's own clock.
std::pair<Json, Json> Measure(const VgpudBed& bed, std::chrono::milliseconds length) {
  const Json before = CtlJson(bed, {"stats"});
  Json after;
  EXPECT_TRUE(Eventually([&] {
    after = CtlJson(bed, {"stats"});
    return after["now_ns"].get<uint64_t>() - before["now_ns"].get<uint64_t>() >=
           static_cast<uint64_t>(std::chrono::nanoseconds(length).count());
  }));
  return {before, after};
}

TEST(Vgpud, CreateShowSetDestroy) {
  VgpudBed bed;
  EXPECT_EQ(Json::array(), CtlJson(bed, {"list"})["vfs"]);
  const Json a = CtlJson(bed, {"create", "a", "--vram", "1GiB", "--weight", "200", "--slice", "3ms"});
  EXPECT_EQ("ready", a["state"]);
  EXPECT_EQ(200, a["weight"]);
  EXPECT_EQ(3000, a["slice_us"]);
  EXPECT_EQ(1u << 30, a["vram_bytes"]);
  for (const char* key : {"vfio_user_socket", "channel_socket"})
    EXPECT_TRUE(std::filesystem::is_socket(a[key].get<std::string>())) << a[key];

  const Json set = CtlJson(bed, {"set", "a", "--slice", "500us"});
  EXPECT_EQ(Json::parse(R"([{"vf": "a", "field": "slice_us", "old": 3000, "new": 500}])"), set["changes"]);
  EXPECT_TRUE(set["round"].is_number_unsigned());
  EXPECT_EQ(500, CtlJson(bed, {"show", "a"})["slice_us"]);
  const Finished text = bed.Ctl({"set", "a", "--weight", "300"});
  EXPECT_NE(std::string::npos, text.out.find("a weight 200 -> 300, effective at round ")) << text.out;
  EXPECT_NE(std::string::npos, text.out.find("a slice 500us -> 6ms, effective at round ")) << text.out;

  EXPECT_EQ(0, bed.Ctl({"destroy", "a"}).status);
  EXPECT_EQ(Json::array(), CtlJson(bed, {"list"})["vfs"]);
  EXPECT_FALSE(std::filesystem::exists(a["vfio_user_socket"].get<std::string>()));
  EXPECT_TRUE(bed.Children({}).empty());
}

TEST(Vgpuctl, NoDaemonIsStatusThree) {
  VgpudBed bed;
  EXPECT_EQ(0, bed.Stop());
  const Finished finished = bed.Ctl({"list"});
  EXPECT_EQ(3, finished.status);
  EXPECT_NE(std::string::npos, finished.err.find("no vgpud reachable")) << finished.err;
}

TEST(Vgpuctl, AnExplicitTimeoutWaitsForTheDaemonToComeUp) {
  VgpudBed bed;
  EXPECT_EQ(0, bed.Stop());
  const TimePoint start = Now();
  const Finished none = bed.Ctl({"--timeout", "0.3", "list"});
  EXPECT_EQ(3, none.status);
  EXPECT_NE(std::string::npos, none.err.find("no vgpud reachable within 300 ms")) << none.err;
  EXPECT_GE(Now() - start, 250ms);

  Finished waited;
  std::thread client{[&] { waited = bed.Ctl({"--timeout", "30", "create", "a", "--vram", "64MiB"}); }};
  bed.Start();
  client.join();
  EXPECT_EQ(0, waited.status) << waited.err;
  EXPECT_EQ("ready", StateOf(bed, "a"));
}

TEST(Vgpuctl, ADaemonThatDoesNotAnswerIsStatusSix) {
  VgpudBed bed;
  ::kill(bed.pid(), SIGSTOP);
  EXPECT_EQ(6, bed.Ctl({"list", "--timeout", "0.2"}).status);
  ::kill(bed.pid(), SIGCONT);
  EXPECT_EQ(0, bed.Ctl({"list"}).status);
}

TEST(Vgpuctl, SuggestsTheNameOfAVf) {
  VgpudBed bed;
  Create(bed, "guest-a");
  for (const char* wrong : {"guest", "guest-A", "gest-a", "guest-ab"})
    for (const char* verb : {"show", "destroy", "reset", "stats"}) {
      const Finished finished = bed.Ctl({verb, wrong});
      EXPECT_EQ(4, finished.status);
      EXPECT_NE(std::string::npos, finished.err.find("did you mean guest-a?")) << finished.err;
    }
  EXPECT_EQ(std::string::npos, bed.Ctl({"show", "web"}).err.find("did you mean"));
}

TEST(Vgpuctl, HelpAndOtherNamesAreThoseOfTheCommand) {
  VgpudBed bed;
  for (const auto& [other, command] :
       {std::pair("ls", "list"), std::pair("rm", "destroy"), std::pair("describe", "show")}) {
    const Finished help = bed.Ctl({"help", command});
    EXPECT_EQ(0, help.status);
    EXPECT_NE(std::string::npos, help.out.find(fmt::format("Usage: vgpuctl {} [", command))) << help.out;
    EXPECT_EQ(help.out, bed.Ctl({"help", other}).out);
    EXPECT_EQ(help.out, bed.Ctl({other, "--help"}).out);
  }
  EXPECT_EQ(bed.Ctl({"help"}).out, bed.Ctl({"--help"}).out);
  EXPECT_EQ(bed.Ctl({"version"}).out, bed.Ctl({"--version"}).out);
  EXPECT_EQ(0, bed.Ctl({"ls", "--timeout", "2s"}).status);
}

TEST(Vgpud, EverySubcommandExplainsItselfWithAnExample) {
  VgpudBed bed;
  for (const char* sub :
       {"create", "destroy", "list", "show", "set", "pause", "resume", "reset", "stats", "gpu", "set-gpu"}) {
    const Finished help = bed.Ctl({sub, "--help"});
    EXPECT_EQ(0, help.status);
    EXPECT_NE(std::string::npos, help.out.find(fmt::format("Example: vgpuctl {}", sub))) << help.out;
  }
}

TEST(Vgpud, BadHttpHurtsNobody) {
  VgpudBed bed;
  const std::string socket = bed.runtime_dir() + "/control.sock";
  const auto status = [&](const char* method, const char* path, const std::string& body) {
    const auto reply = tools::HttpRequest(socket, method, path, body, 5s);
    return reply ? reply->status : -1;
  };
  EXPECT_EQ(404, status("GET", "/v2/vfs", ""));
  EXPECT_EQ(405, status("DELETE", "/v1/stats", ""));
  EXPECT_EQ(400, status("POST", "/v1/vfs", "{"));
  EXPECT_EQ(400, status("POST", "/v1/vfs", std::string(60'000, '[')));
  EXPECT_EQ(400, status("POST", "/v1/vfs", R"({"name": "a", "name": "b"})"));
  EXPECT_EQ(400, status("POST", "/v1/vfs", R"({"name": "a", "color": 1})"));
  EXPECT_EQ(413, status("POST", "/v1/vfs", std::string(70'000, ' ')));
  for (const std::string& text : {std::string("\0\xff\x01garbage", 10), std::string("POST /v1/vfs HTTP/1.1\r\n")}) {
    auto fd = ConnectUnix(socket, SOCK_STREAM);
    ASSERT_TRUE(fd);
    EXPECT_GT(::send(fd->get(), text.data(), text.size(), MSG_NOSIGNAL), 0);
  }
  EXPECT_EQ(Json::array(), CtlJson(bed, {"list"})["vfs"]);
}

// What a client asked for that leaves at once is done or not: vgpud leaves it out where it sees in time that nobody
// waits.
TEST(Vgpud, AClientThatLeavesBeforeItsAnswerHurtsNobody) {
  VgpudBed bed;
  const auto ask = [&bed](const std::string& text) {
    auto fd = ConnectUnix(bed.runtime_dir() + "/control.sock", SOCK_STREAM);
    EXPECT_TRUE(fd);
    EXPECT_EQ(static_cast<ssize_t>(text.size()), ::send(fd->get(), text.data(), text.size(), MSG_NOSIGNAL));
    return *std::move(fd);
  };
  const auto states = [&bed] {
    std::map<std::string, std::string> by_name;
    const Json list = CtlJson(bed, {"list"});
    for (const Json& vf : list["vfs"]) by_name[vf["name"]] = vf["state"];
    return by_name;
  };
  const auto create = [](const std::string& name) {
    const std::string body = fmt::format(R"({{"name":"{}","vram_bytes":16777216}})", name);
    return fmt::format("POST /v1/vfs HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", body.size(), body);
  };
  for (int i = 0; i < 10; ++i) {
    ask("GET /v1/stats HTTP/1.1\r\nHost: x\r\n\r\n");
    ask(create(fmt::format("left{}", i)));
    const std::string name = fmt::format("seen{}", i);
    const UniqueFd waits_until_it_is_listed = ask(create(name));
    ASSERT_TRUE(Eventually([&] { return states().contains(name); }));
  }
  EXPECT_TRUE(Eventually([&] {
    return std::ranges::all_of(states(), [](const auto& vf) { return vf.second == "ready"; });
  })) << Json(states());
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(states().contains(fmt::format("seen{}", i)));
}

TEST(Vgpud, TwoDaemonsRunSideBySideButNotInOneDirectory) {
  VgpudBed one, two;
  Create(one, "a");
  Create(two, "a");
  EXPECT_EQ(0, two.Ctl({"destroy", "a"}).status);
  EXPECT_EQ("ready", StateOf(one, "a"));
  const Finished third = RunProgram({std::getenv("VGPUD"), "--runtime-dir", one.runtime_dir()});
  EXPECT_EQ(1, third.status);
  EXPECT_NE(std::string::npos, third.err.find(fmt::format("another vgpud (pid {}) serves", one.pid()))) << third.err;
  EXPECT_EQ("ready", StateOf(one, "a"));
}

TEST(Vgpud, SigtermEndsEverythingCleanly) {
  VgpudBed bed;
  Create(bed, "a");
  const UniqueFd channel = bed.OpenChannel("a");
  ASSERT_TRUE(Eventually([&] { return Received(bed, "a") > 0; }));
  const auto children = bed.Children({});
  EXPECT_EQ(2u, children.size());
  EXPECT_EQ(0, bed.Stop());
  for (const pid_t child : children) EXPECT_NE(0, ::kill(child, 0));
  // What remains is what outlives a daemon.
  EXPECT_EQ(1u, std::filesystem::remove_all(bed.runtime_dir() + "/state/usage.db"));
  EXPECT_EQ(2u, std::filesystem::remove_all(bed.runtime_dir() + "/state/vfs")) << "with the definition of a";
  EXPECT_TRUE(std::filesystem::remove(bed.runtime_dir() + "/state"));
  EXPECT_TRUE(std::filesystem::is_empty(bed.runtime_dir()));
}

TEST(Vgpud, AKilledVgpudVfIsMadeAgainAndTheOthersGoOn) {
  VgpudBed bed;
  Create(bed, "a");
  Create(bed, "b");
  const UniqueFd channel_a = bed.OpenChannel("a"), channel_b = bed.OpenChannel("b");
  ASSERT_TRUE(Eventually([&] { return Received(bed, "a") > 0 && Received(bed, "b") > 0; }));
  const auto victim = bed.Children({"--name", "a"});
  ASSERT_EQ(1u, victim.size());
  ::kill(victim[0], SIGKILL);
  EXPECT_TRUE(Eventually([&] {
    const auto now = bed.Children({"--name", "a"});
    return now.size() == 1 && now[0] != victim[0] && StateOf(bed, "a") == "ready";
  }));
  const uint64_t before = Received(bed, "b");
  EXPECT_TRUE(Eventually([&] { return Received(bed, "b") > before + 20'000'000; }));
  EXPECT_EQ(0, bed.Ctl({"set", "a", "--weight", "5"}).status);
  const UniqueFd again = bed.OpenChannel("a");
  EXPECT_TRUE(Eventually([&] { return Received(bed, "a") > 0; })) << "it serves programs again";
}

TEST(VgpudScheduling, SharesFollowTheWeightsAndTheirLiveChange) {
  VgpudBed bed;
  Create(bed, "a");
  Create(bed, "b");
  const UniqueFd channel_a = bed.OpenChannel("a"), channel_b = bed.OpenChannel("b");
  ASSERT_TRUE(Eventually([&] { return Received(bed, "a") > 0 && Received(bed, "b") > 0; }));
  auto [equal_before, equal_after] = Measure(bed, 800ms);
  EXPECT_NEAR(50, Shares(equal_before, equal_after, "received_ns")[0], 5);
  EXPECT_NEAR(50, Shares(equal_before, equal_after, "entitled_ns")[0], 1);

  CtlJson(bed, {"set", "b", "--weight", "300"});
  auto [weighted_before, weighted_after] = Measure(bed, 800ms);
  EXPECT_NEAR(25, Shares(weighted_before, weighted_after, "received_ns")[0], 5);
  EXPECT_NEAR(25, Shares(weighted_before, weighted_after, "entitled_ns")[0], 1);
  EXPECT_GT(weighted_after["vfs"][0]["forced_preemptions"], 50);
  EXPECT_GT(weighted_after["vfs"][0]["warp_instructions"], 0);
  EXPECT_EQ(0, weighted_after["impossible_events"]);
}

TEST(VgpudScheduling, ANewWeightIsAcknowledgedWithItsRoundAndHoldsTwoRoundsLater) {
  VgpudBed bed;
  Create(bed, "a");
  Create(bed, "b");
  const UniqueFd channel_a = bed.OpenChannel("a"), channel_b = bed.OpenChannel("b");
  ASSERT_TRUE(Eventually([&] { return Received(bed, "a") > 0 && Received(bed, "b") > 0; }));
  const uint64_t round_before = CtlJson(bed, {"stats"})["round"];
  const Json set = CtlJson(bed, {"set", "b", "--weight", "300"});
  const auto weight = std::find_if(set["changes"].begin(), set["changes"].end(),
                                   [](const Json& change) { return change["field"] == "weight"; });
  ASSERT_NE(set["changes"].end(), weight) << set;
  EXPECT_EQ(100, (*weight)["old"]);
  EXPECT_EQ(300, (*weight)["new"]);
  const uint64_t round = set["round"];
  EXPECT_GE(round, round_before);
  EXPECT_TRUE(Eventually([&] { return CtlJson(bed, {"stats"})["round"] >= round + 2; }));
  auto [before, after] = Measure(bed, 1500ms);
  EXPECT_NEAR(25, Shares(before, after, "entitled_ns")[0], 1);
  EXPECT_NEAR(25, Shares(before, after, "received_ns")[0], 5);
}

TEST(VgpudScheduling, AnIdleVfGivesItsTimeAway) {
  VgpudBed bed;
  Create(bed, "busy");
  Create(bed, "idle");
  const UniqueFd busy = bed.OpenChannel("busy"), idle = bed.OpenChannel("idle");
  ASSERT_TRUE(Eventually([&] { return Received(bed, "busy") > 0; }));
  auto [before, after] = Measure(bed, 300ms);
  EXPECT_NEAR(100, Shares(before, after, "received_ns")[0], 1);
  const double wall = after["now_ns"].get<double>() - before["now_ns"].get<double>();
  EXPECT_NEAR(1, (after["idle_ns_total"].get<double>() - before["idle_ns_total"].get<double>()) / wall + 1, 0.05);
}

TEST(VgpudScheduling, AKilledExecutorHoldsNobodyUp) {
  VgpudBed bed;
  Create(bed, "a");
  Create(bed, "b");
  const UniqueFd channel_a = bed.OpenChannel("a"), channel_b = bed.OpenChannel("b");
  ASSERT_TRUE(Eventually([&] { return Received(bed, "a") > 0 && Received(bed, "b") > 0; }));
  const auto victim = bed.Children({"vgpud-exec", "--vf", "a"});
  ASSERT_EQ(1u, victim.size());
  ::kill(victim[0], SIGKILL);
  EXPECT_TRUE(Eventually([&] { return CtlJson(bed, {"show", "a"})["executors"] == 0; }));
  EXPECT_EQ("ready", StateOf(bed, "a"));
  const uint64_t before = Received(bed, "b");
  EXPECT_TRUE(Eventually([&] { return Received(bed, "b") > before + 20'000'000; }));
  const UniqueFd again = bed.OpenChannel("a");
  const uint64_t a_before = Received(bed, "a");
  EXPECT_TRUE(Eventually([&] { return Received(bed, "a") > a_before + 5'000'000; }));
}

TEST(VgpudScheduling, AnExecutorThatDoesNotLeaveIsKilledAndRepeatedHangsParkItsVf) {
  VgpudBed bed;
  Create(bed, "hang");
  Create(bed, "good");
  const UniqueFd good = bed.OpenChannel("good");
  // On a busy host one executor may count several times before it has gone.
  for (int round = 0; round < 3 && StateOf(bed, "hang") == "ready"; ++round) {
    const uint64_t before = StatsOf(bed, "hang")["hangs"];
    const UniqueFd channel = bed.OpenChannel("hang");
    EXPECT_TRUE(Eventually([&] { return StatsOf(bed, "hang")["hangs"] > before; }));
    EXPECT_TRUE(Eventually([&] { return CtlJson(bed, {"show", "hang"})["executors"] == 0; }));
  }
  EXPECT_TRUE(Eventually([&] { return StateOf(bed, "hang") == "parked"; }));
  const uint64_t before = Received(bed, "good");
  EXPECT_TRUE(Eventually([&] { return Received(bed, "good") > before + 20'000'000; }));
  EXPECT_EQ(0, bed.Ctl({"reset", "hang"}).status);
  EXPECT_EQ("ready", StateOf(bed, "hang"));
}

class VgpudEvilExecutor : public testing::TestWithParam<const char*> {};

TEST_P(VgpudEvilExecutor, ThatSleepsOnTheGpuIsKilledWithoutAnExcuse) {
  VgpudBed bed;
  Create(bed, GetParam());
  Create(bed, "good");
  const UniqueFd good = bed.OpenChannel("good");
  const UniqueFd channel = bed.OpenChannel(GetParam());
  EXPECT_TRUE(Eventually([&] { return CtlJson(bed, {"show", GetParam()})["executors"] == 0; }));
  const Json stats = StatsOf(bed, GetParam());
  // The crowd may have been too many threads before it was asleep for too long.
  EXPECT_LE(stats["hangs"], 1);
  EXPECT_TRUE(stats["hangs"] == 1 || std::string_view(GetParam()) == "crowd");
  EXPECT_LE(stats["host_stalls"], 1) << stats << "\na busy host may let it wait for a processor before it sleeps";
  const uint64_t before = Received(bed, "good");
  EXPECT_TRUE(Eventually([&] { return Received(bed, "good") > before + 20'000'000; }));
  const auto fds = std::filesystem::directory_iterator("/proc/" + std::to_string(bed.pid()) + "/fd");
  EXPECT_LT(std::distance(begin(fds), end(fds)), 100);
}
INSTANTIATE_TEST_SUITE_P(, VgpudEvilExecutor, testing::Values("sleep", "crowd"),
                         [](const auto& p) { return std::string(p.param); });

TEST(VgpudScheduling, AnExecutorWithMoreThreadsThanItCanNeedIsKilled) {
  VgpudBed bed;
  Create(bed, "crowd-idle");
  const UniqueFd channel = bed.OpenChannel("crowd-idle");
  EXPECT_TRUE(Eventually([&] { return CtlJson(bed, {"show", "crowd-idle"})["executors"] == 0; }));
  EXPECT_EQ(0, StatsOf(bed, "crowd-idle")["hangs"]);
}

TEST(VgpudScheduling, AnExecutorThatRingsWithoutEndIsMutedAndTheOthersKeepTheirTurns) {
  VgpudBed bed;
  Create(bed, "storm");
  Create(bed, "good");
  const UniqueFd storm = bed.OpenChannel("storm");
  EXPECT_TRUE(Eventually([&] { return StatsOf(bed, "storm")["bell_muted"] > 0; }));
  const UniqueFd good = bed.OpenChannel("good");
  ASSERT_TRUE(Eventually([&] { return Received(bed, "good") > 0; }));
  const auto measured = Measure(bed, 500ms);
  const auto received = [&](const char* name) {
    uint64_t growth = 0;
    for (const Json* stats : {&measured.first, &measured.second})
      for (const Json& vf : (*stats)["vfs"])
        if (vf["name"] == name) growth = vf["received_ns"].get<uint64_t>() - growth;
    return growth;
  };
  // Whatever else the host does: of the time in which somebody had the GPU.
  EXPECT_GT(received("good"), 100'000'000u);
  EXPECT_GT(received("good"), 9 * received("storm"));
}

TEST(VgpudScheduling, AVfIsDestroyedWhileItRuns) {
  VgpudBed bed;
  for (int i = 0; i < 5; ++i) {
    Create(bed, "a");
    const UniqueFd channel = bed.OpenChannel("a");
    ASSERT_TRUE(Eventually([&] { return Received(bed, "a") > 0; }));
    EXPECT_EQ(0, bed.Ctl({"destroy", "a", "--force"}).status);
  }
  EXPECT_TRUE(bed.Children({}).empty());
}

}  // namespace
}  // namespace vgpud::daemon
