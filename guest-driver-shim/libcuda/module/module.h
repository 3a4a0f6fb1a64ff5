// SPDX-License-Identifier: Apache-2.0
// Program images: libraries (context independent), the modules they become on a device, and kernels.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "guest-driver-shim/libcuda/driver/driver.h"

namespace vgpud::cuda {

// An image. It is uploaded to a device at the first use there, and again after the device's context was reset.
class Library {
 public:
  // Finds the image's length and takes a copy (or, with `keep_pointer`, remembers where it is, if it is in one piece
  // and no bound is given). `most_registers`: that a thread may use, 0 = any.
  static CUresult Make(const void* image, bool keep_pointer, uint32_t most_registers, std::shared_ptr<Library>* out);
  ~Library();

  // The executor's number of this image on `device`; uploads it if need be. When that fails, `why` gets the reason.
  CUresult ModuleOn(Device* device, uint64_t* module, std::string* why = nullptr);

  // Names of its kernels on `device`, in the order of the code. CUDA_ERROR_NOT_SUPPORTED: the host is too old to tell.
  CUresult FunctionNames(Device* device, std::vector<std::string>* out);

  struct Variable {
    CUdeviceptr address = 0;
    uint64_t bytes = 0;
    bool is_managed = false;  // the host has its side of it
  };
  CUresult FindVariable(Device* device, const std::string& name, Variable* out);
  // The same of a __managed__ variable, which the host may use by its address from then on.
  CUresult FindManaged(Device* device, const std::string& name, Variable* out);

 private:
  struct Loaded {
    uint64_t epoch = 0;
    uint64_t module = 0;
    uint64_t managed = 0;  // shared memory of its managed variables
    std::map<std::string, Variable> variables;
  };
  CUresult Upload(Device* device, Loaded* loaded, std::string* why);
  CUresult UploadWith(Device* device, const Loaded& loaded, uint64_t managed_bytes, Completion* done, std::string* why);

  std::vector<std::byte> copy_;
  const void* image_ = nullptr;
  uint64_t bytes_ = 0;
  Mutex mutex_{lock_rank::kLibrary};
  std::map<Device*, Loaded> loaded_ GUARDED_BY(mutex_);
};

// What a launch needs to know; stays as it is while its owner is held.
struct KernelOnDevice {
  uint64_t epoch = 0;
  uint64_t function = 0;
  vgpu_function_info info{};
  std::vector<vgpu_param> parameters;
};

// A kernel by name. Serves as CUkernel and as CUfunction.
class Kernel {
 public:
  Kernel(std::shared_ptr<Library> library, std::string name, bool of_library)
      : library_(std::move(library)), name_(std::move(name)), of_library_(of_library) {}

  // Its facts on `device`; asks the executor the first time.
  CUresult On(Device* device, std::shared_ptr<const KernelOnDevice>* out);
  CUresult SetAttribute(Device* device, int attribute, int value);
  CUresult GetAttribute(Device* device, int attribute, int* value);

  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES where its facts are `info`. Cheap.
  int64_t max_dynamic_shared(const vgpu_function_info& info) const {
    const int set = max_dynamic_shared_.load(std::memory_order_relaxed);
    return set >= 0 ? set : static_cast<int64_t>(info.max_dynamic_shared);
  }

  const std::string& name() const { return name_; }
  const std::shared_ptr<Library>& library() const { return library_; }
  // The program has got it as a CUkernel (cuLibraryGetKernel), as CUDA's runtime does, even where it passes it as a
  // CUfunction, and not from a module.
  bool of_library() const { return of_library_; }
  // Has the program set one of the dimensions of its clusters? Cheap.
  bool asks_for_cluster() const { return asks_for_cluster_.load(std::memory_order_relaxed); }

  // What the calls of before CUDA 4.0 set for launches that say no more than a grid (launch/old_launch.cc).
  struct OldLaunch {
    Mutex mutex{lock_rank::kOldLaunch};
    int block[3] GUARDED_BY(mutex) = {1, 1, 1};
    unsigned shared GUARDED_BY(mutex) = 0;
    size_t parameter_bytes GUARDED_BY(mutex) = 0;
    std::vector<std::byte> parameters GUARDED_BY(mutex);
  };
  OldLaunch& old_launch() { return old_launch_; }

 private:
  const std::shared_ptr<Library> library_;
  const std::string name_;
  const bool of_library_;
  OldLaunch old_launch_;
  Mutex mutex_{lock_rank::kKernel};
  std::map<Device*, std::shared_ptr<const KernelOnDevice>> known_ GUARDED_BY(mutex_);
  std::atomic<int> max_dynamic_shared_{-1};  // as set by the program
  int carveout_ GUARDED_BY(mutex_) = CU_SHAREDMEM_CARVEOUT_DEFAULT;
  // By attribute, from CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH on.
  std::array<int, 5> cluster_{};
  std::atomic<bool> asks_for_cluster_{false};
};

// The kernel behind a CUfunction or CUkernel; nullptr for a wild handle.
std::shared_ptr<Kernel> FindKernel(const void* handle);

// Modules loaded into `context` go with it.
void DropModulesOf(CUcontext context);

// Blocks of that shape that fit on one multiprocessor: the smallest of what threads, registers, shared memory and
// block slots allow.
uint64_t BlocksPerMultiprocessor(const Device& device, const vgpu_function_info& info, int block_threads,
                                 uint64_t dynamic_shared);
// And on the whole device: what a cooperative launch may ask for.
uint64_t MostResident(const Device& device, const vgpu_function_info& info, unsigned threads, uint64_t dynamic_shared);

// The largest cluster that the device takes: 1 where blocks are all there is, 8 by default and 16 for kernels that
// allow sizes that other devices don't have.
int LargestCluster(const Device& device, bool non_portable);
// `cluster`: what a launch asks for, zeros if nothing; becomes what it gets, zeros if there is none.
// CUDA_ERROR_INVALID_CLUSTER_SIZE: not what the kernel was built for, too many blocks, or the grid is not a multiple of
// it; CUDA_ERROR_NOT_SUPPORTED: this device has none.
CUresult ChooseCluster(Device* device, Kernel* kernel, const vgpu_function_info& info, const unsigned (&grid)[3],
                       std::array<uint32_t, 3>* cluster);
// Blocks of the cluster that the kernel itself asks for, 0 if none. CUDA_ERROR_INVALID_CLUSTER_SIZE for one that has
// some of its dimensions only.
CUresult RequiredCluster(Device* device, Kernel* kernel, uint64_t* blocks);

}  // namespace vgpud::cuda
