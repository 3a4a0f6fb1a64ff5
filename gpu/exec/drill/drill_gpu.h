// SPDX-License-Identifier: Apache-2.0
// A Gpu around another one, for tests: its kernels run under a PreemptDrill, which cuts them and keeps account of what
// the device wrote to the guest program. The executor knows nothing of it.
#pragma once

#include <memory>

#include "gpu/capability/async_work.h"
#include "gpu/capability/device_output.h"
#include "gpu/exec/drill/preempt_drill.h"
#include "gpu/gpu.h"

namespace vgpud::exec {

class DrillGpu final : public Gpu, public AsyncWork, public DeviceOutput {
 public:
  // Takes `gpu` before anything was loaded. `drill` outlives it.
  DrillGpu(std::unique_ptr<Gpu> gpu, PreemptDrill& drill);

  DeviceInfo Info() const override { return gpu_->Info(); }
  // Those of the GPU, but for a saved context: its grids are not known here.
  GpuCapabilities capabilities() override;

  uint64_t AllocationBytes(uint64_t bytes) const override { return gpu_->AllocationBytes(bytes); }
  GpuResult<GpuVa> Alloc(uint64_t bytes) override { return gpu_->Alloc(bytes); }
  GpuResult<uint64_t> Free(GpuVa address) override { return gpu_->Free(address); }
  GpuResult<void> CopyIn(GpuVa to, std::span<const std::byte> from) override;
  GpuResult<void> CopyOut(std::span<std::byte> to, GpuVa from) override;
  GpuResult<void> CopyDev(GpuVa to, GpuVa from, uint64_t bytes) override { return gpu_->CopyDev(to, from, bytes); }
  GpuResult<void> Fill(GpuVa to, uint32_t value, uint32_t element_bytes, uint64_t count) override {
    return gpu_->Fill(to, value, element_bytes, count);
  }
  bool Contains(GpuVa address, uint64_t bytes) const override { return gpu_->Contains(address, bytes); }
  GpuResult<uint64_t> ReadWord(GpuVa from, uint32_t bytes) override { return gpu_->ReadWord(from, bytes); }
  GpuResult<void> WriteWord(GpuVa to, uint32_t bytes, uint64_t value) override {
    return gpu_->WriteWord(to, bytes, value);
  }
  GpuResult<uint64_t> CreateTexture(const TextureDesc& desc) override { return gpu_->CreateTexture(desc); }
  uint64_t TextureBytes(const TextureDesc& desc) const override { return gpu_->TextureBytes(desc); }
  GpuResult<uint64_t> DestroyTexture(uint64_t handle) override { return gpu_->DestroyTexture(handle); }
  GpuResult<std::unique_ptr<GpuModule>> Load(std::span<const std::byte> image) override { return gpu_->Load(image); }
  uint64_t code_bytes_read() const override { return gpu_->code_bytes_read(); }
  GpuResult<std::unique_ptr<GpuGrid>> Launch(const FunctionInfo& function, const LaunchShape& shape,
                                             std::span<const std::byte> params, uint32_t max_dynamic_shared) override;
  void DropCaches() override { gpu_->DropCaches(); }

  bool Busy() const override { return gpu_->capabilities().async_work->Busy(); }
  void WaitUntilIdle() override { gpu_->capabilities().async_work->WaitUntilIdle(); }
  bool LaunchBehind(std::unique_ptr<GpuGrid>& grid, GpuGrid& before, const FunctionInfo& function,
                    const LaunchShape& shape, std::span<const std::byte> params, uint32_t max_dynamic_shared) override;

  void SetPrintCapacity(uint64_t bytes) override { gpu_->capabilities().output->SetPrintCapacity(bytes); }
  size_t printed_bytes() const override { return gpu_->capabilities().output->printed_bytes(); }
  size_t TakePrinted(std::span<std::byte> out, bool* to_stderr) override;

 private:
  std::unique_ptr<Gpu> gpu_;
  PreemptDrill& drill_;
  bool cuts_ = false;
  GpuVa copied_to_{};  // the end of the last copy to the device, as far as another piece of it may come
};

}  // namespace vgpud::exec
