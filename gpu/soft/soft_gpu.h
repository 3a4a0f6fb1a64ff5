// SPDX-License-Identifier: Apache-2.0
// The built-in GPU: PTX on the CPU. Use MakeSoftGpu (gpu/gpu.h); this header is for tests that look inside.
#pragma once

#include <memory>
#include <utility>

#include "gpu/capability/device_output.h"
#include "gpu/capability/host_sharing.h"
#include "gpu/capability/instruction_trip.h"
#include "gpu/capability/kernel_heap.h"
#include "gpu/capability/late_mapping.h"
#include "gpu/capability/module_memory.h"
#include "gpu/capability/saved_context.h"
#include "gpu/capability/vram_growth.h"
#include "gpu/capability/vram_part.h"
#include "gpu/gpu.h"
#include "gpu/soft/code/op_table.h"
#include "gpu/soft/run/device_state.h"
#include "gpu/soft/soft_module.h"

namespace vgpud::soft {

// What the barrier of grid.sync() needs, and room for more.
inline constexpr uint64_t kWorkspaceBytes = Arena::kGranule;

class Grid;
class GridFamily;

class SoftGpu final : public Gpu,
                      public DeviceOutput,
                      public HostSharing,
                      public KernelHeap,
                      public LateMapping,
                      public ModuleMemory,
                      public SavedContext,
                      public TripsMidKernel,
                      public VramGrowth,
                      public VramPart {
 public:
  // `threads`: that run a grid together, the caller of Run among them. `host`: see DeviceState; outlives the GPU.
  SoftGpu(const VramSize& vram, Isa isa, uint32_t threads = 1, HostMemory* host = nullptr,
          const ComputeCapability& capability = kDefaultCapability, const ReachSpace& reach = {})
      : device_(vram, threads, host, capability, reach), isa_(isa) {}

  ~SoftGpu() override;

  DeviceInfo Info() const override;
  GpuCapabilities capabilities() override {
    return {.output = this,
            .host_sharing = this,
            .heap = this,
            .late_mapping = this,
            .module_memory = this,
            .saved_context = this,
            .vram_growth = this,
            .vram_part = this,
            .mid_kernel_trips = this};
  }
  uint64_t AllocationBytes(uint64_t bytes) const override { return Arena::Rounded(bytes); }
  bool UseVramPart(uint32_t part) override { return device_.arena.UsePart(part); }
  void SetVramBytes(uint64_t bytes) override { device_.arena.SetLimit(bytes); }
  GpuResult<GpuVa> Alloc(uint64_t bytes) override { return device_.arena.Alloc(bytes, false); }
  GpuResult<uint64_t> Free(GpuVa address) override;
  GpuResult<void> CopyIn(GpuVa to, std::span<const std::byte> from) override;
  GpuResult<void> CopyOut(std::span<std::byte> to, GpuVa from) override;
  GpuResult<void> CopyDev(GpuVa to, GpuVa from, uint64_t bytes) override;
  GpuResult<void> Fill(GpuVa to, uint32_t value, uint32_t element_bytes, uint64_t count) override;
  bool Contains(GpuVa address, uint64_t bytes) const override { return device_.arena.Contains(address, bytes); }
  GpuResult<GpuVa> Share(std::span<std::byte> memory, const MemoryFile& file) override;
  void Unshare(std::span<std::byte> memory) override { device_.arena.Unshare(memory); }
  GpuResult<uint64_t> CreateMappable(uint64_t bytes) override { return device_.arena.CreateMappable(bytes); }
  GpuResult<uint64_t> ReleaseMappable(uint64_t block) override { return device_.arena.ReleaseMappable(block); }
  GpuResult<void> MapMemory(uint64_t block, uint64_t offset, GpuVa to, uint64_t bytes) override {
    return device_.arena.MapMemory(block, offset, to, bytes);
  }
  GpuResult<void> UnmapMemory(GpuVa at, uint64_t bytes) override { return device_.arena.UnmapMemory(at, bytes); }
  GpuResult<uint64_t> CreateTexture(const TextureDesc& desc) override {
    return device_.textures.Add(desc, device_.arena);
  }
  uint64_t TextureBytes(const TextureDesc&) const override { return 0; }
  GpuResult<uint64_t> DestroyTexture(uint64_t handle) override {
    TRY(device_.textures.Remove(handle));
    return 0;
  }
  GpuResult<std::unique_ptr<GpuModule>> Load(std::span<const std::byte> image) override;
  void PlaceManaged(GpuVa address, uint64_t bytes, WhileThere there) override {
    managed_ = {address, bytes, std::move(there)};
  }
  uint64_t code_bytes_read() const override { return code_bytes_read_; }
  GpuResult<std::unique_ptr<GpuGrid>> Launch(const FunctionInfo& function, const LaunchShape& shape,
                                             std::span<const std::byte> params, uint32_t max_dynamic_shared) override;

  void SetPrintCapacity(uint64_t bytes) override { device_.print.SetCapacity(bytes); }
  size_t printed_bytes() const override { return device_.print.bytes(); }
  size_t TakePrinted(std::span<std::byte> out, bool* to_stderr) override { return device_.print.Take(out, to_stderr); }
  bool SetHeapBytes(uint64_t bytes) override;
  uint64_t HeapBytesAtOnce(uint64_t) const override { return 0; }
  uint64_t HeapBytesToMake() const override;
  GpuResult<void> MakeHeap() override;
  GpuResult<uint64_t> ReadWord(GpuVa from, uint32_t bytes) override;
  GpuResult<void> WriteWord(GpuVa to, uint32_t bytes, uint64_t value) override;

  // Host memory behind a device address that lies in the arena.
  std::byte* HostPointer(GpuVa address) { return device_.arena.Host(address); }

  void AdmitVram(std::function<bool(uint64_t bytes)> admit) override { admit_vram_ = std::move(admit); }
  void DropCaches() override;
  void SetTrip(InstructionTrip* trip) override { device_.trip = trip; }
  const WorkerPool& workers() const { return device_.workers; }

  // soft_gpu_state.cc
  GpuResult<void> Save(const StateSink& sink, std::span<GpuModule* const> modules,
                       std::span<GpuGrid* const> grids) override;
  GpuResult<RestoredObjects> Restore(const StateSource& source) override;

  // Before anything is loaded: modules are decoded for the check mode.
  void SetCheck();
  const AccessCheck* check() const { return device_.check.get(); }
  // Before anything is loaded, too. The hottest forms are in the log when the GPU ends.
  void SetProfile();
  const InstructionProfile* profile() const { return device_.profile.get(); }
  const ModuleImageCache& images() const { return images_; }

 private:
  SoftModule::Around AroundModules() {
    return {OpTable::Of(isa_),
            images_,
            device_.arena,
            modules_,
            {device_.check != nullptr, device_.profile != nullptr},
            admit_vram_,
            device_.capability,
            std::exchange(managed_, {})};
  }
  bool Fresh() const;
  GpuResult<void> CheckGrid(const Program& program, const CodeFunction& code, const LaunchShape& shape,
                            uint64_t param_bytes, uint32_t max_dynamic_shared) const;
  // `root`: nullptr for a family that has ended.
  std::unique_ptr<GridFamily> MakeFamily(std::unique_ptr<Grid> root);
  void SaveGrid(StateWriter& out, const Grid& grid, std::span<GpuModule* const> modules);
  void SaveFamily(StateWriter& out, const GridFamily& family, std::span<GpuModule* const> modules);
  // `may_launch`: it is of a family, its kernel may launch others.
  std::unique_ptr<Grid> LoadGrid(StateReader& in, std::span<const std::unique_ptr<GpuModule>> modules,
                                 PinnedBlocks& pinned, bool may_launch);
  std::unique_ptr<GridFamily> LoadFamily(StateReader& in, std::span<const std::unique_ptr<GpuModule>> modules,
                                         PinnedBlocks& pinned);

  DeviceState device_;
  Isa isa_;
  ModuleImageCache images_;
  uint64_t code_bytes_read_ = 0;
  std::function<bool(uint64_t)> admit_vram_;
  SoftModule::ManagedPlace managed_;  // of the next module
  std::vector<SoftModule*> modules_;  // alive; a module takes itself out
};

}  // namespace vgpud::soft
