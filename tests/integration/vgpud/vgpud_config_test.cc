// SPDX-License-Identifier: Apache-2.0
// A daemon with a configuration file: what it makes of it, at start and when it reads it again.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/integration/vgpud/vgpud_bed.h"
#include "tests/scratch_dir.h"

namespace vgpud::daemon {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// A configuration file of its own, and a daemon that reads it.
class Configured : public testing::Test {
 protected:
  std::string file() const { return directory_ / "vgpud.toml"; }
  void Write(const std::string& text) const { std::ofstream(file()) << text; }
  void Start(const std::string& text, std::vector<std::string> more = {}) {
    Write(text);
    more.insert(more.begin(), {"--config", file()});
    bed_ = std::make_unique<VgpudBed>(more);
  }
  // Runs vgpuctl; its status is `status`. What it wrote.
  std::string Ctl(std::vector<std::string> args, int status = 0) const {
    const Finished finished = bed_->Ctl(args);
    std::string line;
    for (const std::string& arg : args) line += arg + " ";
    EXPECT_EQ(status, finished.status) << line << "\n" << finished.out << finished.err;
    return finished.out + finished.err;
  }
  Json Vf(const std::string& name) const { return Json::parse(Ctl({"show", name, "-o", "json"}), nullptr, false); }
  void Reload() const {
    const std::string before = bed_->Log();
    ::kill(bed_->pid(), SIGHUP);
    EXPECT_TRUE(Eventually([&] { return bed_->Log().find("reload: ", before.size()) != std::string::npos; }));
  }

