// SPDX-License-Identifier: Apache-2.0
// A GPU that stores memory for real and runs "kernels" of a scripted number of steps.
//
// Images are text, one kernel per line: "kernel NAME STEPS [fault]" (the one called endless never ends), "global NAME
// BYTES". "heap" makes it one
// that allocates. A kernel with a parameter takes an address (u64) and adds 1 to the u64 there when it ends; "fault"
// ends it with error 700.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpu/capability/async_work.h"
#include "gpu/capability/device_output.h"
#include "gpu/capability/host_sharing.h"
#include "gpu/capability/instruction_trip.h"
#include "gpu/capability/kernel_heap.h"
#include "gpu/capability/late_mapping.h"
#include "gpu/capability/module_memory.h"
#include "gpu/capability/spill_room.h"
#include "gpu/capability/tensor_map_maker.h"
#include "gpu/gpu.h"
#include "guest-driver-shim/include/uapi/vgpu_tensor_map.h"

namespace vgpud::exec {

class FakeGpu : public Gpu,
                public AsyncWork,
                public DeviceOutput,
                public HostSharing,
                public KernelHeap,
                public LateMapping,
                public ModuleMemory,
                public SpillRoom,
                public TensorMapMaker,
                public TripsMidKernel {
 public:
  // Shared by a test and every FakeGpu that it makes.
  struct Script {
    std::function<void()> on_step;   // before each step of a grid
    std::function<void()> on_touch;  // whenever GPU memory is touched or a grid runs
    std::vector<std::string> log;    // names of kernels in the order they end
    bool launches_behind = false;
    std::vector<std::string> behind;  // "B behind A" for each that was launched so
    std::string printed;              // what kernels have written to stdout
    uint64_t heap = 1 << 20;          // size of the heap, once there is one it is fixed
    bool heap_made = false;
    bool heap_at_once = false;  // it takes its VRAM when its size is set
    std::map<uint64_t, TextureDesc> textures;
    std::vector<vgpu_tensor_map_request> tensor_maps;  // asked for; those of kind 9 are refused
    uint64_t surface_bytes = 0;                        // VRAM that a surface takes beside its memory
    int live_grids = 0;
    std::function<void()> on_grid_over;  // whenever one goes
    uint64_t held_bytes = 0;             // of each
    bool keep_log = true;
    HostMemory* memory = nullptr;   // that the blocks of kernels take
    uint64_t block_bytes = 0;       // each; 0: none
    bool no_blocks = false;         // there is never one
    bool no_memory = false;         // allocations of the device and steps of kernels throw std::bad_alloc
    std::function<void()> on_load;  // in each Load
    // In each Load whose managed variables have a place, while it is there.
    std::function<void()> on_managed;
    uint64_t code_bytes_read = 0;
    std::function<GpuResult<uint64_t>()> load_function;  // in each LoadFunction; none: modules are loaded as a whole
    bool shares = true;
    bool bare = false;             // it has none of the capabilities
    uint64_t room_for_launch = 0;  // that each launch can use
    std::vector<uint64_t> rooms;
    int rooms_refused = 0;
    Evictable* evictable = nullptr;
    InstructionTrip* trip = nullptr;  // counts the steps of kernels
    std::function<void()>
        wait_until_idle;  // kernels stay on the GPU between steps, until this returns; none: they don't
  };
  explicit FakeGpu(std::shared_ptr<Script> script) : script_(std::move(script)) {}

  DeviceInfo Info() const override;
  GpuCapabilities capabilities() override {
    if (script_->bare) return {};
    return {.async_work = this,
            .output = this,
            .evictable = script_->evictable,
            .host_sharing = this,
            .heap = this,
            .late_mapping = this,
            .module_memory = this,
            .spill_room = this,
            .tensor_maps = this,
            .mid_kernel_trips = this};
  }
  uint64_t AllocationBytes(uint64_t bytes) const override { return (bytes + 511) / 512 * 512; }
  GpuResult<GpuVa> Alloc(uint64_t bytes) override;
  GpuResult<uint64_t> Free(GpuVa address) override;
  GpuResult<void> CopyIn(GpuVa to, std::span<const std::byte> from) override;
  GpuResult<void> CopyOut(std::span<std::byte> to, GpuVa from) override;
  GpuResult<void> CopyDev(GpuVa to, GpuVa from, uint64_t bytes) override;
  GpuResult<void> Fill(GpuVa to, uint32_t value, uint32_t element_bytes, uint64_t count) override;
  bool Contains(GpuVa address, uint64_t bytes) const override { return At(address, bytes) != nullptr; }
  GpuResult<GpuVa> Share(std::span<std::byte> memory, const MemoryFile& file) override;
  void Unshare(std::span<std::byte> memory) override;
  GpuResult<uint64_t> CreateMappable(uint64_t bytes) override;
  GpuResult<uint64_t> ReleaseMappable(uint64_t block) override;
  GpuResult<void> MapMemory(uint64_t block, uint64_t offset, GpuVa to, uint64_t bytes) override;
  GpuResult<void> UnmapMemory(GpuVa at, uint64_t bytes) override;
  GpuResult<uint64_t> ReadWord(GpuVa from, uint32_t bytes) override;
  GpuResult<void> WriteWord(GpuVa to, uint32_t bytes, uint64_t value) override;
  GpuResult<uint64_t> CreateTexture(const TextureDesc& desc) override;
  uint64_t TextureBytes(const TextureDesc& desc) const override;
  GpuResult<uint64_t> DestroyTexture(uint64_t handle) override;
  GpuResult<std::unique_ptr<GpuModule>> Load(std::span<const std::byte> image) override;
  void AdmitVram(std::function<bool(uint64_t)>) override {}
  void SetPrintCapacity(uint64_t) override {}
  void DropCaches() override {}
  void SetTrip(InstructionTrip* trip) override { script_->trip = trip; }
  // Load sets all of it to 7.
  void PlaceManaged(GpuVa address, uint64_t bytes, WhileThere there) override {
    managed_ = {address, bytes, std::move(there)};
  }
  uint64_t code_bytes_read() const override { return script_->code_bytes_read; }
  GpuResult<std::unique_ptr<GpuGrid>> Launch(const FunctionInfo& function, const LaunchShape& shape,
                                             std::span<const std::byte> params, uint32_t max_dynamic_shared) override;

  bool LaunchBehind(std::unique_ptr<GpuGrid>& grid, GpuGrid& before, const FunctionInfo& function,
                    const LaunchShape& shape, std::span<const std::byte> params, uint32_t max_dynamic_shared) override;

  uint64_t RoomFor(const FunctionInfo&, const LaunchShape&) override { return script_->room_for_launch; }
  bool HasRoom(std::span<const uint64_t> each) const override;
  uint64_t RoomBytes(uint64_t bytes) const override { return 2 * bytes; }
  GpuResult<void> MakeRoom(uint64_t bytes) override;
  uint64_t DropRoom() override;
  size_t printed_bytes() const override { return script_->printed.size(); }
  size_t TakePrinted(std::span<std::byte> out, bool* to_stderr) override;
  GpuResult<void> EncodeTensorMap(vgpu_tensor_map_request& request) override;
  bool SetHeapBytes(uint64_t bytes) override;
  uint64_t HeapBytesAtOnce(uint64_t bytes) const override {
    return script_->heap_at_once && bytes > script_->heap ? bytes - script_->heap : 0;
  }
  uint64_t HeapBytesToMake() const override { return script_->heap_made ? 0 : script_->heap; }
  GpuResult<void> MakeHeap() override;

  bool Busy() const override { return script_->wait_until_idle != nullptr && script_->live_grids != 0; }
  void WaitUntilIdle() override {
    if (Busy()) script_->wait_until_idle();
  }

  std::byte* At(GpuVa address, uint64_t bytes) const;
  Script& script() { return *script_; }

 private:
  std::shared_ptr<Script> script_;
  mutable std::map<uint64_t, std::vector<std::byte>> memory_;
  uint64_t next_ = 0x10000000;
  struct Managed {
    GpuVa address;
    uint64_t bytes = 0;
    WhileThere there;
  };
  Managed managed_;                                  // of the next module
  std::map<uint64_t, uint64_t> mappable_;            // bytes by number
  std::map<uint64_t, std::span<std::byte>> shared_;  // by address, which is that here
};

}  // namespace vgpud::exec
