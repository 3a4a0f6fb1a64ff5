// SPDX-License-Identifier: Apache-2.0
// Configuration files: what they set, in which order they count, and how what is wrong in them is refused.
#include "vgpud/config/config_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <regex>
#include <sstream>

#include "sched/knobs.h"
#include "tests/scratch_dir.h"
#include "vgpud/config/read_config.h"

namespace vgpud::daemon {
namespace {

namespace fs = std::filesystem;

class ConfigFileTest : public testing::Test {
 protected:
  ConfigFileTest() { file_ = directory_ / "vgpud.toml"; }
  void Write(const std::string& text) { Write("", text); }
  // "": the file itself, else one of its drop-ins.
  void Write(const std::string& drop_in, const std::string& text) {
    fs::create_directories(file_.native() + ".d");
    std::ofstream(drop_in.empty() ? file_ : fs::path(file_.native() + ".d") / drop_in) << text;
  }
  Result<Told> Read(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), "--config=" + file_.native());
    return ReadConfig(more);
  }
  // The error without the directory's name, "" if there is none.
  std::string WhyNot() const {
    const auto told = Read();
    if (told) return "";
    std::string text = told.error().context;
    for (size_t at; (at = text.find(directory_.native() + "/")) != std::string::npos;)
      text.erase(at, directory_.native().size() + 1);
    return text;
  }

  const ScratchDir scratch_;
  const fs::path directory_ = scratch_.path();
  fs::path file_;
};

