// SPDX-License-Identifier: Apache-2.0
// What cuInit finds, in processes of their own: this program again, with other variables in its environment.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "guest-driver-shim/libcuda/generated/cuda_api.h"
#include "tests/unit/shim/fake_vf_connection.h"

namespace {

// The child: SHIM_CHILD says how many devices there should be.
TEST(ShimChild, FindsItsDevices) {
  const char* expected = getenv("SHIM_CHILD");
  if (expected == nullptr) GTEST_SKIP() << "the other test runs it";
  int count = -1;
  if (atoi(expected) == 0) {
    EXPECT_EQ(CUDA_ERROR_NO_DEVICE, cuInit(0));
    EXPECT_EQ(CUDA_ERROR_NO_DEVICE, cuInit(0)) << "the same every time";
    EXPECT_EQ(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&count));
    return;
  }
  ASSERT_EQ(CUDA_SUCCESS, cuInit(0));
  EXPECT_EQ(CUDA_SUCCESS, cuInit(0));
  EXPECT_EQ(CUDA_SUCCESS, cuDeviceGetCount(&count));
  EXPECT_EQ(atoi(expected), count);
}

class VisibleDevices : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(nullptr, mkdtemp(directory_));
    path_ = std::string(directory_) + "/vf.sock";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strcpy(address.sun_path, path_.c_str());
    listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ASSERT_EQ(0, bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address));
    ASSERT_EQ(0, listen(listener_, 4));
    server_ = std::thread([this] {
      for (int connection; (connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
        vgpud::ServeConnection(connection);
        close(connection);
      }
    });
  }
  void TearDown() override {
    shutdown(listener_, SHUT_RDWR);
    server_.join();
    close(listener_);
    unlink(path_.c_str());
    rmdir(directory_);
  }
  // Does a process with this in its environment find so many devices?
  static bool Finds(int count, const std::string& channel, const char* visible) {
    std::vector<std::string> variables = {"SHIM_CHILD=" + std::to_string(count), "VGPU_CHANNEL=" + channel};
    if (visible != nullptr) variables.push_back(std::string("CUDA_VISIBLE_DEVICES=") + visible);
    if (const char* libraries = getenv("LD_LIBRARY_PATH")) {
      variables.push_back(std::string("LD_LIBRARY_PATH=") + libraries);
    }
    std::vector<char*> environment;
    for (std::string& variable : variables) environment.push_back(variable.data());
    environment.push_back(nullptr);
    char program[] = "/proc/self/exe", filter[] = "--gtest_filter=ShimChild.*", brief[] = "--gtest_brief=1";
    char* const arguments[] = {program, filter, brief, nullptr};
    pid_t child = -1;
    int status = -1;
    EXPECT_EQ(0, posix_spawn(&child, program, nullptr, nullptr, arguments, environment.data()));
    EXPECT_EQ(child, waitpid(child, &status, 0));
    return status == 0;
  }
  char directory_[32] = "/tmp/shim_seen_XXXXXX";
  std::string path_;
  int listener_ = -1;
  std::thread server_;
};

TEST_F(VisibleDevices, AreNumbersOrBeginningsOfUuids) {
  const struct {
    const char* visible;
    int count;
  } rows[] = {{nullptr, 1},
              {"0", 1},
              {"  0  ", 1},
              {"", 0},
              {",0", 0},
              {"1", 0},
              {"-1", 0},
              {"0x", 0},
              {"0,1", 1},  // what follows the first that is none is ignored
              {"1,0", 0},
              {"0,0", 0},
              {"GPU-", 1},
              {"GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf", 1},
              {"GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaea", 1},
              {"GPU-a0a1a2a3a4a5", 0},
              {"GPU-b", 0},
              {"0,GPU-a0", 0}};
  for (const auto& row : rows)
    EXPECT_TRUE(Finds(row.count, path_, row.visible)) << (row.visible != nullptr ? row.visible : "unset");
}

TEST_F(VisibleDevices, AreNoneWithoutAChannel) {
  EXPECT_TRUE(Finds(0, path_ + "x", nullptr)) << "no such socket";
  if (access("/dev/vgpu0", F_OK) != 0) {
    EXPECT_TRUE(Finds(0, "", nullptr)) << "no device file";
  }
}

}  // namespace
