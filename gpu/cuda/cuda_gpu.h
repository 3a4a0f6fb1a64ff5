// SPDX-License-Identifier: Apache-2.0
// The backend that runs a guest program's work on a GPU of NVIDIA's through the CUDA driver (docs/cuda-backend.md). One
// card per process, one CudaGpu at a time on it.
#pragma once

#include <memory>

#include "base/log.h"
#include "gpu/capability/async_work.h"
#include "gpu/capability/device_output.h"
#include "gpu/capability/host_sharing.h"
#include "gpu/capability/kernel_heap.h"
#include "gpu/capability/late_mapping.h"
#include "gpu/capability/spill_room.h"
#include "gpu/capability/tensor_map_maker.h"
#include "gpu/cuda/arrays/textures.h"
#include "gpu/cuda/card.h"
#include "gpu/cuda/lanes.h"
#include "gpu/cuda/memory/mappable.h"
#include "gpu/cuda/memory/movable.h"
#include "gpu/cuda/memory/ranges.h"
#include "gpu/cuda/memory/shared_host.h"
#include "gpu/cuda/memory/tensor_maps.h"
#include "gpu/cuda/printed.h"
#include "gpu/cuda/rung.h"
#include "gpu/cuda/slot_rooms.h"
#include "gpu/cuda/stops.h"
#include "gpu/gpu.h"

