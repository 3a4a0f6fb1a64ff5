// SPDX-License-Identifier: Apache-2.0
// What a GPU must do for an executor. One Gpu object = one CUDA context of one guest process.
//
// Contract. All calls come from one thread at a time (the executor serialises them). Nothing here waits: work is
// advanced by Run() in steps that end at once when the stop word changes. A GPU that works beside the processor can't
// always be stopped so: what Run() has left on it (Busy) is waited for before the executor says that it is off the GPU
// (WaitUntilIdle), and that is an overrun like any other. Whatever a guest passes in (images, names,
// addresses, launch shapes, parameter bytes) is checked here and answered with the CUresult that CUDA documents plus a
// sentence for the human. A fault while a grid runs is returned by Run(); the executor poisons the context with it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "base/compute_capability.h"
#include "base/host_memory.h"
#include "base/ids.h"
#include "base/reach_space.h"
#include "gpu/generated/cuda_enums.h"
#include "gpu/texture.h"

struct vgpu_tensor_map_request;

namespace vgpud {

// Numeric values of CUresult (cuda.h).
enum class CuStatus : uint32_t {
  kSuccess = cuda_enum::CUDA_SUCCESS,
  kInvalidValue = cuda_enum::CUDA_ERROR_INVALID_VALUE,
  kOutOfMemory = cuda_enum::CUDA_ERROR_OUT_OF_MEMORY,
  kInvalidImage = cuda_enum::CUDA_ERROR_INVALID_IMAGE,
  kNoBinaryForGpu = cuda_enum::CUDA_ERROR_NO_BINARY_FOR_GPU,
  kInvalidPtx = cuda_enum::CUDA_ERROR_INVALID_PTX,
  kUnsupportedPtxVersion = cuda_enum::CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
  kInvalidSource = cuda_enum::CUDA_ERROR_INVALID_SOURCE,
  kSharedObjectSymbolNotFound = cuda_enum::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND,
  kInvalidHandle = cuda_enum::CUDA_ERROR_INVALID_HANDLE,
  kNotFound = cuda_enum::CUDA_ERROR_NOT_FOUND,
  kIllegalAddress = cuda_enum::CUDA_ERROR_ILLEGAL_ADDRESS,
  kLaunchOutOfResources = cuda_enum::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
  kLaunchTimeout = cuda_enum::CUDA_ERROR_LAUNCH_TIMEOUT,
  kContextIsDestroyed = cuda_enum::CUDA_ERROR_CONTEXT_IS_DESTROYED,
  kAssert = cuda_enum::CUDA_ERROR_ASSERT,
  kHardwareStackError = cuda_enum::CUDA_ERROR_HARDWARE_STACK_ERROR,
  kIllegalInstruction = cuda_enum::CUDA_ERROR_ILLEGAL_INSTRUCTION,
  kMisalignedAddress = cuda_enum::CUDA_ERROR_MISALIGNED_ADDRESS,
  kInvalidAddressSpace = cuda_enum::CUDA_ERROR_INVALID_ADDRESS_SPACE,
  kInvalidPc = cuda_enum::CUDA_ERROR_INVALID_PC,
  kLaunchFailed = cuda_enum::CUDA_ERROR_LAUNCH_FAILED,
  kInvalidClusterSize = cuda_enum::CUDA_ERROR_INVALID_CLUSTER_SIZE,
  kCooperativeLaunchTooLarge = cuda_enum::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
  kNotSupported = cuda_enum::CUDA_ERROR_NOT_SUPPORTED,
  kUnknown = cuda_enum::CUDA_ERROR_UNKNOWN,
};

struct GpuError {
  CuStatus status;
  std::string text;
};
template <class T>
using GpuResult = tl::expected<T, GpuError>;
inline tl::unexpected<GpuError> GpuFail(CuStatus status, std::string text) {
  return tl::unexpected(GpuError{status, std::move(text)});
}

// Test mode: Run() itself changes a stop word, while the `left`-th warp instruction from now on is in flight, as a
// revoke from outside may at any moment.
struct StopTrip {
  std::atomic<uint32_t>* word;
  std::atomic<uint64_t> left;
  // Called for each warp instruction, by every thread that runs some.
  void Count() {
    if (left.fetch_sub(1, std::memory_order_relaxed) == 1) word->fetch_add(1, std::memory_order_relaxed);
  }
};

// When to get off the GPU: as soon as *word != expected. Looked at after every warp instruction.
struct StopWord {
  const std::atomic<uint32_t>* word;
  uint32_t expected;
  StopTrip* trip = nullptr;
  bool Stopped() const { return word->load(std::memory_order_relaxed) != expected; }
};

struct ParamInfo {
  uint32_t offset;
  uint32_t bytes;
};

// Where memory that is mapped here comes from: a part of a file. fd -1: it is not known.
struct MemoryFile {
  int fd = -1;
  uint64_t offset = 0;
};

// Facts of a kernel, as cuFuncGetAttribute reports them. Stable while its module is loaded.
struct FunctionInfo {
  std::string name;
  std::vector<ParamInfo> params;
  uint32_t param_bytes = 0;
  uint32_t static_shared_bytes = 0;
  uint32_t const_bytes = 0;
  uint32_t local_bytes = 0;  // per thread
  uint32_t registers = 1;    // per thread
  uint32_t max_threads = 1024;
  uint32_t ptx_version = 75;
  uint32_t binary_version = 75;
  bool uses_heap = false;            // malloc or free, itself or in what it calls
  uint32_t cluster[3] = {0, 0, 0};   // that it must be launched in (.reqnctapercluster), 0 = any
  uint32_t most_cluster_blocks = 0;  // .maxclusterrank, 0 = not said
  bool needs_cluster = false;        // a launch has to say which (.explicitcluster)
};

// A loaded module. Destroyed only when no grid of it exists.
class GpuModule {
 public:
  virtual ~GpuModule() = default;
  // The kernel `name`, nullptr if there is none. The pointer is its identity and lives as long as the module.
  virtual const FunctionInfo* Function(std::string_view name) const = 0;
  // Must LoadFunction come before Function answers for this kernel? It takes as long as loading a module.
  virtual bool NeedsLoading(std::string_view) const { return false; }
  // Bytes of code that were read for it. An error is that of the kernel alone, and the same each time.
  virtual GpuResult<uint64_t> LoadFunction(std::string_view) { return 0; }
  struct Global {
    GpuVa address;
    uint64_t bytes;
  };
  // kNotFound if there is none.
  virtual GpuResult<Global> FindGlobal(std::string_view name) const = 0;
  virtual uint32_t function_count() const = 0;
  virtual uint32_t global_count() const = 0;
  // Names of its kernels, in the order of its code.
  virtual std::vector<std::string> FunctionNames() const { return {}; }
  // What its managed variables take together (Gpu::PlaceManaged).
  virtual uint64_t managed_bytes() const { return 0; }
  // VRAM taken by its globals and constants.
  virtual uint64_t vram_bytes() const = 0;
};

struct LaunchShape {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t dynamic_shared;
  bool cooperative = false;         // all blocks are resident at once and may wait for each other
  uint32_t cluster[3] = {0, 0, 0};  // blocks of a cluster, 0 = as the kernel has it, else one
};

// A launched kernel: all its state, so that it can be left and resumed at any warp instruction.
class GpuGrid {
 public:
  virtual ~GpuGrid() = default;
  enum class Progress {
    kDone,     // every thread has exited
    kStopped,  // the stop word changed; at most the warp instructions in flight were finished after that
    kYield,    // used up `budget` or only spins: give other grids of this context a turn. It may go on by itself (Busy)
    kShort,    // it has nothing that could run: not even one block finds the host memory that it needs, short_of()
  };
  // Advances until done, stopped, or about `budget` warp instructions have run on each thread that takes part (exactly
  // `budget` where it is one). Bit-exact whatever the cuts are, and however many threads there are, unless what the
  // kernel computes depends on the order of its blocks. When it returns, every thread is out.
  // An error is a fault of the guest's kernel: the grid is over, the context poisoned.
  virtual GpuResult<Progress> Run(const StopWord& stop, uint64_t budget) = 0;
  // After kShort: bytes of host memory to be free before another Run() helps.
  virtual uint64_t short_of() const { return 0; }
  // Does it hold host memory that comes back when it ends? Not while Run() runs.
  virtual bool holds_blocks() const { return true; }
  // Bytes of it, as far as they are known. Giving back many takes long: not in a turn. Not while Run() runs.
  virtual uint64_t held_bytes() const { return 0; }
  // Warp instructions run so far. Not while Run() runs.
  virtual uint64_t warp_instructions() const = 0;
};

// A context as bytes (docs/saved-context.md), in pieces of at most kStatePiece. An error of either ends the saving or
// reading and is what Save or Restore returns; whoever wants to do something else in between does it in there.
inline constexpr size_t kStatePiece = 64 << 10;
using StateSink = std::function<GpuResult<void>(std::span<const std::byte>)>;
// Fills `out` from the front and returns how many bytes came; 0 = there are no more.
using StateSource = std::function<GpuResult<size_t>(std::span<std::byte> out)>;

// The modules and grids of a saved context, in the order in which Save was given them: that is how their owner finds
// each again. Kernels are found by name (GpuModule::Function). Destroyed before the Gpu.
struct RestoredObjects {
  std::vector<std::unique_ptr<GpuModule>> modules;
  std::vector<std::unique_ptr<GpuGrid>> grids;
};

class Evictable;  // gpu/evictable.h

class Gpu {
 public:
  virtual ~Gpu() = default;

