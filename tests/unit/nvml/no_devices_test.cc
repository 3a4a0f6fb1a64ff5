// SPDX-License-Identifier: Apache-2.0
// Where there is no VF: a process of its own, as the library looks once.
#include <gtest/gtest.h>

#include <cstdlib>

#include "guest-driver-shim/libnvidia-ml/generated/nvml_api.h"

namespace {

TEST(NoDevices, InitSaysThatThereIsNoDriver) {
  setenv("VGPU_CHANNEL", "/tmp/there is no such socket", 1);
  EXPECT_EQ(NVML_ERROR_DRIVER_NOT_LOADED, nvmlInit_v2());
  unsigned count = 77;
  EXPECT_EQ(NVML_ERROR_UNINITIALIZED, nvmlDeviceGetCount_v2(&count));
  ASSERT_EQ(NVML_SUCCESS, nvmlInitWithFlags(NVML_INIT_FLAG_NO_GPUS));
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceGetCount_v2(&count));
  EXPECT_EQ(0u, count);
  nvmlDevice_t device = nullptr;
  EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetHandleByIndex_v2(0, &device));
  EXPECT_EQ(NVML_ERROR_NOT_FOUND, nvmlDeviceGetHandleByPciBusId_v2("0:0:0", &device));
  EXPECT_EQ(NVML_SUCCESS, nvmlShutdown());
}

}  // namespace
