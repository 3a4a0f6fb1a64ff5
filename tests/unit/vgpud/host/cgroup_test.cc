// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/scratch_dir.h"
#include "vgpud/host/cgroup_file.h"
#include "vgpud/host/cgroup_tree.h"
#include "vgpud/host/vf_cgroup.h"

namespace vgpud::daemon {
namespace {

namespace fs = std::filesystem;

// A directory that looks like the kernel's, but for what the kernel does by itself: files of new groups are not there,
// so the test makes those that it wants to see written.
class CgroupTest : public testing::Test {
 protected:
  void Put(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  std::string Get(const std::string& file) {
    std::stringstream text;
    text << std::ifstream(root_ / file).rdbuf();
    return text.str();
  }
  CgroupTree::Host Host(const std::string& self) { return {root_, self, 4711, "vgpud-1"}; }
  static std::string WhyNot(const CgroupTree& tree, const std::string& name) {
    for (const Protection& row : tree.Describe())
      if (row.name == name) return row.in_force ? "" : row.why_not;
    return "no such row";
  }
  static constexpr const char* kAll[] = {"cgroup-cpu", "cgroup-cpu-account", "cgroup-memory", "cgroup-pids"};

  void MakeVersion1() {
    for (const char* file : {"cpu,cpuacct/own/vgpud/vgpud-1/cpu.shares", "cpu,cpuacct/own/vgpud/cpu.shares",
                             "memory/own/vgpud/vgpud-1/x", "pids/own/vgpud/vgpud-1/x"})
      Put(file, "");
  }
  static constexpr const char* kVersion1 = "7:pids:/own\n5:memory:/own\n3:cpu,cpuacct:/own\n1:name=systemd:/\n0::/\n";
  void MakeVersion2() {
    Put("own/cgroup.controllers", "cpuset cpu io memory pids\n");
    Put("own/cgroup.procs", "4711\n");
    for (const char* file :
         {"own/cgroup.subtree_control", "own/vgpud-1/cgroup.subtree_control", "own/vgpud-1/cpu.weight",
          "own/vgpud-1.daemon/cgroup.procs", "own/vgpud-1.daemon/cpu.weight"})
      Put(file, "");
  }
  const ScratchDir scratch_;
  const fs::path root_ = scratch_.path();
};

TEST_F(CgroupTest, Version2IsUsedWhereItsControllersAreGivenToUs) {
  MakeVersion2();
  const CgroupTree tree(Host("0::/own\n"));
  EXPECT_EQ(2, tree.version());
  for (const char* name : kAll) EXPECT_EQ("", WhyNot(tree, name)) << name;
  EXPECT_EQ("4711", Get("own/vgpud-1.daemon/cgroup.procs")) << "no process beside groups with controllers";
  EXPECT_EQ("+cpu +memory +pids", Get("own/cgroup.subtree_control"));
  EXPECT_EQ("+cpu +memory +pids", Get("own/vgpud-1/cgroup.subtree_control"));
  EXPECT_NE("", Get("own/vgpud-1/cpu.weight"));
  EXPECT_GE(std::stoi(Get("own/vgpud-1.daemon/cpu.weight")), std::stoi(Get("own/vgpud-1/cpu.weight")))
      << "vgpud is not starved by its VFs";
}

TEST_F(CgroupTest, InTheSubgroupThatSystemdMadeItStaysAndVfsAreBesideIt) {
  MakeVersion2();
  Put("own/vgpud-daemon/cgroup.procs", "4711\n4712\n");  // vgpud-keep of the vgpud before
  Put("own/vgpud-daemon/cgroup.controllers", "");
  Put("own/vgpud-daemon/cpu.weight", "");
  Put("own/cgroup.procs", "");
  {
    const CgroupTree tree(Host("0::/own/vgpud-daemon\n"));
    EXPECT_EQ(2, tree.version());
    EXPECT_EQ("+cpu +memory +pids", Get("own/cgroup.subtree_control"));
    EXPECT_EQ(root_ / "own/vgpud-1", tree.parent(CgroupController::kPids));
    EXPECT_NE("", Get("own/vgpud-daemon/cpu.weight"));
  }
  EXPECT_EQ("4711\n4712\n", Get("own/vgpud-daemon/cgroup.procs")) << "it never moves";
}

TEST_F(CgroupTest, Version2InASharedGroupIsRefusedWithTheNextStep) {
  MakeVersion2();
  Put("own/cgroup.procs", "1\n4711\n");
  const CgroupTree tree(Host("0::/own\n"));
  EXPECT_EQ(0, tree.version());
  EXPECT_NE(std::string::npos, WhyNot(tree, "cgroup-memory").find("Delegate=yes")) << WhyNot(tree, "cgroup-memory");
  EXPECT_EQ("", Get("own/vgpud-1.daemon/cgroup.procs")) << "nobody was moved";
}

TEST_F(CgroupTest, AControllerThatVersion2LacksIsSaid) {
  MakeVersion2();
  Put("own/cgroup.controllers", "memory pids\n");
  const CgroupTree tree(Host("0::/own\n"));
  EXPECT_EQ(2, tree.version());
  EXPECT_NE("", WhyNot(tree, "cgroup-cpu"));
  EXPECT_EQ("", WhyNot(tree, "cgroup-pids"));
}

TEST_F(CgroupTest, Version1IsUsedWhereVersion2HasNoControllers) {
  MakeVersion1();
  Put("cgroup.controllers", "");
  const CgroupTree tree(Host(kVersion1));
  EXPECT_EQ(1, tree.version());
  for (const char* name : kAll) EXPECT_EQ("", WhyNot(tree, name)) << name;
  EXPECT_EQ(root_ / "cpu,cpuacct/own/vgpud/vgpud-1", tree.parent(CgroupController::kCpuAccount));
}

TEST_F(CgroupTest, ADaemonInTheRootGroupIsKnownWhereVfsHaveGroupsForProcessors) {
  MakeVersion1();
  EXPECT_FALSE(CgroupTree(Host(kVersion1)).leaves_daemon_in_root());
  Put("cpu,cpuacct/vgpud/x", "");
  EXPECT_TRUE(CgroupTree(Host("7:pids:/own\n3:cpu,cpuacct:/\n")).leaves_daemon_in_root());
  EXPECT_FALSE(CgroupTree(Host("7:pids:/own\n3:nothing:/\n")).leaves_daemon_in_root());
  MakeVersion2();
  EXPECT_FALSE(CgroupTree(Host("0::/own\n")).leaves_daemon_in_root());
  for (const char* file : {"cgroup.subtree_control", "vgpud-1/cgroup.subtree_control", "vgpud-1/cpu.weight"})
    Put(file, "");
  Put("cgroup.controllers", "cpu memory pids\n");
  EXPECT_TRUE(CgroupTree(Host("0::/\n")).leaves_daemon_in_root());
}

TEST_F(CgroupTest, WithoutControlGroupsNothingIsLimitedAndThatIsSaid) {
  for (const char* self : {"", "0::/own\n", "nonsense", "3:cpu:/../../etc\n"}) {
    const CgroupTree tree(Host(self));
    EXPECT_EQ(0, tree.version()) << self;
    for (const char* name : kAll) EXPECT_NE("", WhyNot(tree, name)) << self;
    const VfCgroup group(tree, "a", VfCgroup::LimitsFor(1, 1, 1));
    EXPECT_EQ("", group.problem());
    EXPECT_TRUE(group.Mover()(4712));
    EXPECT_FALSE(group.CpuTime());
  }
}

TEST_F(CgroupTest, LeftoversOfAnEarlierDaemonAreRemoved) {
  MakeVersion1();
  fs::create_directories(root_ / "pids/own/vgpud/vgpud-1/old");
  Put("pids/own/vgpud/vgpud-1/alive/cgroup.procs", "5");  // not empty, like a group with processes
  const CgroupTree tree(Host(kVersion1));
  EXPECT_FALSE(fs::exists(root_ / "pids/own/vgpud/vgpud-1/old"));
  EXPECT_TRUE(fs::exists(root_ / "pids/own/vgpud/vgpud-1/alive"));
}

TEST_F(CgroupTest, AVfIsLimitedInEachHierarchyOfVersion1) {
  MakeVersion1();
  const CgroupTree tree(Host(kVersion1));
  for (const char* file : {"pids/own/vgpud/vgpud-1/a/pids.max", "memory/own/vgpud/vgpud-1/a/memory.limit_in_bytes",
                           "pids/own/vgpud/vgpud-1/a/cgroup.procs", "memory/own/vgpud/vgpud-1/a/cgroup.procs",
                           "cpu,cpuacct/own/vgpud/vgpud-1/a/cgroup.procs"})
    Put(file, "");
  Put("cpu,cpuacct/own/vgpud/vgpud-1/a/cpuacct.usage", "123456789\n");
  const VfCgroup group(tree, "a", {.pids = 99, .memory_bytes = 1 << 20, .cpus = 1'000'000});
  EXPECT_EQ("", group.problem());
  EXPECT_EQ("99", Get("pids/own/vgpud/vgpud-1/a/pids.max"));
  EXPECT_EQ("1048576", Get("memory/own/vgpud/vgpud-1/a/memory.limit_in_bytes"));
  EXPECT_TRUE(group.Mover()(4712));
  for (const char* controller : {"pids", "memory", "cpu,cpuacct"})
    EXPECT_EQ("4712", Get(fmt::format("{}/own/vgpud/vgpud-1/a/cgroup.procs", controller)));
  EXPECT_EQ(Ns{123456789}, group.CpuTime());
}

TEST_F(CgroupTest, AVfIsLimitedInItsOneGroupOfVersion2) {
  MakeVersion2();
  const CgroupTree tree(Host("0::/own\n"));
  for (const char* file : {"pids.max", "memory.max", "memory.oom.group", "cpu.max", "cgroup.procs"})
    Put(fmt::format("own/vgpud-1/a/{}", file), "");
  Put("own/vgpud-1/a/cpu.stat", "nr_periods 0\nusage_usec 1500\nuser_usec 7\n");
  const VfCgroup group(tree, "a", {.pids = 99, .memory_bytes = 1 << 20, .cpus = 0});
  EXPECT_EQ("", group.problem());
  EXPECT_EQ("99", Get("own/vgpud-1/a/pids.max"));
  EXPECT_EQ("1048576", Get("own/vgpud-1/a/memory.max"));
  EXPECT_EQ("0", Get("own/vgpud-1/a/memory.oom.group")) << "one executor ends, not the VF";
  EXPECT_EQ("0 100000", Get("own/vgpud-1/a/cpu.max"));
  EXPECT_TRUE(group.Mover()(4712));
  EXPECT_EQ("4712", Get("own/vgpud-1/a/cgroup.procs"));
  EXPECT_EQ(Ns{1'500'000}, group.CpuTime());
}

TEST_F(CgroupTest, AVfThatGivesWayIsIdleBesideTheOthersWhereTheKernelKnowsThat) {
  MakeVersion2();
  const CgroupTree tree(Host("0::/own\n"));
  for (const char* file : {"pids.max", "memory.max", "memory.oom.group", "cpu.max", "cpu.weight", "cpu.idle"})
    Put(fmt::format("own/vgpud-1/a/{}", file), "");
  VfCgroup group(tree, "a", {.pids = 99, .memory_bytes = 1 << 20, .cpus = 0});
  group.SetGivesWay(true);
  EXPECT_EQ("1", Get("own/vgpud-1/a/cpu.idle"));
  EXPECT_EQ("1", Get("own/vgpud-1/a/cpu.weight"));
  group.SetGivesWay(false);
  EXPECT_EQ("0", Get("own/vgpud-1/a/cpu.idle"));
  EXPECT_EQ("100", Get("own/vgpud-1/a/cpu.weight"));
  // An older kernel.
  fs::remove(root_ / "own/vgpud-1/a/cpu.idle");
  group.SetGivesWay(true);
  EXPECT_EQ("", group.problem());
}

TEST_F(CgroupTest, AllVfsTogetherWeighNoMoreThanOthersWhileAllGiveWay) {
  MakeVersion2();
  CgroupTree two(Host("0::/own\n"));
  const std::string much = Get("own/vgpud-1/cpu.weight");
  EXPECT_GT(std::stoi(much), 100);
  two.SetGivesWay(true);
  EXPECT_EQ(100, std::stoi(Get("own/vgpud-1/cpu.weight").substr(0, 3)));
  MakeVersion1();
  Put("cgroup.controllers", "");
  CgroupTree one(Host(kVersion1));
  for (const char* file : {"cpu,cpuacct/own/vgpud/vgpud-1/cpu.shares", "cpu,cpuacct/own/vgpud/cpu.shares"}) {
    EXPECT_GT(std::stoi(Get(file)), 1024);
    Put(file, "");
    one.SetGivesWay(true);
    EXPECT_EQ("1024", Get(file));
    one.SetGivesWay(false);
  }
}

TEST_F(CgroupTest, AVfHasNoSwapBesideItsMemory) {
  MakeVersion1();
  const CgroupTree one(Host(kVersion1));
  Put("memory/own/vgpud/vgpud-1/a/memory.memsw.limit_in_bytes", "");
  const VfCgroup first(one, "a", {.pids = 99, .memory_bytes = 1 << 20, .cpus = 1'000'000});
  EXPECT_EQ("1048576", Get("memory/own/vgpud/vgpud-1/a/memory.memsw.limit_in_bytes"));
  MakeVersion2();
  const CgroupTree two(Host("0::/own\n"));
  Put("own/vgpud-1/b/memory.swap.max", "");
  const VfCgroup second(two, "b", {.pids = 99, .memory_bytes = 1 << 20, .cpus = 0});
  EXPECT_EQ("0", Get("own/vgpud-1/b/memory.swap.max"));
}

TEST_F(CgroupTest, TheMemoryOfAVfChangesWithWhatItHas) {
  MakeVersion1();
  const CgroupTree one(Host(kVersion1));
  const std::string memory = "memory/own/vgpud/vgpud-1/a/memory.limit_in_bytes";
  const std::string with_swap = "memory/own/vgpud/vgpud-1/a/memory.memsw.limit_in_bytes";
  Put(with_swap, "");
  VfCgroup first(one, "a", {.pids = 99, .memory_bytes = 1 << 20, .cpus = 1'000'000});
  for (const uint64_t bytes : {5u << 20, 3u << 20}) {
    for (const auto& file : {memory, with_swap}) Put(file, "");
    first.LimitMemory(bytes);
    for (const auto& file : {memory, with_swap}) EXPECT_EQ(std::to_string(bytes), Get(file));
  }
  MakeVersion2();
  const CgroupTree two(Host("0::/own\n"));
  VfCgroup second(two, "b", {.pids = 99, .memory_bytes = 1 << 20, .cpus = 0});
  Put("own/vgpud-1/b/memory.max", "");
  second.LimitMemory(5 << 20);
  EXPECT_EQ("5242880", Get("own/vgpud-1/b/memory.max"));
}

TEST_F(CgroupTest, WhatCannotBeSetIsSaid) {
  MakeVersion1();
  const CgroupTree tree(Host(kVersion1));
  const VfCgroup group(tree, "a", VfCgroup::LimitsFor(1, 1, 1));
  EXPECT_NE("", group.problem());
  EXPECT_FALSE(group.Mover()(4712));
}

TEST(CgroupIdTest, EachRuntimeDirectoryHasItsOwn) {
  EXPECT_NE(CgroupIdOf("/run/vgpud"), CgroupIdOf("/run/user/1/vgpud"));
  EXPECT_EQ(22u, CgroupIdOf("x").size());
}

TEST(VfCgroupTest, TheMemoryLimitIsTheQuotasAnd64MiBForEachProcess) {
  const auto limits = VfCgroup::LimitsFor(1 << 30, 1 << 20, 4);
  EXPECT_EQ((1u << 30) + (1u << 20) + 129ull * (64 << 20), limits.memory_bytes);
  EXPECT_EQ(129u * 8 + 128, limits.pids);
  EXPECT_EQ(5u, limits.cpus);
}

uint64_t Processors() { return static_cast<uint64_t>(::sysconf(_SC_NPROCESSORS_ONLN)); }

TEST_F(CgroupTest, AllVfsTogetherWeighAThousandForEachProcessor) {
  MakeVersion2();
  {
    const CgroupTree two(Host("0::/own\n"));
    EXPECT_EQ(fmt::format("{}", std::min<uint64_t>(10'000, 1'000 * Processors())), Get("own/vgpud-1/cpu.weight"));
    EXPECT_EQ("10000", Get("own/vgpud-1.daemon/cpu.weight"));
  }
  MakeVersion1();
  Put("cgroup.controllers", "");
  const CgroupTree one(Host(kVersion1));
  const std::string shares = fmt::format("{}", std::min<uint64_t>(262'144, 10'240 * Processors()));
  EXPECT_EQ(shares, Get("cpu,cpuacct/own/vgpud/vgpud-1/cpu.shares"));
  EXPECT_EQ(shares, Get("cpu,cpuacct/own/vgpud/cpu.shares"));
}

TEST_F(CgroupTest, TheDaemonGoesBackToItsGroupAtItsEnd) {
  MakeVersion2();
  {
    const CgroupTree tree(Host("0::/own\n"));
    Put("own/cgroup.procs", "");
  }
  EXPECT_EQ("4711", Get("own/cgroup.procs"));
  MakeVersion1();
  fs::remove(root_ / "pids/own/vgpud/vgpud-1/x");
  Put("cgroup.controllers", "");
  {
    const CgroupTree tree(Host(kVersion1));
    EXPECT_TRUE(fs::exists(root_ / "pids/own/vgpud/vgpud-1"));
  }
  EXPECT_FALSE(fs::exists(root_ / "pids/own/vgpud/vgpud-1")) << "its own group";
  EXPECT_TRUE(fs::exists(root_ / "pids/own/vgpud")) << "that of all daemons";
  EXPECT_TRUE(fs::exists(root_ / "memory/own/vgpud/vgpud-1")) << "it is not empty";
}

TEST_F(CgroupTest, TheRootMayHaveProcessesBesideItsGroups) {
  Put("cgroup.controllers", "memory pids");
  Put("cgroup.procs", "1\n2\n4711\n");
  for (const char* file : {"cgroup.subtree_control", "vgpud-1/cgroup.subtree_control"}) Put(file, "");
  const CgroupTree tree(Host("0::/\n"));
  EXPECT_EQ(2, tree.version());
  EXPECT_EQ("+memory +pids", Get("cgroup.subtree_control"));
  EXPECT_EQ("+memory +pids", Get("vgpud-1/cgroup.subtree_control"));
  EXPECT_FALSE(fs::exists(root_ / "vgpud-1.daemon"));
  EXPECT_EQ(root_ / "vgpud-1", tree.parent(CgroupController::kMemory));
  EXPECT_EQ("", tree.parent(CgroupController::kCpu));
  EXPECT_NE(std::string::npos, WhyNot(tree, "cgroup-cpu").find("lacks the controller cpu; instead"))
      << WhyNot(tree, "cgroup-cpu");
  EXPECT_NE(std::string::npos, WhyNot(tree, "cgroup-cpu-account").find("lacks the controller cpu; instead"));
}

TEST_F(CgroupTest, AControllerIsItsWholeName) {
  MakeVersion2();
  Put("own/cgroup.controllers", "cpuset memory_x xpids");
  const CgroupTree tree(Host("0::/own\n"));
  EXPECT_EQ(0, tree.version());
  EXPECT_NE(std::string::npos, WhyNot(tree, "cgroup-cpu").find("has no controllers for us"));
}

TEST_F(CgroupTest, EveryStepThatFailsIsSaid) {
  for (const char* missing :
       {"own/cgroup.subtree_control", "own/vgpud-1/cgroup.subtree_control", "own/vgpud-1.daemon/cgroup.procs"}) {
    MakeVersion2();
    fs::remove(root_ / missing);
    const CgroupTree tree(Host("0::/own\n"));
    EXPECT_EQ(0, tree.version()) << missing;
    for (const char* name : kAll) EXPECT_NE(std::string::npos, WhyNot(tree, name).find(missing)) << WhyNot(tree, name);
  }
  MakeVersion2();
  fs::remove_all(root_ / "own/vgpud-1");
  Put("own/vgpud-1", "a file");
  const CgroupTree tree(Host("0::/own\n"));
  EXPECT_EQ(0, tree.version());
}

TEST_F(CgroupTest, ControllersOfVersion1AreFoundWhereverTheyAreMounted) {
  for (const char* file : {"cpu/own/x", "cpuacct/x", "memory/own/vgpud/vgpud-1/memory.use_hierarchy", "pids/own/x"})
    Put(file, "");
  const CgroupTree tree(Host("7:pids:/own\n5:memory:/own\n3:cpu,cpuacct:/own"));
  EXPECT_EQ(1, tree.version());
  EXPECT_EQ(root_ / "cpu/own/vgpud/vgpud-1", tree.parent(CgroupController::kCpu));
  EXPECT_EQ(root_ / "cpuacct/vgpud/vgpud-1", tree.parent(CgroupController::kCpuAccount))
      << "the path is of another namespace";
  EXPECT_EQ(root_ / "pids/own/vgpud/vgpud-1", tree.parent(CgroupController::kPids));
  EXPECT_EQ("1", Get("memory/own/vgpud/vgpud-1/memory.use_hierarchy"));
}

TEST_F(CgroupTest, AVfUsesUpNoMoreProcessorsThanItMay) {
  MakeVersion1();
  {
    const CgroupTree one(Host(kVersion1));
    for (const char* file : {"cpu.cfs_period_us", "cpu.cfs_quota_us"})
      Put(fmt::format("cpu,cpuacct/own/vgpud/vgpud-1/a/{}", file), "");
    const auto less = static_cast<uint32_t>(Processors() - 1);
    const VfCgroup group(one, "a", {.pids = 99, .memory_bytes = 1 << 20, .cpus = less});
    EXPECT_EQ("100000", Get("cpu,cpuacct/own/vgpud/vgpud-1/a/cpu.cfs_period_us"));
    EXPECT_EQ(fmt::format("{}", 100'000 * less), Get("cpu,cpuacct/own/vgpud/vgpud-1/a/cpu.cfs_quota_us"));
    Put("cpu,cpuacct/own/vgpud/vgpud-1/b/cpu.cfs_quota_us", "");
    const VfCgroup all(one, "b", {.pids = 99, .memory_bytes = 1 << 20, .cpus = less + 1});
    EXPECT_EQ("", Get("cpu,cpuacct/own/vgpud/vgpud-1/b/cpu.cfs_quota_us")) << "all there are are no limit";
  }
  MakeVersion2();
  const CgroupTree two(Host("0::/own\n"));
  Put("own/vgpud-1/a/cpu.max", "");
  const auto less = static_cast<uint32_t>(Processors() - 1);
  const VfCgroup group(two, "a", {.pids = 99, .memory_bytes = 1 << 20, .cpus = less});
  EXPECT_EQ(fmt::format("{} 100000", 100'000 * less), Get("own/vgpud-1/a/cpu.max"));
  EXPECT_TRUE(group.limits_cpu());
}

TEST_F(CgroupTest, AVfThatGivesWayHasTheLeastSharesInVersion1) {
  MakeVersion1();
  const CgroupTree tree(Host(kVersion1));
  Put("cpu,cpuacct/own/vgpud/vgpud-1/a/cpu.shares", "");
  VfCgroup group(tree, "a", {.pids = 99, .memory_bytes = 1 << 20, .cpus = 1'000'000});
  group.SetGivesWay(true);
  EXPECT_EQ("2", Get("cpu,cpuacct/own/vgpud/vgpud-1/a/cpu.shares"));
  group.SetGivesWay(false);
  EXPECT_EQ("1024", Get("cpu,cpuacct/own/vgpud/vgpud-1/a/cpu.shares"));
}

TEST_F(CgroupTest, AGroupGoesWithItsVf) {
  MakeVersion1();
  const CgroupTree tree(Host(kVersion1));
  {
    const VfCgroup group(tree, "a", {});
    for (const char* controller : {"pids", "memory", "cpu,cpuacct"})
      EXPECT_TRUE(fs::is_directory(root_ / controller / "own/vgpud/vgpud-1/a")) << controller;
    EXPECT_FALSE(group.CpuTime()) << "there is no account";
  }
  for (const char* controller : {"pids", "memory", "cpu,cpuacct"})
    EXPECT_FALSE(fs::exists(root_ / controller / "own/vgpud/vgpud-1/a")) << controller;
}

TEST(CgroupIdTest, IsTheFnv1aHashOfTheDirectory) {
  EXPECT_EQ("vgpud-cbf29ce484222325", CgroupIdOf(""));
  EXPECT_EQ("vgpud-9be1f1081ba6a32c", CgroupIdOf("/run/vgpud"));
}

TEST(VfCgroupTest, LimitsOfOneThread) {
  const auto limits = VfCgroup::LimitsFor(0, 0, 1);
  EXPECT_EQ(129u * 5 + 128, limits.pids);
  EXPECT_EQ(129ull * 64 * 1024 * 1024, limits.memory_bytes);
  EXPECT_EQ(2u, limits.cpus);
  EXPECT_EQ(17u, VfCgroup::ThreadsOf(1));
  const VfCgroup::Limits none;
  EXPECT_EQ(0u, none.pids + none.memory_bytes + none.cpus);
}

}  // namespace
}  // namespace vgpud::daemon
