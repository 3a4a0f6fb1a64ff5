// SPDX-License-Identifier: Apache-2.0
// VFs outlive vgpud: they are the same ones after a stop, a kill and a reboot, and what is wrong with a definition
// costs that VF alone.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "tests/integration/vgpud/vgpud_bed.h"

namespace vgpud::daemon {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using namespace std::chrono_literals;

fs::path Definition(const VgpudBed& bed, const std::string& name) {
  return bed.runtime_dir() + "/state/vfs/" + name + ".json";
}

std::string Read(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

void Do(const VgpudBed& bed, std::vector<std::string> args) {
  const Finished finished = bed.Ctl(args);
  EXPECT_EQ(0, finished.status) << args[0] << ": " << finished.err;
}

void Create(const VgpudBed& bed, const std::string& name, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"create", name, "--vram", "64MiB"});
  Do(bed, more);
}

Json Vfs(const VgpudBed& bed) {
  const Finished listed = bed.Ctl({"list", "-o", "json"});
  EXPECT_EQ(0, listed.status) << listed.err;
  return Json::parse(listed.out, nullptr, false).value("vfs", Json::array());
}

// Null: there is none of that name.
Json Vf(const VgpudBed& bed, const std::string& name) {
  for (const Json& vf : Vfs(bed))
    if (vf["name"] == name) return vf;
  return nullptr;
}

// A lost VF's reason.
std::string WhyLost(const VgpudBed& bed, const std::string& name) {
  const Json vf = Vf(bed, name);
  EXPECT_EQ("lost", vf.is_null() ? "none" : vf["state"]) << name;
  return vf.is_null() ? "" : vf.value("reason", "");
}

void Write(const fs::path& path, const std::string& text) {
  std::ofstream(path) << text;
  fs::permissions(path, static_cast<fs::perms>(0600));
}

const std::vector<std::string> kReserve = {"--policy", "reserve"};

TEST(Restart, AVfIsTheSameAfterAStopAndAfterAKill) {
  VgpudBed bed(kReserve);
  Create(bed, "zero");
  Create(bed, "one",
         {"--weight", "300", "--guarantee", "25%", "--limit", "75%", "--burst", "500us", "--priority", "2", "--group",
          "3", "--host-memory", "100MiB"});
  Create(bed, "two", {"--transient"});
  Do(bed, {"set", "zero", "--slice", "4ms"});
  Do(bed, {"pause", "zero"});
  EXPECT_FALSE(Vf(bed, "one")["transient"]);
  EXPECT_TRUE(Vf(bed, "two")["transient"]);
  Do(bed, {"destroy", "two"});
  const Json before = Vfs(bed);
  ASSERT_EQ(2u, before.size());
  Create(bed, "two", {"--transient"});
  for (const int signal : {SIGTERM, SIGKILL}) {
    bed.Stop(signal);
    bed.Start(kReserve);
    EXPECT_EQ(before, Vfs(bed)) << "and the transient one is gone";
    EXPECT_TRUE(bed.OpenChannel("one"));
  }
  EXPECT_NE(std::string::npos, bed.Log().find("2 VFs of earlier are back, 0 are lost")) << bed.Log();
}

TEST(Restart, WhatWasDestroyedStaysGone) {
  VgpudBed bed;
  Create(bed, "a");
  Create(bed, "b");
  const std::string uuid = Vf(bed, "a")["uuid"];
  Do(bed, {"destroy", "a"});
  EXPECT_FALSE(fs::exists(Definition(bed, "a")));
  bed.Stop(SIGKILL);
  bed.Start();
  EXPECT_TRUE(Vf(bed, "a").is_null());
  EXPECT_EQ("ready", Vf(bed, "b")["state"]);
  Create(bed, "a");
  EXPECT_NE(uuid, Vf(bed, "a")["uuid"]) << "another VF";
}

// It says so only when all of them serve.
TEST(Restart, VgpudIsReadyWhenAllVfsAreBack) {
  VgpudBed bed;
  for (int i = 0; i < 12; ++i) Create(bed, fmt::format("vf{}", i));
  bed.Stop();
  bed.Start();
  const Json vfs = Vfs(bed);
  ASSERT_EQ(12u, vfs.size());
  for (size_t i = 0; i < vfs.size(); ++i) {
    EXPECT_EQ("ready", vfs[i]["state"]);
    EXPECT_EQ(fmt::format("vf{}", i), vfs[i]["name"]) << "in the order of before";
    (void)bed.OpenChannel(vfs[i]["name"]);
  }
}