  struct DeviceInfo {
    std::string name;
    std::vector<int32_t> attributes;  // index = CUdevice_attribute, unknown = 0
  };
  virtual DeviceInfo Info() const = 0;

  // --- memory; addresses are what kernels use ---
  // Its addresses are those of one part of VGPU_BUFFER_PARTS from now on, as other GPUs of a process have others.
  // Before there is anything in memory. False: it is too late, or this GPU's addresses are not ours to choose.
  virtual bool UseVramPart(uint32_t) { return false; }
  // Bytes of VRAM that Alloc(bytes) will take (its rounding).
  virtual uint64_t AllocationBytes(uint64_t bytes) const = 0;
  virtual GpuResult<GpuVa> Alloc(uint64_t bytes) = 0;
  // kInvalidValue unless `address` came from Alloc. Returns the VRAM bytes given back.
  virtual GpuResult<uint64_t> Free(GpuVa address) = 0;
  // The copies and fills check the whole range first (kInvalidValue outside of live allocations, module globals
  // included) and then finish; callers cut long ones so that each step is short (<= 64 KiB).
  virtual GpuResult<void> CopyIn(GpuVa to, std::span<const std::byte> from) = 0;
  virtual GpuResult<void> CopyOut(std::span<std::byte> to, GpuVa from) = 0;
  virtual GpuResult<void> CopyDev(GpuVa to, GpuVa from, uint64_t bytes) = 0;
  virtual GpuResult<void> Fill(GpuVa to, uint32_t value, uint32_t element_bytes, uint64_t count) = 0;
  // Is [address, address + bytes) inside one live allocation or global?
  virtual bool Contains(GpuVa address, uint64_t bytes) const = 0;
  // Kernels, copies and fills reach `memory`, which lies in ReachSpace::shared() from a multiple of
  // ReachSpace::kAlignment on, at the address that is returned. Sharing it again returns the same. kNotSupported.
  // Not while a step runs; another thread may be loading a module. The file stays the caller's.
  virtual GpuResult<GpuVa> Share(std::span<std::byte>, const MemoryFile& = {}) {
    return GpuFail(CuStatus::kNotSupported, "this GPU's kernels reach no memory of the host");
  }
  // They do not any more; nothing when they did not. As Share.
  virtual void Unshare(std::span<std::byte>) {}
  // One aligned word of 4 or 8 bytes, read and written as kernels do it with the scope of the system: in one piece, and
  // what they do elsewhere later is seen later. kInvalidValue.
  virtual GpuResult<uint64_t> ReadWord(GpuVa, uint32_t) { return GpuFail(CuStatus::kNotSupported, "no single words"); }
  virtual GpuResult<void> WriteWord(GpuVa, uint32_t, uint64_t) {
    return GpuFail(CuStatus::kNotSupported, "no single words");
  }

