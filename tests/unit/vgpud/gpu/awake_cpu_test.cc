// SPDX-License-Identifier: Apache-2.0
#include "vgpud/gpu/awake_cpu.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

namespace vgpud::daemon {
namespace {

// The thread of the awake CPU, once it has its name.
std::optional<pid_t> Find() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name == "awake-cpu") return std::stoi(task.path().filename());
  }
  return std::nullopt;
}

char State(pid_t tid) {
  std::string text;
  std::getline(std::ifstream("/proc/self/task/" + std::to_string(tid) + "/stat"), text);
  return text.at(text.rfind(')') + 2);
}

TEST(AwakeCpuTest, ItComputesWhenWantedAndOnlyForWantOfAnythingElse) {
  cpu_set_t allowed;
  ASSERT_EQ(0, ::sched_getaffinity(0, sizeof allowed, &allowed));
  int cpu = 0;
  while (!CPU_ISSET(cpu, &allowed)) ++cpu;
  AwakeCpu awake(cpu);
  std::optional<pid_t> thread;
  while (!(thread = Find())) std::this_thread::yield();
  while (State(*thread) != 'S') std::this_thread::yield();
  awake.Keep(true);
  while (State(*thread) != 'R') std::this_thread::yield();
  EXPECT_EQ(SCHED_IDLE, ::sched_getscheduler(*thread));
  cpu_set_t its;
  ASSERT_EQ(0, ::sched_getaffinity(*thread, sizeof its, &its));
  EXPECT_EQ(1, CPU_COUNT(&its));
  EXPECT_TRUE(CPU_ISSET(cpu, &its));
  awake.Keep(false);
  while (State(*thread) != 'S') std::this_thread::yield();
}

}  // namespace
}  // namespace vgpud::daemon
