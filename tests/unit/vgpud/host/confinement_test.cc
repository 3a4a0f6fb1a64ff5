// SPDX-License-Identifier: Apache-2.0
// What is found out about this host, by programs that play vgpud-exec, and what follows for a VF's processes.
#include "vgpud/host/confinement.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/sanitizer.h"
#include "tests/scratch_dir.h"

namespace vgpud::daemon {
namespace {

namespace fs = std::filesystem;

TEST(ConfinementTest, EachVfHasItsOwnUserWhereThereAreSuch) {
  VfConfinement confinement;
  EXPECT_EQ(::geteuid(), confinement.UserOf(VfId{5}));
  confinement.own_users = true;
  confinement.first_user = 1000;
  EXPECT_EQ(1005u, confinement.UserOf(VfId{5}));
  EXPECT_EQ(1000u, confinement.UserOf(VfId{0}));
}

TEST(ConfinementTest, AProcessIsToldWhatItHasToDoItself) {
  const struct {
    Confinement kind;
    bool own_users;
    std::vector<std::string> arguments;
  } kRows[] = {
      {Confinement::kUserNamespace, true, {"--confinement=user-namespace"}},
      {Confinement::kNamespaces, true, {"--confinement=namespaces", "--user=1003"}},
      {Confinement::kUserOnly, true, {"--confinement=user-only", "--user=1003"}},
      {Confinement::kNamespaces, false, {"--confinement=namespaces"}},
      {Confinement::kNothing, false, {"--confinement=nothing"}},
  };
  for (const auto& row : kRows) {
    VfConfinement confinement;
    confinement.kind = row.kind;
    confinement.own_users = row.own_users;
    confinement.first_user = 1000;
    EXPECT_EQ(row.arguments, confinement.ArgumentsFor(VfId{3}));
  }
}

TEST(ConfinementTest, NothingIsInForceUntilItWasTried) {
  const VfConfinement confinement;
  EXPECT_EQ(Confinement::kNothing, confinement.kind);
  EXPECT_FALSE(confinement.watch || confinement.own_users);
  EXPECT_EQ(0u, confinement.first_user);
}

TEST(ConfinementTest, ProtectionsSayWhatIsInForceAndWhyNot) {
  if (kSanitizerBuild) GTEST_SKIP() << "a sanitizer needs what they forbid";
  const auto in_force = [](Confinement kind, bool own_users, bool watch) {
    VfConfinement confinement;
    confinement.kind = kind;
    confinement.own_users = own_users;
    confinement.watch = watch;
    confinement.why_not_better = "so it is";
    std::string names;
    for (const Protection& row : ProtectionsOf(confinement)) {
      if (row.in_force) names += std::string(row.name) + " ";
      EXPECT_EQ(row.in_force, row.why_not.empty()) << row.name;
      if (row.name == std::string("empty-root") && !row.in_force) {
        EXPECT_EQ("this host lets vgpud make none: so it is", row.why_not);
      }
    }
    return names;
  };
  EXPECT_EQ(
      "own-user user-namespace other-namespaces empty-root no-capabilities system-call-filter watched-system-calls ",
      in_force(Confinement::kUserNamespace, true, true));
  EXPECT_EQ("own-user other-namespaces empty-root no-capabilities system-call-filter ",
            in_force(Confinement::kNamespaces, true, false));
  EXPECT_EQ("own-user no-capabilities system-call-filter ", in_force(Confinement::kUserOnly, true, false));
  EXPECT_EQ("no-capabilities system-call-filter watched-system-calls ", in_force(Confinement::kNothing, false, true));
}

class FindConfinementTest : public testing::Test {
 protected:
  FindConfinementTest() { fs::permissions(directory_, static_cast<fs::perms>(0755)); }
  // A program that does `script` and has the arguments of vgpud-exec.
  std::string Program(const std::string& script) {
    const fs::path path = directory_ / "exec";
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    fs::permissions(path, static_cast<fs::perms>(0755));
    return path;
  }
  const ScratchDir scratch_;
  const fs::path directory_ = scratch_.path();
};

TEST_F(FindConfinementTest, TheStatusSaysWhetherTheJailCanBeWatched) {
  if (kSanitizerBuild) GTEST_SKIP() << "nothing is tried with a sanitizer";
  const auto watched = FindConfinement(Program("exit 0"), 1000);
  ASSERT_TRUE(watched) << watched.error().context;
  EXPECT_TRUE(watched->watch);
  EXPECT_EQ(::geteuid() == 0, watched->own_users);
  EXPECT_EQ(1000u, watched->first_user);
  const auto not_watched = FindConfinement(Program("exit 20"), 1000);
  ASSERT_TRUE(not_watched);
  EXPECT_FALSE(not_watched->watch);
  EXPECT_EQ(watched->kind, not_watched->kind);
  EXPECT_EQ(watched->why_not_better, not_watched->why_not_better);
}

TEST_F(FindConfinementTest, TheBestThatWorksIsTaken) {
  if (kSanitizerBuild) GTEST_SKIP() << "nothing is tried with a sanitizer";
  const auto only = [&](const char* kind) {
    return FindConfinement(
        Program(std::string("case \"$*\" in *--confinement=") + kind + "*) exit 0;; *) exit 3;; esac"), 1000);
  };
  const auto nothing = only("nothing");
  ASSERT_TRUE(nothing);
  EXPECT_EQ(Confinement::kNothing, nothing->kind);
  EXPECT_FALSE(nothing->own_users);
  EXPECT_NE(std::string::npos, nothing->why_not_better.find("user-namespace: ")) << nothing->why_not_better;
  if (::geteuid() == 0) {
    EXPECT_NE(std::string::npos, nothing->why_not_better.find("; namespaces: ")) << nothing->why_not_better;
    EXPECT_NE(std::string::npos, nothing->why_not_better.find("; user-only: a confined process ended with exit 3"));
    const auto user = only("user-only");
    ASSERT_TRUE(user);
    EXPECT_EQ(Confinement::kUserOnly, user->kind);
    EXPECT_TRUE(user->own_users);
  } else {
    EXPECT_EQ(std::string::npos, nothing->why_not_better.find("namespaces: ")) << "for root alone";
  }
  const auto none = FindConfinement(Program("exit 3"), 1000);
  ASSERT_FALSE(none);
  EXPECT_EQ(std::errc::operation_not_permitted, none.error().code);
  EXPECT_NE(std::string::npos, none.error().context.find("does not run: ")) << none.error().context;
}

}  // namespace
}  // namespace vgpud::daemon