TEST_F(ConfigFileTest, EachKeyIsAFlag) {
  Write(R"(
[daemon]
trace_turns = 4096
metrics_listen = "127.0.0.1:9000"
outside_turns_percent = 3.5
[gpu]
policy = "strict"
idle = "hold"
base_slice_us = 4000
soft_gpu_threads = 3
keep_cpu_awake = true
spin_us = 50
[event_budget]
opens = 7
doorbells = 0
)");
  const auto told = Read();
  ASSERT_TRUE(told) << told.error().context;
  const Config& config = told->config;
  EXPECT_EQ(4096u, config.scheduler.trace_slices);
  EXPECT_EQ("127.0.0.1:9000", config.metrics_listen);
  EXPECT_EQ(3.5, config.outside_turns_percent);
  EXPECT_EQ("strict", config.settings.policy);
  EXPECT_EQ(WhenIdle::kHold, config.settings.options.idle);
  EXPECT_EQ(4000u, KnobOf(config.settings.options, Knob::kBaseSlice));
  EXPECT_EQ(3u, config.soft_gpu_threads);
  EXPECT_TRUE(config.scheduler.waiter.keep_cpu_awake);
  EXPECT_EQ(Ns{50'000}, config.scheduler.waiter.spin);
  EXPECT_EQ(7u, config.event_budgets[static_cast<size_t>(GuardedEvent::kOpen)]);
  EXPECT_EQ(0u, config.event_budgets[static_cast<size_t>(GuardedEvent::kDoorbell)]);
  EXPECT_EQ("4000", told->values.at("gpu.base_slice_us"));
  EXPECT_EQ("2000", ReadConfig({})->values.at("gpu.base_slice_us"));
}

TEST_F(ConfigFileTest, DropInsCountMoreInTheOrderOfTheirNamesAndFlagsCountMost) {
  Write("[gpu]\nbase_slice_us = 3000\nsoft_gpu_threads = 2\nmax_spin_percent = 1\n");
  Write("20-late.toml", "[gpu]\nsoft_gpu_threads = 4\nmax_spin_percent = 2\n");
  Write("10-early.toml", "[gpu]\nsoft_gpu_threads = 3\n");
  Write("30-no.toml.bak", "what is this");
  const auto told = Read({"--max-spin-percent", "5"});
  ASSERT_TRUE(told) << told.error().context;
  EXPECT_EQ("3000", told->values.at("gpu.base_slice_us"));
  EXPECT_EQ("4", told->values.at("gpu.soft_gpu_threads"));
  EXPECT_EQ("5", told->values.at("gpu.max_spin_percent"));
}

TEST_F(ConfigFileTest, ProfilesAreTablesOfTheirOwn) {
  Write("[profile.small]\nvram = \"1GiB\"\nweight = 50\nguarantee = 0.1\n[profile.large]\nweight = 300\n");
  Write("10.toml", "[profile.small]\nweight = 60\n");
  const auto told = Read({"--profile", "large.weight=400", "--profile=other.limit=50%"});
  ASSERT_TRUE(told) << told.error().context;
  const Profiles& profiles = told->config.profiles;
  const Profile* small = *FindProfile(profiles, "small");
  EXPECT_EQ(uint64_t{1} << 30, small->vram_bytes);
  ASSERT_EQ(2u, small->knobs.size());
  EXPECT_EQ(60u, small->knobs[1].value) << "a drop-in changes one key";
  EXPECT_EQ(400u, (*FindProfile(profiles, "large"))->knobs[0].value);
  EXPECT_EQ("60", told->values.at("profile.small.weight"));
  EXPECT_EQ(file_.native() + ".d/10.toml:2", told->origins.at("profile.small.weight"));
  EXPECT_EQ(file_.native() + ":2", told->origins.at("profile.small.vram"));
  EXPECT_EQ("flag", told->origins.at("profile.large.weight"));
  EXPECT_EQ("default", told->origins.at("gpu.policy"));
  EXPECT_EQ(7u, profiles.size()) << "with the four built-in ones";
}

TEST_F(ConfigFileTest, AFileThatWasNamedMustBeThere) {
  EXPECT_EQ("cannot read vgpud.toml: No such file or directory", WhyNot());
}

struct Wrong {
  const char* name;
  const char* text;
  const char* why;
};
class WrongConfig : public ConfigFileTest, public testing::WithParamInterface<Wrong> {};
TEST_P(WrongConfig, IsRefusedWithItsPlace) {
  Write(GetParam().text);
  EXPECT_EQ(GetParam().why, WhyNot().substr(0, std::string(GetParam().why).size()));
}
INSTANTIATE_TEST_SUITE_P(
    , WrongConfig,
    testing::Values(
        Wrong{"nearly_a_key", "[gpu]\n  polcy = \"strict\"",
              "vgpud.toml:2:3: [gpu] has no key \"polcy\": did you mean policy?"},
        Wrong{"no_key_at_all", "[event_budget]\nx_y_z_a_b_c = 1",
              "vgpud.toml:2:1: [event_budget] has no key \"x_y_z_a_b_c\": there are bad_messages, commands, "},
        Wrong{"nearly_a_table", "[gpus]\npolicy = 1", "vgpud.toml:1:2: \"gpus\" is no table here: did you mean gpu?"},
        Wrong{"key_outside_of_tables", "policy = \"strict\"",
              "vgpud.toml:1:1: \"policy\" is no table here: there are calendar, daemon, event_budget, gpu, "
              "profile, site, tenant, user"},
        Wrong{"no_table", "gpu = 1", "vgpud.toml:1:1: gpu is a table: write [gpu] and its keys below"},
        Wrong{"out_of_range", "[gpu]\nsoft_gpu_threads = 999",
              "vgpud.toml:2:1: [gpu] soft_gpu_threads = 999: Value 999 not in range 0 to 256"},
        Wrong{"knob_out_of_range", "[gpu]\nbase_slice_us = 1",
              "vgpud.toml:2:1: [gpu] base_slice_us = 1: base_slice_us 1 is out of range: allowed is 100 to "},
        Wrong{"knob_below_nothing", "[gpu]\nmax_wait_us = -9223372036854775808",
              "vgpud.toml:2:1: [gpu] max_wait_us = -9223372036854775808: -9223372036854775808 is out of range: allowed "
              "is"},
        Wrong{"character_0", "[gpu]\nidle = \"hold\\u0000\"", "vgpud.toml:2:1: [gpu] idle: no text has a character 0"},
        Wrong{"no_number", "[gpu]\nbase_slice_us = \"soon\"",
              "vgpud.toml:2:1: [gpu] base_slice_us = soon: Could not convert: --base-slice-us = soon"},
        Wrong{"no_policy", "[gpu]\npolicy = \"fair\"",
              "vgpud.toml:2:1: [gpu] policy = fair: policy \"fair\" does not exist: there are strict, "},
        Wrong{"list", "[gpu]\npolicy = [1]",
              "vgpud.toml:2:1: [gpu] policy: must be text in quotes, a number, true or false"},
        Wrong{"no_profile", "[profile]\nsmall = 5",
              "vgpud.toml:2:1: \"small\" is no profile: write [profile.NAME] and"},
        Wrong{"profile_key", "[profile.small]\nwieght = 5",
              "vgpud.toml:2:1: [profile.small] has no key \"wieght\": did you mean weight?"},
        Wrong{"profile_name", "[profile.\"1/2\"]\nweight = 5",
              "vgpud.toml:2:1: [profile.1/2] weight = 5: profile name \"1/2\" is not usable"},
        Wrong{"profile_value", "[profile.small]\nweight = 50\nvram = 1024",
              "vgpud.toml:3:1: [profile.small] vram = 1024: vram \"1024\" has no unit"},
        Wrong{"a_gpu_by_a_slip", "[gpu]\nidlie = {}", "vgpud.toml:2:1: [gpu] has no key \"idlie\": did you mean idle?"},
        Wrong{"tenant_key", "[tenant.a]\nvrma = \"1GiB\"",
              "vgpud.toml:2:1: [tenant.a] has no key \"vrma\": did you mean vram?"},
        Wrong{"tenant_value", "[tenant.a]\nvfs = -1",
              "vgpud.toml:2:1: [tenant.a] vfs = -1: tenant a: vfs: \"-1\" is not a number from 0 to 1024"},
        Wrong{"no_user", "[user.\"no such\"]\nmay = \"look\"",
              "vgpud.toml:2:1: [user.no such] may = look: user \"no such\""},
        Wrong{"no_right", "[user.65534]\nmay = \"lok\"", "vgpud.toml:2:1: [user.65534] may = lok: \"lok\" is unknown"},
        Wrong{"period_key", "[calendar.night]\nform = \"22:00\"",
              "vgpud.toml:2:1: [calendar.night] has no key \"form\": did you mean from?"},
        Wrong{"period_time", "[calendar.night]\nfrom = 22",
              "vgpud.toml:2:1: [calendar.night] from = 22: from \"22\" is no time of the day"},
        Wrong{"period_vf_key", "[calendar.night.vf.a]\nwieght = 1",
              "vgpud.toml:2:1: [calendar.night.vf.a] has no key \"wieght\": did you mean weight?"},
        Wrong{"period_no_vf", "[calendar.night.vf]\nweight = 1",
              "vgpud.toml:2:1: \"weight\" is no calendar.night.vf: write [calendar.night.vf.NAME]"},
        Wrong{"period_gpu_key", "[calendar.night.gpu.one]\npolcy = \"strict\"",
              "vgpud.toml:2:1: [calendar.night.gpu.one] has no key \"polcy\": did you mean policy?"},
        Wrong{"budget", "[event_budget]\nopens = -1", "vgpud.toml:2:1: [event_budget] opens = -1: event budget"},
        Wrong{"only_for_a_command_line", "[process]\nready_fd = 3", "vgpud.toml:1:2: \"process\" is no table here"},
        Wrong{"no_toml", "[gpu\n", "vgpud.toml:1:"},
        Wrong{"twice", "[gpu]\nidle = \"hold\"\nidle = \"hold\"", "vgpud.toml:3:"}),
    [](const auto& wrong) { return wrong.param.name; });

TEST_F(ConfigFileTest, TenantsUsersAndACalendarAreTables) {
  Write(R"(
[daemon]
others_may = "nothing"
[site]
priority = 2
[tenant.a]
vfs = 4
guarantee = 0.5
[user.65534]
may = "manage"
tenant = "a"
[calendar.night]
days = "mon-fri"
from = "22:00"
to = "06:00"
[calendar.night.vf.x]
weight = 800
paused = false
[calendar.night.gpu]
base_slice_us = 4000
)");
  const auto told = Read();
  ASSERT_TRUE(told) << told.error().context;
  ASSERT_EQ(1U, told->config.tenants.size());
  EXPECT_EQ(4U, told->config.tenants[0].quota.together[Resource::kVfs]);
  EXPECT_EQ(500'000U, told->config.tenants[0].quota.together[Resource::kGuarantee]);
  EXPECT_EQ(2U, told->config.site.quota.each[Resource::kPriority]);
  EXPECT_EQ("a", RightsOf(told->config.access, 65534, 5).tenant);
  EXPECT_EQ(May::kNothing, told->config.access.others);
  ASSERT_EQ(1U, told->config.calendar.size());
  EXPECT_EQ("mon-fri 22:00 to 06:00", told->config.calendar[0].When());
  EXPECT_EQ(3U, told->config.calendar[0].settings.size());
  EXPECT_EQ("800", told->values.at("calendar.night.vf.x.weight"));
  for (const char* key :
       {"tenant.a.vfs", "site.priority", "user.65534.may", "calendar.night.vf.x.weight", "daemon.others_may"})
    EXPECT_TRUE(TakesEffectNow(key)) << key;
}

TEST_F(ConfigFileTest, WhatTablesSayTogetherIsChecked) {
  Write("[user.65534]\ntenant = \"a\"");
  EXPECT_EQ("user 65534: say what he may: may = \"manage\", \"look\" or \"nothing\"", WhyNot());
  Write("[user.65534]\nmay = \"manage\"\ntenant = \"b\"\n[tenant.a]\nvfs = 1");
  EXPECT_EQ("user 65534: there is no tenant \"b\": there are a, slurm, kubernetes", WhyNot());
  Write("[calendar.night]\nfrom = \"22:00\"");
  EXPECT_EQ("calendar night: it changes nothing", WhyNot());
  Write("[calendar.night.gpu.two]\nidle = \"hold\"\n[gpu.one]\n");
  EXPECT_EQ("calendar night: there is no gpu \"two\": there are one", WhyNot());
  Write("[calendar.night.gpu]\nidle = \"hold\"\n[gpu.one]\n[gpu.two]\n");
  EXPECT_EQ("calendar night: there are 2 GPUs, say which one: gpu.NAME.idle", WhyNot());
}

TEST_F(ConfigFileTest, AllThatIsWrongInAFileIsSaidAtOnce) {
  Write("[gpu]\na = 1\nsoft_gpu_threads = -1\n[daemon]\nb = 1\n");
  const std::string why = WhyNot();
  EXPECT_EQ(2, std::count(why.begin(), why.end(), '\n')) << why;
}

TEST_F(ConfigFileTest, WhatOthersMayWriteIsNotBelieved) {
  Write("[gpu]\nidle = \"hold\"");
  fs::permissions(file_, fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(
      "vgpud.toml: somebody else may write to it; give it to root or to yourself, and see that others may not "
      "write (chmod go-w)",
      WhyNot());
}

TEST_F(ConfigFileTest, AGroupOfOthersMayNotWriteEither) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives a file to another group";
  Write("[gpu]\nidle = \"hold\"");
  fs::permissions(file_, fs::perms::group_write, fs::perm_options::add);
  EXPECT_EQ("", WhyNot()) << "its own";
  ASSERT_EQ(0, ::chown(file_.c_str(), 0, 12'345));
  EXPECT_EQ(0u, WhyNot().find("vgpud.toml: somebody else may write to it"));
}

TEST_F(ConfigFileTest, WhatIsNoFileOrTooLongIsRefused) {
  fs::create_directory(file_);
  EXPECT_EQ("vgpud.toml: is no ordinary file", WhyNot());
  fs::remove(file_);
  Write(std::string((1 << 20) + 1, '#'));
  EXPECT_EQ("vgpud.toml: has 1048577 bytes, more than 1048576", WhyNot());
}

// Right files with one byte changed, cut off, or lines of others: right, or refused with a place in the file; never
// anything else.
TEST_F(ConfigFileTest, GeneratedFilesAreRightOrRefusedWithTheirPlace) {
  const std::string right =
      "[gpu]\npolicy = \"strict\"\nbase_slice_us = 2000\nkeep_cpu_awake = false\n[event_budget]\nopens = 50\n"
      "[daemon]\noutside_turns_percent = 2.0\ntrace_turns = 1000\n";
  const std::array<std::string, 10> junk = {"[",  "]",       "=",   "\"", "\n", "999999999999999999999",
                                            "-1", "[[gpu]]", "nan", "{"};
  const std::regex placed("vgpud\\.toml:[0-9]+:[0-9]+: .+");
  std::mt19937_64 random(20261123);
  int refused = 0;
  constexpr int kTries = 2000;
  for (int i = 0; i < kTries; ++i) {
    std::string text = right;
    for (uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      const size_t at = random() % std::max<size_t>(text.size(), 1);
      switch (random() % 4) {
        case 0:
          text.replace(at, 1, 1, static_cast<char>(random() % 128));
          break;
        case 1:
          text.erase(at, 1 + random() % 5);
          break;
        case 2:
          text.insert(at, junk[random() % junk.size()]);
          break;
        default:
          text.resize(at);
      }
    }
    Write(text);
    const std::string why = WhyNot();
    if (why.empty()) continue;
    ++refused;
    std::istringstream lines(why);
    for (std::string line; std::getline(lines, line);)
      EXPECT_TRUE(std::regex_match(line, placed)) << line << "\nof\n" << text;
  }
  EXPECT_GT(refused, kTries / 4);
  EXPECT_LT(refused, kTries);
}

TEST_F(ConfigFileTest, AReloadChangesOnlyWhatDiffers) {
  Write("[gpu]\nbase_slice_us = 3000\nidle = \"yield\"\nsoft_gpu_threads = 2\n");
  const auto before = Read();
  ASSERT_TRUE(before);
  EXPECT_TRUE(PlanReload(*before, *before).now.empty());
  EXPECT_TRUE(PlanReload(*before, *before).at_restart.empty());
  Write("[gpu]\nbase_slice_us = 4000\nsoft_gpu_threads = 3\npolicy = \"relaxed\"\n[event_budget]\nopens = 1\n");
  const auto after = Read();
  ASSERT_TRUE(after);
  const Reload reload = PlanReload(*before, *after);
  const auto texts = [](const std::vector<ConfigChange>& changes) {
    std::vector<std::string> all;
    for (const ConfigChange& change : changes) all.push_back(change.Text());
    return all;
  };
  EXPECT_EQ((std::vector<std::string>{"gpu.base_slice_us 3000 -> 4000", "gpu.policy strict -> relaxed"}),
            texts(reload.now));
  EXPECT_EQ((std::vector<std::string>{"event_budget.opens 50 -> 1", "gpu.soft_gpu_threads 2 -> 3"}),
            texts(reload.at_restart));
  EXPECT_EQ("relaxed", reload.gpu.policy);
  EXPECT_FALSE(reload.gpu.idle);
  ASSERT_EQ(1u, reload.gpu.knobs.size());
  EXPECT_EQ(Knob::kBaseSlice, reload.gpu.knobs[0].knob);
  EXPECT_EQ(4000u, reload.gpu.knobs[0].value);
}

TEST_F(ConfigFileTest, EachTableInGpuIsAGpu) {
  Write(R"(
[gpu]
base_slice_us = 3000
soft_gpu_vram = "16GiB"
[gpu.right]
soft_gpu_vram = "8GiB"
policy = "reserve"
numa_node = 1
[gpu.left]
)");
  const auto told = Read({"--with-gpu=left.base_slice_us=5000"});
  ASSERT_TRUE(told) << told.error().context;
  const auto& gpus = told->config.gpus;
  ASSERT_EQ(2u, gpus.size());
  EXPECT_EQ("left", gpus[0].name);
  EXPECT_EQ(5000u, KnobOf(gpus[0].settings.options, Knob::kBaseSlice)) << "the command line counts most";
  EXPECT_EQ("strict", gpus[0].settings.policy);
  EXPECT_EQ(uint64_t{16} << 30, gpus[0].gpu_vram_bytes);
  EXPECT_FALSE(gpus[0].numa_node);
  EXPECT_EQ("right", gpus[1].name);
  EXPECT_EQ(3000u, KnobOf(gpus[1].settings.options, Knob::kBaseSlice)) << "as of [gpu]";
  EXPECT_EQ("reserve", gpus[1].settings.policy);
  EXPECT_EQ(uint64_t{8} << 30, gpus[1].gpu_vram_bytes);
  EXPECT_EQ(uint64_t{4} << 30, *FindProfile(gpus[1].profiles, "1/2").value()->vram_bytes);
  EXPECT_EQ(1, gpus[1].numa_node);
  EXPECT_EQ("reserve", told->values.at("gpu.right.policy"));
  EXPECT_EQ(file_.native() + ":7", told->origins.at("gpu.right.policy"));
  EXPECT_EQ("served", told->values.at("gpu.left"));
  EXPECT_EQ(kFromFlag, told->origins.at("gpu.left.base_slice_us"));
}

TEST_F(ConfigFileTest, WithoutSuchTablesThereIsOneGpu) {
  Write("[gpu]\nbase_slice_us = 3000\n");
  const auto told = Read();
  ASSERT_TRUE(told);
  ASSERT_EQ(1u, told->config.gpus.size());
  EXPECT_EQ(kUnnamedGpu, told->config.gpus[0].name);
  EXPECT_EQ(3000u, KnobOf(told->config.gpus[0].settings.options, Knob::kBaseSlice));
}

TEST_F(ConfigFileTest, AGpuThatIsWrongIsNamedWithItsPlace) {
  Write("[gpu.One]\n[gpu.two]\nbase_slice = 1\nsoft_gpu_threads = 999\n[gpu.two.three]\n");
  const std::string why = WhyNot();
  for (const char* part : {"vgpud.toml:1:6: [gpu.One]: GPU name \"One\" is not usable",
                           "vgpud.toml:3:1: [gpu.two] has no key \"base_slice\": did you mean base_slice_us?",
                           "vgpud.toml:4:1: [gpu.two] soft_gpu_threads = 999: Value 999 not in range 0 to 256",
                           "[gpu.two] has no key \"three\""})
    EXPECT_NE(std::string::npos, why.find(part)) << part << "\nin\n" << why;
  Write("[gpu.two]\npolicy = \"reserve\"\nidle = \"hold\"\n");
  EXPECT_EQ("GPU two: policy reserve has no idle hold: set idle to yield, or use another policy", WhyNot());
}

TEST_F(ConfigFileTest, AReloadChangesTheGpuThatDiffers) {
  Write("[gpu.a]\nbase_slice_us = 3000\n[gpu.b]\n");
  const auto before = Read();
  ASSERT_TRUE(before);
  Write("[gpu.a]\nbase_slice_us = 3500\n[gpu.c]\npolicy = \"reserve\"\n");
  const auto after = Read();
  ASSERT_TRUE(after);
  const Reload reload = PlanReload(*before, *after);
  ASSERT_EQ(1u, reload.gpus.size());
  EXPECT_EQ("a", reload.gpus[0].first);
  ASSERT_EQ(1u, reload.gpus[0].second.knobs.size());
  EXPECT_EQ(3500u, reload.gpus[0].second.knobs[0].value);
  EXPECT_FALSE(reload.gpu.policy);
  std::vector<std::string> later;
  for (const ConfigChange& change : reload.at_restart) later.push_back(change.Text());
  EXPECT_EQ((std::vector<std::string>{"gpu.b served -> (none)", "gpu.c (none) -> served"}), later);
}

}  // namespace
}  // namespace vgpud::daemon