// Whatever was answered is there; of what was being done, all or nothing.
TEST(Restart, AKilledVgpudsSocketsAreGoneWithTheirVfs) {
  VgpudBed bed;
  Create(bed, "stays");
  Create(bed, "ends", {"--transient"});
  const fs::path folder = bed.runtime_dir() + "/vf";
  std::ofstream(folder / "other.sock") << "no socket";
  bed.Stop(SIGKILL);
  ASSERT_TRUE(fs::is_socket(folder / "ends.sock"));
  bed.Start();
  for (const char* suffix : {".sock", ".channel.sock"}) {
    EXPECT_FALSE(fs::exists(folder / (std::string("ends") + suffix)));
    EXPECT_TRUE(fs::is_socket(folder / (std::string("stays") + suffix)));
  }
  EXPECT_TRUE(fs::exists(folder / "other.sock")) << "vgpud did not make it";
}

TEST(Restart, KilledAtAnyMomentTheOldOrTheNewDefinitionIsThere) {
  VgpudBed bed;
  Create(bed, "a", {"--weight", "100"});
  const std::string uuid = Vf(bed, "a")["uuid"];
  std::mt19937 random(20261123);
  uint32_t weight = 100;
  bool b_is_there = false;
  constexpr int kKills = 20;
  for (int kill = 0; kill < kKills; ++kill) {
    uint32_t asked = weight;
    bool b_unknown = false;
    std::atomic<bool> changed = false;
    std::thread changer{[&] {
      for (;;) {
        const bool set = bed.Ctl({"set", "a", "--weight", fmt::format("{}", ++asked)}).status == 0;
        if (set) weight = asked;
        changed = true;
        changed.notify_one();
        if (!set) return;
        const Finished done = b_is_there ? bed.Ctl({"destroy", "b"}) : bed.Ctl({"create", "b", "--vram", "64MiB"});
        b_unknown = done.status != 0;
        if (b_unknown) return;
        b_is_there = !b_is_there;
      }
    }};
    changed.wait(false);
    // At any moment of the changes that follow; which one decides nothing.
    std::this_thread::sleep_for(std::chrono::microseconds{random() % 120'000});
    bed.Stop(SIGKILL);
    changer.join();
    bed.Start();
    const Json a = Vf(bed, "a"), b = Vf(bed, "b");
    ASSERT_TRUE(a.is_object() && a["state"] == "ready") << a;
    EXPECT_EQ(uuid, a["uuid"]);
    EXPECT_TRUE(a["weight"] == weight || a["weight"] == asked) << a["weight"] << ", answered " << weight;
    weight = a["weight"];
    EXPECT_TRUE(b.is_null() || b["state"] == "ready") << b;
    EXPECT_TRUE(b_unknown || b_is_there == !b.is_null());
    b_is_there = !b.is_null();
  }
  EXPECT_GE(weight, 100u + kKills) << "changes were made in between";
}

TEST(Restart, ADefinitionThatIsWrongCostsThatVfAlone) {
  VgpudBed bed;
  for (const char* name : {"good", "torn", "open", "linked", "moved", "twin"}) Create(bed, name);
  bed.Stop();
  const std::string torn = Read(Definition(bed, "torn")).substr(0, 100);
  Write(Definition(bed, "torn"), torn);
  fs::permissions(Definition(bed, "open"), fs::perms::others_write, fs::perm_options::add);
  fs::rename(Definition(bed, "linked"), bed.runtime_dir() + "/elsewhere");
  fs::create_symlink(bed.runtime_dir() + "/elsewhere", Definition(bed, "linked"));
  fs::rename(Definition(bed, "moved"), Definition(bed, "other-name"));
  Json twin = Json::parse(Read(Definition(bed, "twin")));
  twin["uuid"] = Json::parse(Read(Definition(bed, "good")))["uuid"];
  Write(Definition(bed, "twin"), twin.dump());
  Write(Definition(bed, "Not A Name"), "{}");
  bed.Start();

  EXPECT_EQ("ready", Vf(bed, "good")["state"]);
  const std::pair<const char*, const char*> kWhy[] = {
      {"torn", "it is not JSON: "},        {"open", "others may write to it (mode 0602)"},
      {"linked", "it is a link"},          {"other-name", "it is the definition of vf \"moved\""},
      {"twin", "another VF has its uuid"},
  };
  for (const auto& [name, why] : kWhy) {
    const std::string reason = WhyLost(bed, name);
    const std::string begin = fmt::format("vf \"{}\" is lost: it could not be made again from {}, which is kept: {}",
                                          name, Definition(bed, name).native(), why);
    EXPECT_EQ(begin, reason.substr(0, begin.size()));
    EXPECT_NE(std::string::npos, bed.Log().find(reason)) << "the log says it too";
    EXPECT_NE(std::string::npos, bed.Ctl({"list"}).out.find(reason));
    EXPECT_NE(std::string::npos, bed.Ctl({"show", name}).out.find(reason));
    const Finished again = bed.Ctl({"create", name});
    EXPECT_EQ(5, again.status);
    EXPECT_NE(std::string::npos, again.err.find("only then can another one have its name")) << again.err;
  }
  EXPECT_NE(std::string::npos, bed.Log().find("1 VFs of earlier are back, 5 are lost")) << bed.Log();
  EXPECT_EQ(torn, Read(Definition(bed, "torn"))) << "kept as it is";

  Do(bed, {"destroy", "torn"});
  Do(bed, {"destroy", "linked"});
  EXPECT_FALSE(fs::exists(Definition(bed, "torn")));
  EXPECT_TRUE(fs::exists(bed.runtime_dir() + "/elsewhere")) << "the link went, not what it points to";
  Create(bed, "torn");
  fs::permissions(Definition(bed, "open"), fs::perms::others_write, fs::perm_options::remove);
  bed.Stop();
  bed.Start();
  EXPECT_EQ("ready", Vf(bed, "open")["state"]) << "put right";
  EXPECT_EQ("ready", Vf(bed, "torn")["state"]);
}

TEST(Restart, AVfThatDoesNotFitAnyMoreIsLostUntilItDoes) {
  VgpudBed bed(kReserve);
  Create(bed, "plain");
  Create(bed, "promised", {"--guarantee", "50%"});
  bed.Stop();
  bed.Start();
  EXPECT_NE(std::string::npos, WhyLost(bed, "promised").find("policy strict has no guarantee"));
  EXPECT_EQ("ready", Vf(bed, "plain")["state"]);
  bed.Stop();
  Json more = Json::parse(Read(Definition(bed, "plain")));
  more["guarantee"] = 0.6;
  Write(Definition(bed, "plain"), more.dump());
  bed.Start(kReserve);
  EXPECT_EQ("ready", Vf(bed, "plain")["state"]);
  EXPECT_NE(std::string::npos, WhyLost(bed, "promised").find("guarantee"));
  Do(bed, {"destroy", "plain"});
  bed.Stop();
  bed.Start(kReserve);
  EXPECT_EQ("ready", Vf(bed, "promised")["state"]);
  EXPECT_EQ(0.5, Vf(bed, "promised")["guarantee"]);
}

TEST(Restart, AVfWhoseServerDoesNotStartIsLostAndItsDefinitionKept) {
  VgpudBed bed;
  Create(bed, "a");
  const std::string definition = Read(Definition(bed, "a"));
  bed.Stop();
  const fs::path server = bed.DaemonProgramDir() + "/vgpud-vf";
  fs::rename(server, server.native() + ".away");
  fs::create_symlink("/bin/false", server);
  bed.Start();
  EXPECT_NE(std::string::npos, WhyLost(bed, "a").find("did not start: vgpud-vf ended"));
  EXPECT_EQ(definition, Read(Definition(bed, "a")));
  bed.Stop();
  fs::rename(server.native() + ".away", server);
  bed.Start();
  EXPECT_EQ("ready", Vf(bed, "a")["state"]);
}

TEST(Restart, WithoutAPlaceForDefinitionsOnlyTransientVfsAreMade) {
  VgpudBed bed;
  bed.Stop();
  fs::remove(bed.runtime_dir() + "/state/vfs");
  std::ofstream(bed.runtime_dir() + "/state/vfs") << "in the way";
  bed.Start();
  const Finished refused = bed.Ctl({"create", "a", "--vram", "64MiB"});
  EXPECT_EQ(1, refused.status);
  EXPECT_NE(std::string::npos, refused.err.find("vf \"a\" would not be back after a restart")) << refused.err;
  EXPECT_NE(std::string::npos, refused.err.find("--transient")) << refused.err;
  EXPECT_TRUE(Vf(bed, "a").is_null());
  Create(bed, "a", {"--transient"});
  Do(bed, {"set", "a", "--weight", "300"});
}

TEST(Restart, ADefinitionThatCannotBeWrittenIsNoSuccess) {
  VgpudBed bed;
  Create(bed, "a");
  fs::create_directories(Definition(bed, "b") / "in the way");
  const Finished refused = bed.Ctl({"create", "b", "--vram", "64MiB"});
  EXPECT_EQ(1, refused.status);
  EXPECT_NE(std::string::npos, refused.err.find("vf \"b\" could not be written down and is ended again"))
      << refused.err;
  EXPECT_TRUE(Eventually([&] { return Vf(bed, "b").is_null(); }));
  fs::remove(Definition(bed, "a"));
  fs::create_directories(Definition(bed, "a") / "in the way");
  const Finished changed = bed.Ctl({"set", "a", "--weight", "300"});
  EXPECT_EQ(1, changed.status);
  EXPECT_NE(std::string::npos, changed.err.find("could not be written down and is lost when vgpud ends"))
      << changed.err;
  EXPECT_EQ(300, Vf(bed, "a")["weight"]);
}

}  // namespace
}  // namespace vgpud::daemon
