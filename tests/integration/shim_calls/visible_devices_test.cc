// SPDX-License-Identifier: Apache-2.0
// What cuInit finds, in processes of their own: this program again, with other variables in its environment.
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "guest-driver-shim/libcuda/generated/cuda_api.h"
#include "tests/integration/shim_calls/own_process.h"

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

class VisibleDevices : public OwnProcess {
 protected:
  // Does a process with this in its environment find so many devices?
  static bool Finds(int count, const std::string& channel, const char* visible) {
    std::vector<std::string> variables = {"SHIM_CHILD=" + std::to_string(count), "VGPU_CHANNEL=" + channel};
    if (visible != nullptr) variables.push_back(std::string("CUDA_VISIBLE_DEVICES=") + visible);
    return Passes("ShimChild.FindsItsDevices", std::move(variables));
  }
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
              {"0x", 1},  // a number with something behind it
              {"0gpu2", 1},
              {"1gpu2", 0},
              {"gpu0", 0},
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
