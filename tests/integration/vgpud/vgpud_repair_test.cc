// SPDX-License-Identifier: Apache-2.0
// VFs that failed or are lost: every command says so, and a reset by force makes them again with their settings.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/integration/vgpud/vgpud_bed.h"

namespace vgpud::daemon {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class Repair : public testing::Test {
 protected:
  void Do(std::vector<std::string> args) {
    const Finished finished = bed_.Ctl(args);
    EXPECT_EQ(0, finished.status) << args[0] << ": " << finished.err;
  }
  Json Show(const std::string& name) {
    const Finished shown = bed_.Ctl({"show", name, "-o", "json"});
    EXPECT_EQ(0, shown.status) << shown.err;
    return Json::parse(shown.out, nullptr, false);
  }
  std::string State(const std::string& name) { return Show(name).value("state", ""); }
  std::string Refusal(std::vector<std::string> args, int status = 5) {
    const Finished finished = bed_.Ctl(args);
    EXPECT_EQ(status, finished.status) << args[0] << ": " << finished.out << finished.err;
    return finished.err;
  }
  fs::path Definition(const std::string& name) { return bed_.runtime_dir() + "/state/vfs/" + name + ".json"; }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(Definition(name)) << text;
    fs::permissions(Definition(name), static_cast<fs::perms>(0600));
  }
  std::string Read(const std::string& name) {
    std::ifstream file(Definition(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void KillServer(const std::string& name) {
    for (const pid_t pid : bed_.Children({"--name", name})) ::kill(pid, SIGKILL);
  }
  // Its vgpud-vf dies twice: the second time vgpud does not make it again.
  void Fail(const std::string& name) {
    KillServer(name);
    ASSERT_TRUE(Eventually([&] { return bed_.Log().find("made again for the next client") != std::string::npos; }));
    KillServer(name);
    ASSERT_TRUE(Eventually([&] { return State(name) == "failed"; }));
  }
  // What an operator has said of it.
  static Json Settings(const Json& vf) {
    Json settings = vf;
    for (const char* present : {"state", "reason", "share", "utilization", "events", "recent_events", "server",
                                "throttled_ns", "kernel_faults"})
      settings.erase(present);
    return settings;
  }

  VgpudBed bed_;
};

TEST_F(Repair, AFailedVfIsMadeAgainWithItsSettings) {
  Do({"create", "a", "--vram", "64MiB", "--weight", "300", "--host-memory", "100MiB"});
  Do({"create", "b", "--vram", "64MiB"});
  const Json before = Settings(Show("a"));
  Fail("a");
  const std::string why = Show("a")["reason"];
  EXPECT_NE(std::string::npos, why.find("vgpuctl reset --force a makes it again with its settings")) << why;
  EXPECT_NE(std::string::npos, Refusal({"reset", "a"}).find(why));
  Do({"reset", "a", "--force"});
  EXPECT_EQ("ready", State("a"));
  EXPECT_EQ(before, Settings(Show("a")));
  EXPECT_TRUE(bed_.OpenChannel("a"));
  Do({"reset", "b", "--force"});
  EXPECT_EQ("ready", State("b")) << "one that works is reset as ever";
  EXPECT_EQ(4, bed_.Ctl({"reset", "c", "--force"}).status);
}

TEST_F(Repair, AFailedVfThatCannotBeMadeIsLostUntilItCan) {
  Do({"create", "a", "--vram", "64MiB", "--weight", "300"});
  const Json before = Settings(Show("a"));
  Fail("a");
  const fs::path server = bed_.DaemonProgramDir() + "/vgpud-vf";
  fs::rename(server, server.native() + ".away");
  fs::create_symlink("/bin/false", server);
  EXPECT_NE(std::string::npos, Refusal({"reset", "a", "--force"}, 1).find("vf \"a\" is lost: "));
  EXPECT_TRUE(Eventually([&] { return State("a") == "lost"; }));
  EXPECT_EQ(300, Show("a")["weight"]);
  fs::rename(server.native() + ".away", server);
  Do({"reset", "a", "--force"});
  EXPECT_EQ(before, Settings(Show("a")));
}

TEST_F(Repair, ALostVfLooksTheSameInEveryCommand) {
  for (const char* name : {"damaged", "good"}) Do({"create", name, "--vram", "64MiB", "--weight", "300"});
  const std::string definition = Read("damaged");
  bed_.Stop();
  Write("damaged", "{");
  bed_.Start();
  Json lost = Show("damaged");
  EXPECT_EQ(1, lost.erase("recent_events"));
  const std::string reason = lost["reason"];
  EXPECT_EQ((Json{{"apiVersion", lost["apiVersion"]}, {"name", "damaged"}, {"state", "lost"}, {"reason", reason}}),
            lost)
      << "nothing is invented";
  for (const std::vector<std::string>& verb :
       std::vector<std::vector<std::string>>{{"set", "damaged", "--weight", "3"},
                                             {"pause", "damaged"},
                                             {"resume", "damaged"},
                                             {"stats", "damaged"},
                                             {"reset", "damaged"},
                                             {"apply", "damaged:weight=3"},
                                             {"set", "damaged", "--weight", "3", "--if-revision", "7"}})
    EXPECT_EQ("vgpuctl: " + reason + "\n", Refusal(verb)) << verb[0];
  EXPECT_NE(std::string::npos, bed_.Ctl({"list"}).out.find(reason));
  // Still damaged: it stays lost. Put right: it is there again, without a restart.
  EXPECT_EQ("vgpuctl: " + reason + "\n", Refusal({"reset", "damaged", "--force"}));
  Write("damaged", Read("good"));
  EXPECT_NE(std::string::npos, Refusal({"reset", "damaged", "--force"}).find("it is the definition of vf \"good\""));
  Json twin = Json::parse(definition);
  twin["uuid"] = Json::parse(Read("good"))["uuid"];
  Write("damaged", twin.dump());
  EXPECT_NE(std::string::npos, Refusal({"reset", "damaged", "--force"}).find("vf \"good\" has its uuid"));
  EXPECT_EQ(300, Show("damaged")["weight"]) << "its settings are known now";
  Write("damaged", definition);
  Do({"reset", "damaged", "--force"});
  EXPECT_EQ("ready", State("damaged"));
  EXPECT_EQ(300, Show("damaged")["weight"]);
  bed_.Stop();
  bed_.Start();
  EXPECT_EQ("ready", State("damaged"));
}

}  // namespace
}  // namespace vgpud::daemon