namespace vgpud::driver {

class CudaGpu final : public Gpu,
                      public AsyncWork,
                      public DeviceOutput,
                      public HostSharing,
                      public KernelHeap,
                      public LateMapping,
                      public SpillRoom,
                      public TensorMapMaker {
 public:
  // Both outlive it.
  CudaGpu(Card& card, Printed& printed);
  // What was made in the context goes.
  ~CudaGpu() override;

  DeviceInfo Info() const override { return info_; }
  GpuCapabilities capabilities() override {
    return {.async_work = this,
            .output = this,
            .evictable = movable_.get(),
            .host_sharing = this,
            .heap = this,
            .late_mapping = this,
            .spill_room = this,
            .tensor_maps = this};
  }
  uint64_t AllocationBytes(uint64_t bytes) const override;
  GpuResult<GpuVa> Alloc(uint64_t bytes) override;
  GpuResult<uint64_t> Free(GpuVa address) override;
  GpuResult<void> CopyIn(GpuVa to, std::span<const std::byte> from) override;
  GpuResult<void> CopyOut(std::span<std::byte> to, GpuVa from) override;
  GpuResult<void> CopyDev(GpuVa to, GpuVa from, uint64_t bytes) override;
  GpuResult<void> Fill(GpuVa to, uint32_t value, uint32_t element_bytes, uint64_t count) override;
  bool Contains(GpuVa address, uint64_t bytes) const override { return ranges_.Contains(Raw(address), bytes); }
  GpuResult<GpuVa> Share(std::span<std::byte> memory, const MemoryFile& file) override {
    return shared_->Share(memory, file);
  }
  void Unshare(std::span<std::byte> memory) override { shared_->Unshare(memory); }
  GpuResult<uint64_t> CreateMappable(uint64_t bytes) override { return mappable_->Create(bytes); }
  GpuResult<uint64_t> ReleaseMappable(uint64_t number) override { return mappable_->Release(number); }
  GpuResult<void> MapMemory(uint64_t number, uint64_t offset, GpuVa to, uint64_t bytes) override {
    return mappable_->Map(number, offset, to, bytes);
  }
  GpuResult<void> UnmapMemory(GpuVa at, uint64_t bytes) override { return mappable_->Unmap(at, bytes); }
  GpuResult<uint64_t> ReadWord(GpuVa address, uint32_t bytes) override;
  GpuResult<void> WriteWord(GpuVa address, uint32_t bytes, uint64_t value) override;
  GpuResult<uint64_t> CreateTexture(const TextureDesc& desc) override { return textures_->Create(desc); }
  uint64_t TextureBytes(const TextureDesc& desc) const override { return textures_->Bytes(desc); }
  GpuResult<uint64_t> DestroyTexture(uint64_t handle) override { return textures_->Destroy(handle); }
  GpuResult<std::unique_ptr<GpuModule>> Load(std::span<const std::byte> image) override;
  uint64_t code_bytes_read() const override { return code_bytes_read_; }
  GpuResult<std::unique_ptr<GpuGrid>> Launch(const FunctionInfo& function, const LaunchShape& shape,
                                             std::span<const std::byte> params, uint32_t max_dynamic_shared) override;
  bool LaunchBehind(std::unique_ptr<GpuGrid>& grid, GpuGrid& before, const FunctionInfo& function,
                    const LaunchShape& shape, std::span<const std::byte> params, uint32_t max_dynamic_shared) override;
  // Why such a launch can't be stopped. Empty: it goes in turns. The GPU thread.
  std::string WhyNotInTurns(const FunctionInfo& function, const LaunchShape& shape);
  uint64_t RoomFor(const FunctionInfo& function, const LaunchShape& shape) override;
  uint64_t RoomBytes(uint64_t bytes) const override { return SlotRooms::Rounded(bytes); }
  bool HasRoom(std::span<const uint64_t> each) const override { return rooms_->Suffice(each); }
  GpuResult<void> MakeRoom(uint64_t bytes) override { return rooms_->Make(bytes); }
  uint64_t DropRoom() override { return rooms_->DropFree(); }
  void SetPrintCapacity(uint64_t bytes) override { printed_.SetCapacity(bytes); }
  size_t printed_bytes() const override { return printed_.bytes(); }
  size_t TakePrinted(std::span<std::byte> out, bool* to_stderr) override;
  GpuResult<void> EncodeTensorMap(vgpu_tensor_map_request& request) override {
    return driver::EncodeTensorMap(card_, request);
  }
  bool SetHeapBytes(uint64_t bytes) override;
  uint64_t HeapBytesAtOnce(uint64_t bytes) const override { return bytes > heap_bytes_ ? bytes - heap_bytes_ : 0; }
  uint64_t HeapBytesToMake() const override { return 0; }
  GpuResult<void> MakeHeap() override { return {}; }
  void DropCaches() override {}
  bool Busy() const override { return lanes_->taken() != 0; }
  void WaitUntilIdle() override;

 private:
  // Why the launch should use the program's own kernel; empty: it goes in turns.
  std::string WhyAsItIs(const Kernel& kernel, const LaunchShape& shape, const Short& launch);
  // The log hears once of each kernel and rung.
  void Tell(const Kernel& kernel, rewrite::Rung rung, const std::string& why_not_better);
  GpuResult<void> Check(GpuVa address, uint64_t bytes) const;
  // Where this process has that memory now, to be read, or written as well; nullptr: on the card.
  GpuResult<std::byte*> InHost(GpuVa address, uint64_t bytes, bool written);
  template <class T>
  GpuResult<uint64_t> ReadWordAs(GpuVa address);
  template <class T>
  GpuResult<void> WriteWordAs(GpuVa address, T word);
  struct Span {
    GpuVa address{0};
    uint64_t bytes = 0;
  };
  // Waits for what `start`, which reads and writes that memory of the guest, puts into the stream of copies.
  template <class F>
  GpuResult<void> Copy(const char* what, Span read, Span written, F start);

  Card& card_;
  Printed& printed_;
  const DeviceInfo info_;
  Ranges ranges_;
  std::unique_ptr<SharedHost> shared_;
  std::unique_ptr<Mappable> mappable_;
  std::unique_ptr<Stops> stops_;
  std::unique_ptr<SlotRooms> rooms_;
  std::unique_ptr<Lanes> lanes_;
  LogLimiter rungs_told_{20};
  std::unique_ptr<Movable> movable_;  // nullptr: memory stays on the card
  std::unique_ptr<Textures> textures_;
  uint64_t code_bytes_read_ = 0;
  uint64_t heap_bytes_ = 0;  // the most that it could have had so far; the driver's own limit is the context's
};

}  // namespace vgpud::driver
