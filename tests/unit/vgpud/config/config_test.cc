// SPDX-License-Identifier: Apache-2.0
// What the daemon runs with when nothing was said, and where it looks for what it needs.
#include "vgpud/config/config.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "tests/scratch_dir.h"

namespace vgpud::daemon {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class ConfigTest : public testing::Test {
 protected:
  ConfigTest() {
    for (const char* name : kNames)
      before_.push_back(std::getenv(name) != nullptr ? std::optional<std::string>(std::getenv(name)) : std::nullopt);
    ::setenv("VGPUD_LIBEXEC", directory_.c_str(), 1);
    ::setenv("VGPUD_RUNTIME_DIR", "/r", 1);
    ::unsetenv("VGPUD_STATE_DIR");
  }
  ~ConfigTest() override {
    for (size_t i = 0; i < std::size(kNames); ++i)
      before_[i] ? ::setenv(kNames[i], before_[i]->c_str(), 1) : ::unsetenv(kNames[i]);
  }
  void Program(const char* name) {
    std::ofstream(directory_ / name) << "#!/bin/sh\n";
    fs::permissions(directory_ / name, static_cast<fs::perms>(0755));
  }
  static constexpr const char* kNames[] = {"VGPUD_LIBEXEC", "VGPUD_RUNTIME_DIR", "VGPUD_STATE_DIR"};
  std::vector<std::optional<std::string>> before_;
  const ScratchDir scratch_;
  const fs::path directory_ = scratch_.path();
};

TEST_F(ConfigTest, WhatHoldsWhenNothingWasSaid) {
  const Config config;
  EXPECT_EQ(5s, config.history_interval);
  EXPECT_EQ("soft", config.gpu.gpu);
  EXPECT_EQ(0u, config.soft_gpu_threads);
  EXPECT_EQ("7.5", config.soft_gpu_capability);
  EXPECT_EQ(1'879'080'000u, config.first_vf_user);
  EXPECT_EQ(2.0, config.outside_turns_percent);
  EXPECT_EQ(-1, config.ready_fd);
  EXPECT_EQ((EventBudgets{50'000, 20'000, 50, 50, 200, 200'000, 20, 50'000, 16'384}), config.event_budgets);
  EXPECT_EQ("strict", config.settings.policy);
}

TEST_F(ConfigTest, WhatIsMissingIsFilledInAndWhatWasSaidStays) {
  Program("vgpud-vf");
  Program("vgpud-exec");
  Config config;
  ASSERT_TRUE(ResolveConfig(config));
  EXPECT_EQ("/r", config.runtime_dir);
  EXPECT_GT(config.host_ram_bytes, uint64_t{64} << 20) << "of this host";
  EXPECT_EQ("/r/state", config.state_dir);
  EXPECT_EQ(directory_ / "vgpud-vf", config.vf_program);
  EXPECT_EQ(directory_ / "vgpud-exec", config.exec_program);
  cpu_set_t allowed;
  ASSERT_EQ(0, ::sched_getaffinity(0, sizeof allowed, &allowed));
  EXPECT_EQ(SoftGpuThreadsFor(static_cast<uint32_t>(CPU_COUNT(&allowed))), config.soft_gpu_threads);
  ::setenv("VGPUD_STATE_DIR", "/s", 1);
  Config other;
  other.runtime_dir = "/run/vgpud";
  other.soft_gpu_threads = 7;
  ASSERT_TRUE(ResolveConfig(other));
  EXPECT_EQ("/run/vgpud", other.runtime_dir);
  EXPECT_EQ("/s", other.state_dir);
  EXPECT_EQ(7u, other.soft_gpu_threads);
  ::setenv("VGPUD_STATE_DIR", "", 1);
  other.state_dir.clear();
  ASSERT_TRUE(ResolveConfig(other));
  EXPECT_EQ("/var/lib/vgpud", other.state_dir) << "of the system's daemon";
  other.state_dir = "/mine";
  ASSERT_TRUE(ResolveConfig(other));
  EXPECT_EQ("/mine", other.state_dir);
}

TEST_F(ConfigTest, HelpersThatAreMissingAreNamedWithThePlaces) {
  Program("vgpud-vf");
  Config config;
  auto resolved = ResolveConfig(config);
  ASSERT_FALSE(resolved);
  EXPECT_EQ("helper program vgpud-exec not found (looked at " + (directory_ / "vgpud-exec").string() +
                "); build it or set VGPUD_LIBEXEC to its directory",
            resolved.error().context);
  fs::permissions(directory_ / "vgpud-vf", static_cast<fs::perms>(0644));
  resolved = ResolveConfig(config);
  ASSERT_FALSE(resolved);
  EXPECT_NE(std::string::npos, resolved.error().context.find("vgpud-vf not found")) << "it cannot be run";
  // Beside this program, which is the test: as built, or as installed.
  ::setenv("VGPUD_LIBEXEC", "", 1);
  resolved = ResolveConfig(config);
  const std::string own = fs::read_symlink("/proc/self/exe").parent_path();
  if (resolved) GTEST_SKIP() << "there are some";
  EXPECT_NE(std::string::npos, resolved.error().context.find("(looked at " + own + "/../vfio/vgpud-vf, " + own +
                                                             "/../libexec/vgpud/vgpud-vf)"))
      << resolved.error().context;
}

TEST_F(ConfigTest, APortBelow1024NeedsACapability) {
  Config config;
  const std::pair<const char*, bool> kAddresses[] = {{"", false},
                                                     {"127.0.0.1", false},
                                                     {"127.0.0.1:80", true},
                                                     {"1.2.3.4:1023", true},
                                                     {"1.2.3.4:1024", false},
                                                     {"[::1]:443", true},
                                                     {"[::1]:9464", false}};
  for (const auto& [address, low] : kAddresses) {
    config.metrics_listen = address;
    EXPECT_EQ(low, config.metrics_on_low_port()) << address;
  }
}

}  // namespace
}  // namespace vgpud::daemon
