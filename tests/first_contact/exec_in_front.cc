// SPDX-License-Identifier: Apache-2.0
// In the place of vgpud-exec on a made-up kernel side (kernel_side/): starts the real one ($REAL_VGPUD_EXEC) behind the
// library of VGPUD_TEST_IN_FRONT. Only the trials of the ways to take kernels away it answers itself: kernels end at
// once there, and have computed nothing.
#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

constexpr std::string_view kWithoutKernels[] = {"gate", "program"};

// As vgpud-exec answers: 0 is that the rung works.
int AnswerTrial(std::string_view rung) {
  std::fputs("ready\n", stderr);
  if (rung == "kill") {
    std::fputs("running\n", stderr);
    for (;;) ::pause();
  }
  for (const std::string_view name : kWithoutKernels)
    if (rung == name) {
      std::fputs("not tried: kernels do nothing here\n", stderr);
      return 0;
    }
  std::fputs("kernels do nothing here\n", stderr);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; ++i)
    if (std::string_view(argv[i]) == "--test-rung") return AnswerTrial(argv[i + 1]);
  const char* const library = std::getenv("VGPUD_TEST_IN_FRONT");
  const char* const program = std::getenv("REAL_VGPUD_EXEC");
  if (library == nullptr || program == nullptr || ::setenv("LD_PRELOAD", library, 1) != 0) return 9;
  ::execv(program, argv);
  std::perror(program);
  return 9;
}
