// SPDX-License-Identifier: Apache-2.0
// What an executor limits itself to, in processes that do so and tell.
#include "gpu/exec/guard.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>

#include "base/sanitizer.h"

namespace vgpud::exec {
namespace {

// The exit status of a process that does this; -1: it was killed.
int StatusOf(const std::function<int()>& what) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(what());
  int status = 0;
  EXPECT_EQ(child, ::waitpid(child, &status, 0));
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
bool Is(int resource, rlim_t most) {
  rlimit limit{};
  return ::getrlimit(static_cast<__rlimit_resource>(resource), &limit) == 0 && limit.rlim_cur == most &&
         limit.rlim_max == most;
}

TEST(Guard, NoCoreDumpsFewDescriptorsAndSoMuchMemory) {
  EXPECT_EQ(0, StatusOf([] {
              rlimit stack{}, data{};
              ::getrlimit(RLIMIT_STACK, &stack);
              ::getrlimit(RLIMIT_DATA, &data);
              rlimit threads{};
              ::getrlimit(RLIMIT_NPROC, &threads);
              constexpr uint64_t kMemory = uint64_t{1} << 30;
              if (!SetLimits({kMemory, 0}, 2, 0)) return 1;
              if (!Is(RLIMIT_CORE, 0)) return 2;
              if (!Is(RLIMIT_NOFILE, 128)) return 3;
              if (!Is(RLIMIT_NPROC, threads.rlim_cur) && threads.rlim_cur == threads.rlim_max) return 4;
              const rlim_t per_stack = std::min<rlim_t>(stack.rlim_cur, 64 << 20);
              if (!kSanitizerBuild && !Is(RLIMIT_DATA, kMemory + (64 << 20) + 6 * per_stack)) return 5;
              return 0;
            }));
}

TEST(Guard, ALargeStackCountsAs64MiB) {
  if (kSanitizerBuild) GTEST_SKIP() << "a sanitizer has no such limit";
  EXPECT_EQ(0, StatusOf([] {
              rlimit stack{};
              ::getrlimit(RLIMIT_STACK, &stack);
              if (stack.rlim_max < (1u << 30)) return 0;
              stack.rlim_cur = 1u << 30;
              if (::setrlimit(RLIMIT_STACK, &stack) != 0 || !SetLimits({1u << 30, 0}, 1, 0)) return 1;
              return Is(RLIMIT_DATA, (1u << 30) + 6ull * (64 << 20)) ? 0 : 2;
            }));
}

TEST(Guard, WithoutAnAmountMemoryIsNotLimited) {
  EXPECT_EQ(0, StatusOf([] {
              rlimit before{}, after{};
              ::getrlimit(RLIMIT_DATA, &before);
              if (!SetLimits({}, 1, 77)) return 1;
              ::getrlimit(RLIMIT_DATA, &after);
              if (before.rlim_cur != after.rlim_cur || before.rlim_max != after.rlim_max) return 2;
              return Is(RLIMIT_NPROC, 77) ? 0 : 3;
            }));
}

TEST(Guard, TheMemoryLimitGrowsAsFarAsItMayAndNeverShrinks) {
  if (kSanitizerBuild) GTEST_SKIP() << "a sanitizer has no such limit";
  EXPECT_EQ(0, StatusOf([] {
              const auto now = [] {
                rlimit data{};
                ::getrlimit(RLIMIT_DATA, &data);
                return data;
              };
              constexpr uint64_t kMemory = uint64_t{1} << 30;
              if (!SetLimits({kMemory, 3 * kMemory}, 1, 0)) return 1;
              const rlimit first = now();
              if (first.rlim_max != first.rlim_cur + 2 * kMemory) return 2;
              if (!RaiseMemoryLimit(kMemory) || now().rlim_cur != first.rlim_cur + kMemory) return 3;
              if (!RaiseMemoryLimit(0) || now().rlim_cur != first.rlim_cur + kMemory) return 4;
              if (!RaiseMemoryLimit(UINT64_MAX) || now().rlim_cur != first.rlim_max) return 5;
              return now().rlim_max == first.rlim_max ? 0 : 6;
            }));
}

TEST(Guard, MemoryThatIsTakenAwayEndsTheProcessWithStatusThree) {
  EXPECT_EQ(3, StatusOf([] {
              ExitOnSigbus();
              char path[] = "/tmp/guard_test_XXXXXX";
              const int file = ::mkstemp(path);
              ::unlink(path);
              if (::ftruncate(file, 4'096) != 0) return 1;
              auto* const page = static_cast<volatile char*>(::mmap(nullptr, 4'096, PROT_READ, MAP_SHARED, file, 0));
              if (::ftruncate(file, 0) != 0) return 1;
              return page[0] == 0 ? 4 : 5;
            }));
}

}  // namespace
}  // namespace vgpud::exec
