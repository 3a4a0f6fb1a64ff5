// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/domain/run_program.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/fd.h"

namespace vgpud::tools {
namespace {

constexpr size_t kMostBytes = size_t{1} << 20;

// Everything until its end; false: too late or too much.
bool ReadAll(int fd, TimePoint end, std::string& out) {
  char buffer[4096];
  while (out.size() < kMostBytes) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Now()).count();
    pollfd ready{fd, POLLIN, 0};
    if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left)) <= 0) return false;
    const ssize_t size = ::read(fd, buffer, sizeof buffer);
    if (size <= 0) return size == 0;
    out.append(buffer, static_cast<size_t>(size));
  }
  return false;
}

}  // namespace

std::optional<std::string> RunProgram(const std::vector<std::string>& words, std::chrono::milliseconds limit) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  const UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  std::vector<std::string> copies = words;
  std::vector<char*> arguments;
  for (std::string& each : copies) arguments.push_back(each.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, theirs.get(), 1);
  ::posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failed = ::posix_spawn(&child, words[0].c_str(), &files, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  theirs.Reset();
  if (failed != 0) return std::nullopt;
  std::string out;
  if (!ReadAll(ours.get(), Now() + limit, out)) ::kill(child, SIGKILL);
  int status = 0;
  if (::waitpid(child, &status, 0) != child || status != 0) return std::nullopt;
  return out;
}

bool IsTrusted(const std::string& program) {
  if (program.empty() || program[0] != '/') return false;
  char real[PATH_MAX];
  if (::realpath(program.c_str(), real) == nullptr) return false;
  std::string path = real;
  for (struct stat now{}; !path.empty(); path.resize(path.rfind('/'))) {
    if (::stat(path.c_str(), &now) != 0 || now.st_uid != 0 || (now.st_mode & 022) != 0) return false;
  }
  return ::access(real, X_OK) == 0;
}

}  // namespace vgpud::tools
