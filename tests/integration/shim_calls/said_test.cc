// SPDX-License-Identifier: Apache-2.0
// What programs read on stderr: in processes of their own, this program again with other variables in its environment.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/shim_fixture.h"
#include "tests/scratch_dir.h"
#include "tests/unit/shim/fake_vf_connection.h"

namespace {

TEST(SaidChild, FindsNoDevice) {
  if (getenv("SHIM_CHILD") == nullptr) GTEST_SKIP() << "the other tests run it";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(CUDA_ERROR_NO_DEVICE, cuInit(0));
}

TEST(SaidChild, CallsWhatIsNotSupported) {
  if (getenv("SHIM_CHILD") == nullptr) GTEST_SKIP() << "the other tests run it";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, cuIpcGetMemHandle(nullptr, 0));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, cuMulticastCreate(nullptr, nullptr));
}

TEST(SaidChild, LaunchesWhatNoDeviceTakes) {
  if (getenv("SHIM_CHILD") == nullptr) GTEST_SKIP() << "the other tests run it";
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction narrow = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuInit(0));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxCreate_v2(&context, 0, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module, kPtx));
  ASSERT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&narrow, module, "narrow"));
  for (const unsigned threads : {1025u, 97u})
    EXPECT_NE(CUDA_SUCCESS, cuLaunchKernel(narrow, 1, 1, 1, threads, 1, 1, 0, nullptr, nullptr, nullptr));
}

// The lines that the child test `name` has the library write.
std::vector<std::string> Said(const char* name, const char* channel, const char* trace) {
  int ends[2];
  EXPECT_EQ(0, pipe(ends));
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    setenv("SHIM_CHILD", "0", 1);
    setenv("VGPU_CHANNEL", channel, 1);
    if (trace != nullptr) {
      setenv("VGPU_TRACE", trace, 1);
    } else {
      unsetenv("VGPU_TRACE");
    }
    const std::string filter = std::string("--gtest_filter=SaidChild.") + name;
    execl("/proc/self/exe", "shim_api_test", filter.c_str(), "--gtest_brief=1", nullptr);
    _exit(127);
  }
  close(ends[1]);
  std::string text;
  char piece[512];
  for (ssize_t n; (n = read(ends[0], piece, sizeof piece)) > 0;) text.append(piece, static_cast<size_t>(n));
  close(ends[0]);
  int status = -1;
  EXPECT_EQ(child, waitpid(child, &status, 0));
  EXPECT_EQ(0, status) << text;
  std::vector<std::string> lines;
  for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string line = text.substr(at, end - at);
    if (line.rfind("vgpud: ", 0) == 0) lines.push_back(line);
  }
  return lines;
}

bool Contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST(Said, OnceThatThereIsNoVirtualGpuAndWhatToDo) {
  if (access("/dev/vgpu0", F_OK) == 0) GTEST_SKIP() << "there is one";
  const auto lines = Said("FindsNoDevice", "", nullptr);
  ASSERT_EQ(1u, lines.size()) << testing::PrintToString(lines);
  for (const char* part : {"no virtual GPU", "/dev/vgpu0", "modprobe vgpu", "VGPU_CHANNEL", "tools/run-direct"})
    EXPECT_TRUE(Contains(lines[0], part)) << part;
}

TEST(Said, WhichSocketDidNotAnswer) {
  const auto lines = Said("FindsNoDevice", "/nowhere/vf.sock", nullptr);
  ASSERT_EQ(1u, lines.size()) << testing::PrintToString(lines);
  for (const char* part : {"/nowhere/vf.sock: No such file or directory", "VGPU_CHANNEL", "vgpuctl show"})
    EXPECT_TRUE(Contains(lines[0], part)) << part;
}

TEST(Said, WhichLimitARefusedLaunchExceeds) {
  const vgpud::ScratchDir directory;
  const std::string path = directory.path() + "/vf.sock";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  strcpy(address.sun_path, path.c_str());
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  ASSERT_EQ(0, bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address));
  ASSERT_EQ(0, listen(listener, 2));
  std::thread server([listener] {
    for (int connection; (connection = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)) >= 0; close(connection))
      vgpud::ServeConnection(connection);
  });
  const auto lines = Said("LaunchesWhatNoDeviceTakes", path.c_str(), "1");
  EXPECT_EQ(0u, Said("LaunchesWhatNoDeviceTakes", path.c_str(), nullptr).size()) << "programs try things out";
  shutdown(listener, SHUT_RDWR);
  server.join();
  close(listener);
  ASSERT_EQ(2u, lines.size()) << testing::PrintToString(lines);
  EXPECT_EQ("vgpud: a launch of narrow is refused: blockDim.x of 1025, this device takes 1 to 1024", lines[0]);
  EXPECT_EQ("vgpud: a launch of narrow is refused: its launch bounds are 96 threads per block", lines[1]);
}

TEST(Said, OncePerCallThatIsNotSupported) {
  const auto lines = Said("CallsWhatIsNotSupported", "", nullptr);
  ASSERT_EQ(2u, lines.size()) << testing::PrintToString(lines);
  EXPECT_TRUE(Contains(lines[0], "cuIpcGetMemHandle is not supported"));
  EXPECT_TRUE(Contains(lines[0], "VGPU_TRACE"));
  EXPECT_TRUE(Contains(lines[1], "cuMulticastCreate is not supported"));
  EXPECT_EQ(0u, Said("CallsWhatIsNotSupported", "", "0").size());
  const auto all = Said("CallsWhatIsNotSupported", "", "1");
  ASSERT_EQ(6u, all.size()) << testing::PrintToString(all);
  EXPECT_EQ("vgpud: cuIpcGetMemHandle is not supported", all[2]);
  EXPECT_EQ("vgpud: cuIpcGetMemHandle answered CUDA_ERROR_NOT_SUPPORTED 3 times", all[4]);
}

}  // namespace
