// SPDX-License-Identifier: Apache-2.0
// The GPU of a process for which the driver gives no context: the card is lost, has a memory error, or is not there any
// more. All that a program asks for ends with what the driver said, as it would on the card itself.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "gpu/gpu.h"
#include "guest-driver-shim/include/uapi/vgpu_abi.h"

namespace vgpud::driver {

class LostGpu final : public Gpu {
 public:
  LostGpu(CuStatus status, std::string why) : lost_{status, std::move(why)} {}

  DeviceInfo Info() const override { return {"no GPU", std::vector<int32_t>(VGPU_DEVICE_ATTRIBUTES)}; }
  GpuCapabilities capabilities() override { return {}; }
  uint64_t AllocationBytes(uint64_t bytes) const override { return bytes; }
  GpuResult<GpuVa> Alloc(uint64_t) override { return Lost(); }
  GpuResult<uint64_t> Free(GpuVa) override { return Lost(); }
  GpuResult<void> CopyIn(GpuVa, std::span<const std::byte>) override { return Lost(); }
  GpuResult<void> CopyOut(std::span<std::byte>, GpuVa) override { return Lost(); }
  GpuResult<void> CopyDev(GpuVa, GpuVa, uint64_t) override { return Lost(); }
  GpuResult<void> Fill(GpuVa, uint32_t, uint32_t, uint64_t) override { return Lost(); }
  bool Contains(GpuVa, uint64_t) const override { return false; }
  GpuResult<uint64_t> ReadWord(GpuVa, uint32_t) override { return Lost(); }
  GpuResult<void> WriteWord(GpuVa, uint32_t, uint64_t) override { return Lost(); }
  GpuResult<uint64_t> CreateTexture(const TextureDesc&) override { return Lost(); }
  uint64_t TextureBytes(const TextureDesc&) const override { return 0; }
  GpuResult<uint64_t> DestroyTexture(uint64_t) override { return Lost(); }
  GpuResult<std::unique_ptr<GpuModule>> Load(std::span<const std::byte>) override { return Lost(); }
  uint64_t code_bytes_read() const override { return 0; }
  GpuResult<std::unique_ptr<GpuGrid>> Launch(const FunctionInfo&, const LaunchShape&, std::span<const std::byte>,
                                             uint32_t) override {
    return Lost();
  }
  void DropCaches() override {}

 private:
  tl::unexpected<GpuError> Lost() const { return tl::unexpected(lost_); }

  const GpuError lost_;
};

}  // namespace vgpud::driver