  const ScratchDir scratch_;
  const fs::path directory_ = scratch_.path();
  std::unique_ptr<VgpudBed> bed_;
};

#define EXPECT_SAYS(text, part) EXPECT_NE(std::string::npos, (text).find(part)) << (text)

TEST_F(Configured, ProfilesAreSizesForNewVfs) {
  Start(
      "[gpu]\npolicy = \"reserve\"\nsoft_gpu_vram = \"4GiB\"\n"
      "[profile.render]\nvram = \"256MiB\"\nweight = 300\nguarantee = 0.25\nlimit = \"75%\"\n"
      "[profile.batch]\nvram = \"64MiB\"\nslice_us = 4000\n");
  const std::string table = Ctl({"profiles"});
  EXPECT_SAYS(table, "1/4     1GiB    -            weight=50\n");
  EXPECT_SAYS(table, "render  256MiB  -            guarantee=25% limit=75% weight=300\n");
  Ctl({"create", "a", "--profile", "render", "--weight", "200"});
  EXPECT_EQ("render", Vf("a")["profile"]);
  EXPECT_EQ(200, Vf("a")["weight"]);
  EXPECT_EQ(0.25, Vf("a")["guarantee"]);
  EXPECT_EQ(0.75, Vf("a")["limit"]);
  EXPECT_EQ(256 << 20, Vf("a")["vram_bytes"]);
  Ctl({"create", "b", "--profile", "batch", "--dry-run"});
  Ctl({"create", "b", "--profile", "batch"});
  EXPECT_EQ(4000, Vf("b")["slice_us"]);
  EXPECT_SAYS(Ctl({"create", "c", "--profile", "1/8"}), "vram_bytes         536870912\n");
  EXPECT_SAYS(Ctl({"create", "d", "--profile", "batsh"}, 2), "there is no profile \"batsh\": did you mean batch?");
  EXPECT_SAYS(Ctl({"create", "d", "--profile", "1/1"}, 5),
              "vf \"d\" wants 4GiB of memory, and of the 4GiB of the GPU 3.188GiB are free");
  EXPECT_SAYS(Ctl({"create", "d", "--profile", "1/1", "--dry-run"}, 5), "wants 4GiB");

  Write(
      "[gpu]\npolicy = \"reserve\"\nsoft_gpu_vram = \"4GiB\"\n"
      "[profile.render]\nvram = \"128MiB\"\nweight = 300\n[profile.new]\nweight = 5\n");
  Reload();
  EXPECT_SAYS(bed_->Log(), "reload: profile.render.vram 256MiB -> 128MiB");
  EXPECT_SAYS(bed_->Log(), "reload: profile.batch.slice_us 4000 -> (none)");
  EXPECT_SAYS(bed_->Log(), "reload: profile.new.weight (none) -> 5");
  EXPECT_EQ(256 << 20, Vf("a")["vram_bytes"]) << "a VF that is there does not change with its profile";
  Ctl({"create", "d", "--profile", "render"});
  EXPECT_EQ(128 << 20, Vf("d")["vram_bytes"]);
  Ctl({"create", "e", "--profile", "batch"}, 2);
}

TEST_F(Configured, AVfThatFindsTooLittleMemoryAfterARestartIsLost) {
  Start("[gpu]\nsoft_gpu_vram = \"1GiB\"\n");
  Ctl({"create", "a", "--vram", "256MiB", "--profile", "1/4"});
  Ctl({"create", "b", "--vram", "512MiB"});
  bed_->Stop();
  Write("[gpu]\nsoft_gpu_vram = \"512MiB\"\n");
  bed_->Start({"--config", file()});
  EXPECT_EQ("ready", Vf("a")["state"]);
  EXPECT_EQ("1/4", Vf("a")["profile"]);
  EXPECT_EQ("lost", Vf("b")["state"]);
  EXPECT_SAYS(Vf("b").value("reason", ""),
              "vf \"b\" wants 512MiB of memory, and of the 512MiB of the GPU 256MiB are free");
  bed_->Stop();
  Write("");
  bed_->Start({"--config", file()});
  EXPECT_EQ("ready", Vf("b")["state"]);
}

TEST_F(Configured, EachValueSaysWhereItIsFrom) {
  Start("[gpu]\nbase_slice_us = 3000\nidle = \"yield\"\n[profile.small]\nweight = 50\n", {"--trace-turns", "4096"});
  Ctl({"set-gpu", "--policy", "reserve", "--group-weight", "3=200"});
  const std::string table = Ctl({"config", "show"});
  const auto says = [&](const std::string& key, const std::string& value, const std::string& from) {
    const size_t at = table.find("\n" + key + " ");
    ASSERT_NE(std::string::npos, at) << key << " in\n" << table;
    const std::string line = table.substr(at + 1, table.find('\n', at + 1) - at - 1);
    EXPECT_SAYS(line, " " + value + " ");
    EXPECT_TRUE(line.ends_with(" " + from)) << line;
  };
  says("gpu.base_slice_us", "3000", file() + ":2");
  says("gpu.idle", "yield", file() + ":3");
  says("profile.small.weight", "50", file() + ":5");
  says("daemon.trace_turns", "4096", "flag");
  says("event_budget.opens", "50", "default");
  says("gpu.policy", "reserve", "changed live (configured: strict)");
  says("gpu.group_weight.3", "200", "changed live (configured: (none))");
  says("daemon.metrics_listen", "-", "default");
  const Json json = Json::parse(Ctl({"config", "show", "-o", "json"}));
  EXPECT_GT(json["values"].size(), 30u);
}

TEST_F(Configured, CheckDiffAndReload) {
  Start("[gpu]\nbase_slice_us = 3000\nsoft_gpu_threads = 1\n");
  EXPECT_EQ("the configuration is right\n", Ctl({"config", "check"}));
  EXPECT_EQ("", Ctl({"config", "diff"}));
  EXPECT_EQ("nothing changes\n", Ctl({"config", "reload"}));

  Write("[gpu]\nbase_slice_us = 4000\nsoft_gpu_threads = 2\n[profile.new]\nweight = 5\n");
  const std::string later = "gpu.soft_gpu_threads 1 -> 2, when vgpud is started again\n";
  EXPECT_EQ(
      "the configuration is right\ngpu.base_slice_us 3000 -> 4000, with a reload\n"
      "profile.new.weight (none) -> 5, with a reload\n" +
          later,
      Ctl({"config", "check"}));
  EXPECT_EQ(
      "gpu.base_slice_us 3000 -> 4000, with a reload\n" + later + "profile.new.weight (none) -> 5, with a reload\n",
      Ctl({"config", "diff"}, 7));
  EXPECT_SAYS(Ctl({"gpu"}), "base_slice         3ms") << "nothing was changed";
  const std::string done = Ctl({"config", "reload"});
  EXPECT_SAYS(done, "gpu.base_slice_us 3000 -> 4000, effective at round ");
  EXPECT_SAYS(done, later);
  EXPECT_SAYS(Ctl({"gpu"}), "base_slice         4ms");
  EXPECT_EQ(later, Ctl({"config", "diff"}, 7)) << "it still does not hold";

  Ctl({"set-gpu", "--base-slice", "5ms"});
  EXPECT_EQ("gpu.base_slice_us 5000 -> 4000, was changed live and stays so until the next start\n" + later,
            Ctl({"config", "diff"}, 7));
  EXPECT_EQ("nothing changes\n", Ctl({"config", "reload"}));
  EXPECT_SAYS(Ctl({"gpu"}), "base_slice         5ms");
  Write("[gpu]\nbase_slice_us = 2000\n");
  EXPECT_SAYS(Ctl({"config", "diff"}, 7), "gpu.base_slice_us 5000 -> 2000, with a reload\n");
  Ctl({"config", "reload"});
  EXPECT_SAYS(Ctl({"gpu"}), "base_slice         2ms") << "the files say something new";
}

TEST_F(Configured, WhatIsWrongIsSaidAndNothingChanges) {
  Start("[gpu]\npolicy = \"reserve\"\n");
  Ctl({"create", "a", "--vram", "64MiB", "--guarantee", "25%"});
  Write("[gpu]\npolcy = \"strict\"\nbase_slice_us = 1\n");
  for (const char* verb : {"check", "diff", "reload"}) {
    const std::string why = Ctl({"config", verb}, 2);
    EXPECT_SAYS(why, file() + ":2:1: [gpu] has no key \"polcy\": did you mean policy?\n");
    EXPECT_SAYS(why, file() + ":3:1: [gpu] base_slice_us = 1: ");
  }
  Write("[gpu]\npolicy = \"strict\"\n");
  for (const char* verb : {"check", "reload"})
    EXPECT_SAYS(Ctl({"config", verb}, 5), "policy strict has no guarantee, but these VFs have one: a");
  EXPECT_SAYS(Ctl({"gpu"}), "policy             reserve");
  EXPECT_SAYS(Ctl({"config", "diff"}, 7), "gpu.policy reserve -> strict, with a reload\n");
  Ctl({"config", "chekc"}, 2);
}

// Files for configuration management.
class StateFile : public Configured {
 protected:
  std::string state() const { return directory_ / "state.toml"; }
  void WriteState(const std::string& text) const { std::ofstream(state()) << text; }
  std::string Apply(int status, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"apply", "--detailed-exitcode", "--file", state()});
    return Ctl(more, status);
  }
  std::string Assert(int status, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"assert", "--file", state()});
    return Ctl(more, status);
  }
};