  // --- memory that is made first and mapped to addresses later; all sizes and places are multiples of kMappingGrain
  // ---
  static constexpr uint64_t kMappingGrain = uint64_t{2} << 20;
  // Memory without an address, zeroed or as a driver gives it; its number. kInvalidValue, kOutOfMemory, kNotSupported.
  virtual GpuResult<uint64_t> CreateMappable(uint64_t) {
    return GpuFail(CuStatus::kNotSupported, "this GPU can't map memory to addresses later");
  }
  // Bytes given back. kInvalidHandle; kInvalidValue: a part of it is mapped.
  virtual GpuResult<uint64_t> ReleaseMappable(uint64_t) {
    return GpuFail(CuStatus::kInvalidHandle, "there is no memory to be mapped");
  }
  // A part of it, from an offset on, gets addresses in [VGPU_MAPPED_VA, + VGPU_MAPPED_BYTES). Not while a grid runs, as
  // UnmapMemory. kInvalidHandle, kInvalidValue, kOutOfMemory; kNotSupported: that part has an address.
  virtual GpuResult<void> MapMemory(uint64_t, uint64_t, GpuVa, uint64_t) {
    return GpuFail(CuStatus::kInvalidHandle, "there is no memory to be mapped");
  }
  // What whole calls of MapMemory have put there goes; its bytes are there again where it is mapped next.
  virtual GpuResult<void> UnmapMemory(GpuVa, uint64_t) { return GpuFail(CuStatus::kInvalidValue, "nothing is mapped"); }

