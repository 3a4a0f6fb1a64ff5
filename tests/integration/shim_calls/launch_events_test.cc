// SPDX-License-Identifier: Apache-2.0
// Events that a launch records by its attributes.
#include <cstring>

#include "tests/integration/shim_calls/wire.h"

namespace {

class ShimLaunchEvents : public ShimWire {
 protected:
  void SetUp() override {
    ShimWire::SetUp();
    CUmodule module = nullptr;
    ASSERT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module, kPtx));
    ASSERT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&kernel_, module, "narrow"));
  }
  CUfunction kernel_ = nullptr;
};

// Both kinds of events are recorded behind the kernel, which cuda.h allows.
TEST_F(ShimLaunchEvents, ALaunchRecordsTheEventsThatItIsGiven) {
  CUevent untimed = nullptr, timed = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
  ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&timed, 0));
  CUlaunchConfig_st config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  CUlaunchAttribute_st attribute{};
  config.attrs = &attribute;
  config.numAttrs = 1;
  const auto launch = [&](int id, CUevent event, int flags) {
    attribute.id = id;
    memcpy(attribute.value, &event, sizeof event);
    memcpy(attribute.value + sizeof event, &flags, sizeof flags);
    return cuLaunchKernelEx(&config, kernel_, nullptr, nullptr);
  };
  TakeAll();
  for (const int id : {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT}) {
    EXPECT_EQ(CUDA_SUCCESS, launch(id, untimed, 0));
    std::vector<uint32_t> ops;
    for (const Sent& sent : TakeAll())
      if (sent.entry.op == VGPU_OP_LAUNCH || sent.entry.op == VGPU_OP_EVENT_RECORD) ops.push_back(sent.entry.op);
    EXPECT_EQ((std::vector<uint32_t>{VGPU_OP_LAUNCH, VGPU_OP_EVENT_RECORD}), ops);
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, launch(id, timed, 0));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, launch(id, untimed, CU_EVENT_RECORD_EXTERNAL));
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, launch(id, nullptr, 0));
    EXPECT_EQ(0u, Take(VGPU_OP_LAUNCH).size()) << "nothing of a launch that is refused";
  }
  EXPECT_EQ(CUDA_SUCCESS, cuEventDestroy_v2(untimed));
  EXPECT_EQ(CUDA_SUCCESS, cuEventDestroy_v2(timed));
}

}  // namespace