TEST_F(StateFile, WhatIsExportedHoldsAndCanBeMadeAgainElsewhere) {
  for (const char* policy : {"strict", "reserve", "relaxed"}) {
    Start(fmt::format("[gpu]\npolicy = \"{}\"\n", policy));
    WriteState(Ctl({"export"}));
    EXPECT_EQ("", Assert(0)) << policy << " as it starts";
  }
  Ctl({"set-gpu", "--policy", "reserve", "--base-slice", "3ms", "--group-weight", "3=200"});
  Ctl({"create", "a", "--vram", "65537KiB", "--guarantee", "12.5%", "--limit", "0.75", "--burst", "500us", "--group",
       "3"});
  Ctl({"create", "b", "--vram", "64MiB", "--slice", "4ms", "--priority", "2"});
  Ctl({"create", "c", "--vram", "64MiB", "--transient"});
  Ctl({"pause", "b"});
  const std::string text = Ctl({"export"});
  WriteState(text);
  EXPECT_EQ("", Apply(0)) << "nothing has to change";
  EXPECT_EQ("", Assert(0, {"--prune"})) << "transient ones are not counted";

  Start("");
  EXPECT_SAYS(Assert(7), "a is missing\n");
  const std::string would = Apply(7, {"--dry-run"});
  EXPECT_SAYS(would, "gpu policy is strict and should be reserve\n");
  EXPECT_SAYS(would, "b would be created\n");
  EXPECT_EQ("[]", Json::parse(Ctl({"list", "-o", "json"}))["vfs"].dump()) << "a dry run does nothing";
  EXPECT_SAYS(Apply(7), "a created\n");
  EXPECT_EQ("", Apply(0)) << "once is enough";
  EXPECT_EQ(text, Ctl({"export"}));
  EXPECT_EQ("paused", Vf("b")["state"]);
  bed_->Stop(SIGKILL);
  bed_->Start({"--policy", "reserve"});
  EXPECT_EQ(4000, Vf("b")["slice_us"]) << "and it is there after a restart";
}

TEST_F(StateFile, OnlyWhatTheFileMentionsIsChanged) {
  Start("");
  Ctl({"create", "a", "--vram", "64MiB", "--weight", "300", "--priority", "2"});
  Ctl({"create", "other", "--vram", "64MiB"});
  WriteState("[vf.a]\nweight = 200\n");
  EXPECT_EQ("a weight is 300 and should be 200\na slice_us is 6ms and should be 4ms\n", Assert(7));
  EXPECT_EQ(300, Vf("a")["weight"]) << "assert changes nothing";
  EXPECT_SAYS(Apply(7), "a weight 300 -> 200, effective at round ");
  EXPECT_EQ(2, Vf("a")["priority"]);
  EXPECT_EQ("", Assert(0));
  WriteState("[vf.a]\nvram = \"128MiB\"\n");
  EXPECT_EQ("a vram_bytes is 64MiB and should be 128MiB\n", Assert(7));
  EXPECT_SAYS(Apply(7), "a vram 64MiB -> 128MiB, effective at round ");
  EXPECT_EQ("", Assert(0));
  EXPECT_EQ("other should not be there\n", Assert(7, {"--prune"}));
  EXPECT_EQ("other would be destroyed\n", Apply(7, {"--prune", "--dry-run"}));
  EXPECT_EQ("other destroyed\n", Apply(7, {"--prune"}));
  EXPECT_EQ("", Apply(0, {"--prune"}));
  WriteState("[vf.a]\nweight = \"default\"\n[vf.new]\nprofile = \"1/8\"\nvram = \"64MiB\"\n");
  Apply(7);
  EXPECT_EQ(100, Vf("a")["weight"]);
  EXPECT_EQ(25, Vf("new")["weight"]);
  EXPECT_EQ("", Assert(0));
}