  // --- textures and surfaces ---
  // The handle that kernels name it by. Its memory must be inside live allocations now; should that be freed later, an
  // access is a fault or reads what is there then. kInvalidValue, kNotSupported, kOutOfMemory.
  virtual GpuResult<uint64_t> CreateTexture(const TextureDesc& desc) = 0;
  // VRAM that CreateTexture will take beside the memory of its texels, which a GPU may want to have in another order.
  virtual uint64_t TextureBytes(const TextureDesc&) const { return 0; }
  // Returns the VRAM bytes given back. kInvalidHandle unless `handle` came from CreateTexture. No grid that uses it may
  // be left.
  virtual GpuResult<uint64_t> DestroyTexture(uint64_t handle) = 0;

  // --- code ---
  // `image`: fatbin, fatbin wrapper payload, or PTX text (NUL not needed). The text of an error names the PTX line and
  // the instruction. The module keeps no reference to `image`.
  virtual GpuResult<std::unique_ptr<GpuModule>> Load(std::span<const std::byte> image) = 0;
  // Runs `write`, which touches memory that its owner may take away, and returns true. False: that memory has gone, and
  // nothing was run. The owner waits for `write`, so it is short.
  using WhileThere = std::function<bool(const std::function<void()>& write)>;
  // The managed variables of the module that the next Load makes lie in there, which is shared. Fewer bytes than they
  // take: Load answers kInvalidValue. Load writes there within the last argument only, at most 1 MiB at a time; when
  // the memory has gone it answers kInvalidValue.
  virtual void PlaceManaged(GpuVa, uint64_t, WhileThere) {}
  // Bytes of code that Load has read in all: of an image with code for many GPUs only what it chose. Load's thread.
  virtual uint64_t code_bytes_read() const { return 0; }
  // Checks shape and parameters (kInvalidValue, kLaunchOutOfResources, ...), copies `params`. `max_dynamic_shared`:
  // the limit that FUNCTION_SET raised, else 48 KiB minus static.
  virtual GpuResult<std::unique_ptr<GpuGrid>> Launch(const FunctionInfo& function, const LaunchShape& shape,
                                                     std::span<const std::byte> params,
                                                     uint32_t max_dynamic_shared) = 0;

  // Such a launch is to begin by itself as soon as `before`, which is in front of it in its stream, has ended, without
  // a step. `grid`: nullptr, or what it became by an earlier call. False: not now; it is launched when it comes first.
  // It has its steps then, and not before, also if it was launched so. The thread of Run.
  virtual bool LaunchBehind(std::unique_ptr<GpuGrid>&, GpuGrid&, const FunctionInfo&, const LaunchShape&,
                            std::span<const std::byte>, uint32_t) {
    return false;
  }

