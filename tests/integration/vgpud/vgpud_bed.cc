// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/vgpud/vgpud_bed.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/check.h"
#include "base/clock.h"
#include "base/message.h"
#include "guest-driver-shim/include/uapi/vgpu_channel_sock.h"

extern char** environ;

namespace vgpud::daemon {
namespace {

namespace fs = std::filesystem;

std::string Program(const char* variable) {
  const char* path = std::getenv(variable);
  if (path == nullptr) fmt::print(stderr, "the environment variable {} must name the program\n", variable);
  CHECK(path != nullptr);
  return path;
}

pid_t Spawn(const std::vector<std::string>& argv, posix_spawn_file_actions_t* files) {
  std::vector<char*> raw;
  for (const auto& arg : argv) raw.push_back(const_cast<char*>(arg.c_str()));
  raw.push_back(nullptr);
  pid_t pid = -1;
  CHECK(::posix_spawn(&pid, raw[0], files, nullptr, raw.data(), environ) == 0);
  return pid;
}

int WaitFor(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string ReadToEnd(int fd) {
  std::string text;
  std::array<char, 4096> chunk;
  for (ssize_t n; (n = ::read(fd, chunk.data(), chunk.size())) > 0;) text.append(chunk.data(), static_cast<size_t>(n));
  return text;
}

}  // namespace

Finished RunProgram(const std::vector<std::string>& argv) {
  int out[2], err[2];
  CHECK(::pipe2(out, O_CLOEXEC) == 0 && ::pipe2(err, O_CLOEXEC) == 0);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, out[1], 1);
  posix_spawn_file_actions_adddup2(&files, err[1], 2);
  const pid_t pid = Spawn(argv, &files);
  posix_spawn_file_actions_destroy(&files);
  ::close(out[1]);
  ::close(err[1]);
  Finished finished;
  std::thread reader{[&] { finished.err = ReadToEnd(err[0]); }};
  finished.out = ReadToEnd(out[0]);
  reader.join();
  ::close(out[0]);
  ::close(err[0]);
  finished.status = WaitFor(pid);
  return finished;
}

bool Eventually(const std::function<bool()>& condition) {
  const TimePoint end = Now() + std::chrono::seconds{10};
  while (!condition()) {
    if (Now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  return true;
}

VgpudBed::VgpudBed(const std::vector<std::string>& more_args) {
  fs::create_directory(libexec_);
  fs::create_symlink(Program("VGPUD_VF"), libexec_ + "/vgpud-vf");
  fs::create_symlink(Program("SPIN_EXECUTOR"), libexec_ + "/vgpud-exec");
  ::setenv("VGPUD_LIBEXEC", libexec_.c_str(), 1);
  Start(more_args);
}

void VgpudBed::Start(const std::vector<std::string>& more_args) {
  CHECK(pid_ < 0);
  int ready[2];
  CHECK(::pipe2(ready, O_CLOEXEC) == 0);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, ready[1], 9);
  posix_spawn_file_actions_addopen(&files, 2, (root_ + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  std::vector<std::string> argv = {Program("VGPUD"),    "--runtime-dir", runtime_dir_, "--ready-fd", "9",
                                   "--exit-with-parent"};
  argv.insert(argv.end(), more_args.begin(), more_args.end());
  pid_ = Spawn(argv, &files);
  posix_spawn_file_actions_destroy(&files);
  ::close(ready[1]);
  char byte = 0;
  if (::read(ready[0], &byte, 1) != 1) fmt::print(stderr, "vgpud did not start:\n{}\n", Log());
  CHECK(byte != 0);
  ::close(ready[0]);
}

int VgpudBed::Stop(int signal) {
  if (pid_ < 0) return -1;
  ::kill(pid_, signal);
  return WaitFor(std::exchange(pid_, -1));
}

std::string VgpudBed::Log() const {
  std::stringstream text;
  text << std::ifstream(root_ + "/log").rdbuf();
  return text.str();
}

VgpudBed::~VgpudBed() {
  Stop();
  if (testing::Test::HasFailure()) fmt::print(stderr, "log of vgpud in {}:\n{}", root_, Log());
}

Finished VgpudBed::Ctl(std::vector<std::string> args) const {
  std::vector<std::string> argv = {Program("VGPUCTL"), "--runtime-dir", runtime_dir_};
  argv.insert(argv.end(), args.begin(), args.end());
  return RunProgram(argv);
}

UniqueFd VgpudBed::OpenChannel(const std::string& vf) const {
  auto socket = ConnectUnix(fmt::format("{}/vf/{}.channel.sock", runtime_dir_, vf), SOCK_SEQPACKET);
  if (!socket) fmt::print(stderr, "{}\n", socket.error().context);
  CHECK(socket);
  vgpu_sock_request request{};
  request.op = VGPU_SOCK_OPEN;
  request.bytes = VGPU_ABI_VERSION;
  request.client_pid = static_cast<uint32_t>(::getpid());
  CHECK(SendStruct(socket->get(), request));
  std::array<std::byte, 512> reply;
  CHECK(::recv(socket->get(), reply.data(), reply.size(), 0) > 0);
  return std::move(*socket);
}

std::vector<pid_t> VgpudBed::Children(const std::vector<std::string>& words) const {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0) continue;
    std::stringstream status, command;
    status << std::ifstream(entry.path() / "status").rdbuf();
    if (status.str().find(fmt::format("\nPPid:\t{}\n", pid_)) == std::string::npos) continue;
    command << std::ifstream(entry.path() / "cmdline").rdbuf();
    std::string line = command.str();
    bool all = !line.empty();
    for (const std::string& word : words)
      all &=
          (std::string(1, '\0') + line).find(std::string(1, '\0') + word + std::string(1, '\0')) != std::string::npos;
    if (all) found.push_back(pid);
  }
  return found;
}

}  // namespace vgpud::daemon
