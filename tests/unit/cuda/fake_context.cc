// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/cuda/fake_context.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <thread>

extern char** environ;

namespace fake_cuda {
namespace {

const std::string loaded_with = [] {
  std::string all;
  for (char** variable = environ; *variable != nullptr; ++variable) all += std::string(*variable) + "\n";
  return all;
}();

}  // namespace

Status NameAThread() {
  bool named = false;
  std::thread([&named] {
    const std::string path = "/proc/self/task/" + std::to_string(syscall(SYS_gettid)) + "/comm";
    std::FILE* const file = std::fopen(path.c_str(), "w");
    if (file == nullptr) return;
    named = std::fputs("cuda-fake", file) >= 0;
    named = std::fclose(file) == 0 && named;
  }).join();
  return named ? 0 : kOperatingSystem;
}

Status MakeContextAgain() {
  if (has_context) return 0;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return kOperatingSystem;
  const int copy = dup(ends[0]);
  const bool waits_for_nothing = fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
  for (const int fd : {ends[0], ends[1], copy})
    if (fd >= 0) close(fd);
  if (copy < 0 || !waits_for_nothing) return kOperatingSystem;
  const Status status = NameAThread();
  has_context = status == 0;
  return status;
}

void DropContext() { has_context = false; }

const char* LoadedWith() { return loaded_with.c_str(); }

}  // namespace fake_cuda