  // --- device memory in which kernels leave what they have when a turn ends; a GPU that keeps it elsewhere keeps these
  // Bytes of it that a launch like this can use. Without them it runs all the same, and leaves later. Any thread.
  virtual uint64_t RoomFor(const FunctionInfo&, const LaunchShape&) { return 0; }
  // Is there room for launches that use so many bytes each, all at once? Any thread.
  virtual bool HasRoom(std::span<const uint64_t>) const { return true; }
  // VRAM that MakeRoom(bytes) will take.
  virtual uint64_t RoomBytes(uint64_t bytes) const { return bytes; }
  // Room for one launch more. Not while a step runs.
  virtual GpuResult<void> MakeRoom(uint64_t) { return {}; }
  // Gives up what no launch uses now. Returns the VRAM bytes given back. Not while a step runs.
  virtual uint64_t DropRoom() { return 0; }

  // How its memory can be taken off the card for a while; nullptr: it can't, or need not.
  virtual Evictable* evictable() { return nullptr; }

  // Is work of this context on the GPU while no step runs? The thread of Run.
  virtual bool Busy() const { return false; }
  // Returns when there is none: also one that never ends is waited for. The thread of Run.
  virtual void WaitUntilIdle() {}

  // Asked by Load, on its thread, before it touches the VRAM that a module takes: false ends it with kOutOfMemory. What
  // was admitted belongs to the module that Load returns; if it returns none, it is free again.
  virtual void AdmitVram(std::function<bool(uint64_t bytes)>) {}
  // Gives up host memory that is kept only to be fast. Not while a grid runs.
  virtual void DropCaches() {}

  // --- what kernels print, and the heap they allocate from; a GPU that has neither keeps these ---
  // How much text is kept until it is fetched; the oldest goes first. It may keep less.
  virtual void SetPrintCapacity(uint64_t) {}
  virtual size_t printed_bytes() const { return 0; }
  // Moves the oldest texts for one output, as much as fits, into `out`. Returns the bytes, 0 = nothing is there.
  virtual size_t TakePrinted(std::span<std::byte>, bool*) { return 0; }
  // Fills in request.map, which kernels of this GPU read; numbers in it are a guest's. kNotSupported where the guest
  // makes maps itself.
  virtual GpuResult<void> EncodeTensorMap(vgpu_tensor_map_request&) {
    return GpuFail(CuStatus::kNotSupported, "this GPU's maps are made in the guest");
  }
  // False: the heap exists already, its size is fixed.
  virtual bool SetHeapBytes(uint64_t) { return true; }
  // VRAM that SetHeapBytes takes more than the heap has so far; 0: MakeHeap will take it.
  virtual uint64_t HeapBytesAtOnce(uint64_t) const { return 0; }
  // VRAM that MakeHeap() will take, 0 once it exists. A function with uses_heap may only be launched after MakeHeap().
  virtual uint64_t HeapBytesToMake() const { return 0; }
  virtual GpuResult<void> MakeHeap() { return {}; }

  // --- putting a whole context away; a GPU that can't keeps these ---
  // Writes everything: memory, modules, textures, heap, what was printed, limits, and how far each grid is. All live
  // modules and all grids that have neither ended nor failed must be named, each once (kInvalidValue). Nothing changes
  // here: what was saved may go on.
  virtual GpuResult<void> Save(const StateSink&, std::span<GpuModule* const>, std::span<GpuGrid* const>) {
    return GpuFail(CuStatus::kNotSupported, "this GPU can't save a context");
  }
  // Reads what Save has written, in another process too, into this context, which must be fresh. Device addresses and
  // texture handles are what they were, grids go on bit-exactly. The bytes may be hostile: whatever contradicts itself
  // is kInvalidImage, another version, device or build that decodes the code differently kNotSupported, each with a
  // sentence; after an error the context is good for nothing but destruction.
  virtual GpuResult<RestoredObjects> Restore(const StateSource&) {
    return GpuFail(CuStatus::kNotSupported, "this GPU can't read a saved context");
  }
};

// The built-in GPU that runs PTX on the CPU. `vram_bytes`: address space of its arena. `threads`: that run a grid
// together, the caller of Run among them. gpu/soft.
// `host`: what the context takes of the host's memory beside the arena; outlives it. nullptr: without a limit.
// `reach`: where the arena lies, one GPU at a time.
std::unique_ptr<Gpu> MakeSoftGpu(uint64_t vram_bytes, uint32_t threads, HostMemory* host = nullptr,
                                 const ComputeCapability& capability = kDefaultCapability,
                                 const ReachSpace& reach = {});

}  // namespace vgpud
