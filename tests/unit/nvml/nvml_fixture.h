// SPDX-License-Identifier: Apache-2.0
// NVML over a VF whose figures a test chooses.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <mutex>

#include "guest-driver-shim/libnvidia-ml/generated/nvml_api.h"
#include "tests/unit/nvml/status_server.h"

namespace vgpud {

inline constexpr uint64_t kQuota = uint64_t{3} << 30;
inline constexpr uint64_t kUsed = uint64_t{1} << 30;
inline constexpr char kUuid[] = "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf";

// The library finds its devices once in a process, so all tests share one VF.
class FakeVf {
 public:
  static FakeVf& Get() {
    static auto* const vf = new FakeVf;
    return *vf;
  }
  void Change(const std::function<void(vgpu_status&)>& change) {
    std::lock_guard lock(mutex_);
    change(status_);
  }
  void Reset() {
    std::lock_guard lock(mutex_);
    status_ = Fresh();
    refuse_ = 0;
  }
  void Refuse(int error) {
    std::lock_guard lock(mutex_);
    refuse_ = error;
  }
  std::atomic<int> asked{0};

 private:
  FakeVf() : status_(Fresh()), server_([this](const vgpu_sock_request&) { return Answer(); }) {
    setenv("VGPU_CHANNEL", server_.path().c_str(), 1);
  }
  static vgpu_status Fresh() {
    vgpu_status status{};
    status.bytes = sizeof status;
    status.now_ns = 1'000'000'000;
    status.vram_bytes = kQuota;
    status.vram_used_bytes = kUsed;
    status.gpu_percent = 42;
    status.capability = 121;
    for (uint8_t i = 0; i < 16; ++i) status.uuid[i] = static_cast<uint8_t>(0xa0 + i);
    strcpy(status.name, "guest-a");
    strcpy(status.gpu_name, "vgpud soft GPU");
    status.channel[0] = {.id = 1, .pid = 100, .flags = VGPU_STATUS_CONTEXT, .vram_bytes = 5, .gpu_ns = 0};
    status.channel[1] = {.id = 4, .pid = 200, .flags = VGPU_STATUS_CONTEXT, .vram_bytes = 7, .gpu_ns = 0};
    status.channel[3] = {.id = 9, .pid = 300, .flags = 0, .vram_bytes = 13, .gpu_ns = 0};  // has no context
    status.channel[2] = {.id = 5, .pid = 100, .flags = VGPU_STATUS_CONTEXT, .vram_bytes = 11, .gpu_ns = 0};
    return status;
  }
  std::string Answer() {
    std::lock_guard lock(mutex_);
    ++asked;
    if (refuse_ != 0) return StatusServer::Bytes(vgpu_sock_reply{VGPU_SOCK_STATUS, -refuse_, 0, 0, {}});
    return StatusServer::Reply(status_);
  }

  std::mutex mutex_;
  vgpu_status status_;
  int refuse_ = 0;
  StatusServer server_;
};

class NvmlCalls : public testing::Test {
 protected:
  void SetUp() override {
    vf.Reset();
    ASSERT_EQ(NVML_SUCCESS, nvmlInit_v2());
    ASSERT_EQ(NVML_SUCCESS, nvmlDeviceGetHandleByIndex_v2(0, &device));
  }
  void TearDown() override { EXPECT_EQ(NVML_SUCCESS, nvmlShutdown()); }

  FakeVf& vf = FakeVf::Get();
  nvmlDevice_t device = nullptr;
};

}  // namespace vgpud
