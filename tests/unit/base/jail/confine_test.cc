// SPDX-License-Identifier: Apache-2.0
#include "base/jail/confine.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/jail/capabilities.h"
#include "base/jail/landlock.h"
#include "base/sanitizer.h"

namespace vgpud {
namespace {

// What `check` returns in a process of its own; 0 is good.
int InAChild(int (*check)()) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(check());
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string StatusLine(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name)) return line.substr(line.find_last_of('\t') + 1);
  return "";
}

TEST(Confinement, IsNamed) {
  for (size_t i = 0; i < std::size(kConfinementNames); ++i)
    EXPECT_EQ(static_cast<Confinement>(i), ParseConfinement(kConfinementNames[i]));
  EXPECT_EQ(std::nullopt, ParseConfinement("everything"));
  EXPECT_EQ(std::nullopt, ParseConfinement(""));
}

class RootOnly : public testing::Test {
 protected:
  void SetUp() override {
    if (kSanitizerBuild) GTEST_SKIP() << "a build with a sanitizer has no jail";
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  }
};

TEST_F(RootOnly, LeavesNoPrivileges) {
  EXPECT_EQ(0, InAChild([] {
              if (!EnterConfinement(Confinement::kNothing, std::nullopt)) return 1;
              rlimit core{1, 1};
              if (::getrlimit(RLIMIT_CORE, &core) != 0 || core.rlim_cur != 0 || core.rlim_max != 0) return 2;
              if (::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) return 3;
              if (::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0) return 4;
              // NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE, all locked, and KEEP_CAPS locked as it is: off.
              if (::prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) != 0xef) return 5;
              if (EffectiveCapabilities() != "none") return 6;
              for (int cap = 0; ::cap_get_bound(cap) >= 0; ++cap)
                if (::cap_get_bound(cap) != 0) return 7;
              return ::getuid() == 0 ? 0 : 8;
            }));
}

TEST_F(RootOnly, BecomesAnotherUserForGood) {
  EXPECT_EQ(0, InAChild([] {
              if (!EnterConfinement(Confinement::kNothing, 4321)) return 1;
              uid_t real, effective, saved;
              if (::getresuid(&real, &effective, &saved) != 0) return 2;
              if (real != 4321 || effective != 4321 || saved != 4321) return 3;
              gid_t real_group, effective_group, saved_group;
              if (::getresgid(&real_group, &effective_group, &saved_group) != 0) return 4;
              if (real_group != 4321 || effective_group != 4321 || saved_group != 4321) return 5;
              if (::getgroups(0, nullptr) != 0) return 6;
              return ::setuid(0) == 0 ? 7 : 0;
            }));
}

TEST_F(RootOnly, SeesAnEmptyRootThatNobodyCanWrite) {
  EXPECT_EQ(0, InAChild([] {
              if (::unshare(CLONE_NEWNS) != 0) return 0;  // where containers forbid it
              if (!EnterConfinement(Confinement::kNamespaces, std::nullopt)) return 1;
              std::error_code error;
              if (!std::filesystem::is_empty("/", error) || error) return 2;
              if (::access("/proc", F_OK) == 0 || ::access("/..", F_OK) != 0) return 3;
              return ::access("/", W_OK) == 0 ? 4 : 0;
            }));
}

// The host's /proc has other numbers for the threads of a process that has namespaces.
TEST_F(RootOnly, ADriverFindsItsThreadsInProc) {
  EXPECT_EQ(0, InAChild([] {
              if (::unshare(CLONE_NEWNS | CLONE_NEWPID) != 0) return 0;  // where containers forbid it
              return InAChild([] {
                const auto names_itself = [] {
                  bool named = false;
                  std::thread([&named] {
                    const std::string path = "/proc/self/task/" + std::to_string(::syscall(SYS_gettid)) + "/comm";
                    named = static_cast<bool>(std::ofstream(path) << "name" << std::flush);
                  }).join();
                  return named;
                };
                if (names_itself()) return 1;  // there would be nothing to be tested
                PrepareForDriver(Confinement::kNamespaces, "");
                return names_itself() ? 0 : 2;
              });
            }));
}

// Without namespaces it is the rules of the kernel for files that keep it from those of its user.
TEST_F(RootOnly, WithoutNamespacesADriverOpensNoFilesOfItsUser) {
  if (!HasLandlock()) GTEST_SKIP() << "this kernel has no Landlock, or it is not to be had here";
  static const std::string own = testing::TempDir() + "confine_test." + std::to_string(::getpid());
  std::ofstream(own) << "a secret";
  EXPECT_EQ(0, InAChild([] {
              const auto opens = [](const char* path, int how) {
                const UniqueFd file{::open(path, how | O_CLOEXEC)};
                return static_cast<bool>(file);
              };
              if (!opens(own.c_str(), O_RDONLY)) return 1;
              PrepareForDriver(Confinement::kNothing, "");
              if (opens(own.c_str(), O_RDONLY) || opens("/tmp/confine_test.new", O_CREAT | O_RDWR)) return 2;
              if (!opens("/proc/self/status", O_RDONLY) || !opens("/usr/bin/env", O_RDONLY)) return 3;
              if (opens("/etc/passwd", O_RDONLY)) return 4;
              const std::string device = "/dev/null";
              if (!EnterConfinement(Confinement::kNothing, std::nullopt, {&device, 1})) return 5;
              if (!opens("/dev/null", O_RDWR)) return 6;
              return opens("/proc/self/status", O_RDONLY) || opens("/usr/bin/env", O_RDONLY) ? 7 : 0;
            }));
  ::unlink(own.c_str());
}

TEST_F(RootOnly, KeepsTheCapabilitiesThatAreNamed) {
  EXPECT_EQ(0, InAChild([] {
              if (EffectiveCapabilities().find("cap_kill") == std::string::npos)
                return 0;  // somebody took them already
              if (!KeepCapabilities({CAP_KILL, CAP_SYS_NICE})) return 1;
              if (EffectiveCapabilities() != "cap_kill,cap_sys_nice") return 2;
              if (::cap_get_bound(CAP_KILL) != 1 || ::cap_get_bound(CAP_CHOWN) != 0) return 3;
              return StatusLine("CapInh") == "0000000000000000" && StatusLine("CapAmb") == "0000000000000000" ? 0 : 4;
            }));
}

TEST(OomScore, IsWritten) {
  EXPECT_EQ(0, InAChild([] {
              SetOomScore(321);
              std::ifstream file("/proc/self/oom_score_adj");
              int score = 0;
              file >> score;
              return score == 321 ? 0 : 1;
            }));
}

}  // namespace
}  // namespace vgpud
