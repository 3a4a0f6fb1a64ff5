// SPDX-License-Identifier: Apache-2.0
// What a GPU must do for an executor. One Gpu object = one CUDA context of one guest process.
//
// Contract. All calls come from one thread at a time (the executor serialises them). Nothing here waits: work is
// advanced by Run() in steps that end at once when the stop word changes. A GPU that works beside the processor can't
// always be stopped so: the executor waits for what Run() has left on it (AsyncWork) before it says that it is off the
// GPU, and that is an overrun like any other. What only some GPUs do is a capability (gpu/capability/).
//
// Whatever a guest passes in (images, names, addresses, launch shapes, parameter bytes) is checked here and answered
// with the CUresult that CUDA documents plus a sentence for the human. A fault while a grid runs is returned by Run();
// the executor poisons the context with it.
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

// When to get off the GPU: as soon as *word != expected. Looked at after every warp instruction.
struct StopWord {
  const std::atomic<uint32_t>* word;
  uint32_t expected;
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
  // What its managed variables take together (ModuleMemory::PlaceManaged).
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
    kYield,    // used up `budget` or only spins: give other grids of this context a turn. It may go on by itself
               // (AsyncWork)
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

class AsyncWork;
class DeviceOutput;
class Evictable;
class HostSharing;
class KernelHeap;
class LateMapping;
class ModuleMemory;
class SavedContext;
class SpillRoom;
class TensorMapMaker;
class VramGrowth;
class VramPart;
class TripsMidKernel;

// What a GPU may do beside the contract below: a pointer for each capability (gpu/capability/), nullptr where it has
// none. The pointers are good as long as the Gpu.
struct GpuCapabilities {
  AsyncWork* async_work = nullptr;
  DeviceOutput* output = nullptr;
  Evictable* evictable = nullptr;
  HostSharing* host_sharing = nullptr;
  KernelHeap* heap = nullptr;
  LateMapping* late_mapping = nullptr;
  ModuleMemory* module_memory = nullptr;
  SavedContext* saved_context = nullptr;
  SpillRoom* spill_room = nullptr;
  TensorMapMaker* tensor_maps = nullptr;
  VramGrowth* vram_growth = nullptr;
  VramPart* vram_part = nullptr;
  TripsMidKernel* mid_kernel_trips = nullptr;
};

class Gpu {
 public:
  virtual ~Gpu() = default;

  struct DeviceInfo {
    std::string name;
    std::vector<int32_t> attributes;  // index = CUdevice_attribute, unknown = 0
  };
  virtual DeviceInfo Info() const = 0;
  virtual GpuCapabilities capabilities() = 0;

  // --- memory; addresses are what kernels use ---
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
  // One aligned word of 4 or 8 bytes, read and written as kernels do it with the scope of the system: in one piece, and
  // what they do elsewhere later is seen later. kInvalidValue.
  virtual GpuResult<uint64_t> ReadWord(GpuVa from, uint32_t bytes) = 0;
  virtual GpuResult<void> WriteWord(GpuVa to, uint32_t bytes, uint64_t value) = 0;

  // --- textures and surfaces ---
  // The handle that kernels name it by. Its memory must be inside live allocations now; should that be freed later, an
  // access is a fault or reads what is there then. kInvalidValue, kNotSupported, kOutOfMemory.
  virtual GpuResult<uint64_t> CreateTexture(const TextureDesc& desc) = 0;
  // VRAM that CreateTexture will take beside the memory of its texels, which a GPU may want to have in another order.
  virtual uint64_t TextureBytes(const TextureDesc& desc) const = 0;
  // Returns the VRAM bytes given back. kInvalidHandle unless `handle` came from CreateTexture. No grid that uses it may
  // be left.
  virtual GpuResult<uint64_t> DestroyTexture(uint64_t handle) = 0;

  // --- code ---
  // `image`: fatbin, fatbin wrapper payload, or PTX text (NUL not needed). The text of an error names the PTX line and
  // the instruction. The module keeps no reference to `image`.
  virtual GpuResult<std::unique_ptr<GpuModule>> Load(std::span<const std::byte> image) = 0;
  // Bytes of code that Load has read in all: of an image with code for many GPUs only what it chose. Load's thread.
  virtual uint64_t code_bytes_read() const = 0;
  // Checks shape and parameters (kInvalidValue, kLaunchOutOfResources, ...), copies `params`. `max_dynamic_shared`:
  // the limit that FUNCTION_SET raised, else 48 KiB minus static.
  virtual GpuResult<std::unique_ptr<GpuGrid>> Launch(const FunctionInfo& function, const LaunchShape& shape,
                                                     std::span<const std::byte> params,
                                                     uint32_t max_dynamic_shared) = 0;
  // Gives up host memory that is kept only to be fast. Not while a grid runs.
  virtual void DropCaches() = 0;
};

// Of the built-in GPU: what its arena has at first, and what it may grow to (gpu/capability/vram_growth.h); less than
// that: it does not grow.
struct VramSize {
  // NOLINTNEXTLINE(google-explicit-constructor): a size that does not grow is a number.
  VramSize(uint64_t now, uint64_t later = 0) : bytes(now), most(later) {}
  uint64_t bytes;
  uint64_t most;
};
// The built-in GPU that runs PTX on the CPU. `threads`: that run a grid together, the caller of Run among them.
// gpu/soft. `host`: what the context takes of the host's memory beside the arena; outlives it. nullptr: without a
// limit. `reach`: where the arena lies, one GPU at a time.
std::unique_ptr<Gpu> MakeSoftGpu(const VramSize& vram, uint32_t threads, HostMemory* host = nullptr,
                                 const ComputeCapability& capability = kDefaultCapability,
                                 const ReachSpace& reach = {});

}  // namespace vgpud