TEST_F(StateFile, ApplySucceedsAlsoWhereItChangesSomething) {
  Start("");
  Ctl({"create", "a", "--vram", "64MiB"});
  WriteState("[vf.a]\nweight = 200\n");
  EXPECT_SAYS(Ctl({"apply", "--file", state(), "--dry-run"}), "a weight is 100 and should be 200\n");
  EXPECT_SAYS(Ctl({"apply", "--file", state()}), "a weight 100 -> 200");
  EXPECT_EQ("", Ctl({"apply", "--file", state()})) << "nothing has to change";
  WriteState("[vf.a]\nweight = 250\n[vf.b]\nvram = \"64MiB\"\n");
  const Json expected = Json::parse(R"({"conflicts": [], "destroyed": [], "created": ["b"]})");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"assert"}, {"apply", "--dry-run"}, {"apply"}}) {
    std::vector<std::string> line = words;
    line.insert(line.end(), {"--file", state(), "-o", "json"});
    const Json answer = Json::parse(Ctl(line, words[0] == "assert" ? 7 : 0), nullptr, false);
    for (const auto& item : expected.items()) EXPECT_EQ(item.value(), answer.value(item.key(), Json())) << answer;
    EXPECT_EQ("weight", answer["changes"][0]["field"]) << answer;
  }
  const Json same = Json::parse(Ctl({"assert", "--file", state(), "-o", "json"}), nullptr, false);
  EXPECT_EQ(Json::array(), same["changes"]);
  Ctl({"apply", "a:weight=300"});
  Ctl({"apply", "a:weight=400", "--detailed-exitcode", "--dry-run"}, 7);
  Ctl({"apply", "a:weight=400", "--detailed-exitcode"}, 7);
  Ctl({"apply", "a:weight=400", "--detailed-exitcode"}, 0);
}

TEST_F(StateFile, WhatCannotBeIsRefusedAndNothingIsChanged) {
  Start("");
  Ctl({"create", "a", "--vram", "64MiB"});
  Ctl({"create", "fleeting", "--vram", "64MiB", "--transient"});
  WriteState("[vf.a]\ntenant = \"ml\"\nweight = 300\n[vf.fleeting]\nweight = 300\n[vf.b]\n");
  const std::string why = "a is of tenant (none) and should be of ml: destroy it first\n";
  EXPECT_SAYS(Apply(5), why);
  EXPECT_SAYS(Apply(5, {"--dry-run"}), "fleeting is transient and should not be: destroy it first\n");
  EXPECT_SAYS(Assert(7), why);
  EXPECT_EQ(100, Vf("a")["weight"]);
  WriteState("[vf.a]\nguarantee = 0.5\nweight = 300\n");
  EXPECT_SAYS(Apply(5), "policy strict has no guarantee");
  WriteState("[vf.a]\nweight = 99999999\n");
  EXPECT_SAYS(Apply(2), "weight 99999999 is out of range");
  EXPECT_EQ(100, Vf("a")["weight"]);
  WriteState(
      "[gpus]\n[gpu]\npolcy = \"strict\"\n[vf.a]\nwieght = 5\nvram = 64\npaused = 1\nlimit = \"much\"\n[vf.A]\nx = "
      "1\n");
  const std::string wrong = Apply(2);
  for (const char* part :
       {":1:2: \"gpus\" is no table here: did you mean gpu?", ":3:1: [gpu] has no key \"polcy\": did you mean policy?",
        ":5:1: [vf.a] has no key \"wieght\": did you mean weight?", ":6:1: vram must be an amount in quotes",
        ":7:1: paused must be true or false", ":8:1: limit \"much\" is not a part of the GPU",
        ": \"A\" is no VF: write [vf.NAME]"})
    EXPECT_SAYS(wrong, part);
  WriteState("[vf.a\n");
  EXPECT_SAYS(Assert(2), state() + ":1:");
  EXPECT_SAYS(Ctl({"assert", "--file", "/nowhere"}, 2), "cannot read /nowhere: No such file");
  EXPECT_SAYS(Ctl({"apply", "--file", state(), "a:weight=5"}, 2), "not both");
  Ctl({"assert"}, 2);
}

}  // namespace
}  // namespace vgpud::daemon
