// SPDX-License-Identifier: Apache-2.0
// Program images: libraries (context independent), the modules they become on a device, and kernels.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "guest-driver-shim/libcuda/driver/driver.h"

namespace vgpud::cuda {

// An image. It is uploaded to a device at the first use there, and again after the device's context was reset.
class Library {
 public:
  // Finds the image's length and takes a copy (or, with `keep_pointer`, remembers where it is, if it is in one piece).
  static CUresult Make(const void* image, bool keep_pointer, std::shared_ptr<Library>* out);
  ~Library();

  // The executor's number of this image on `device`; uploads it if need be.
  CUresult ModuleOn(Device* device, uint64_t* module);

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
    std::map<std::string, Variable> variables;
  };
  CUresult Upload(Device* device, uint64_t module);

  std::vector<std::byte> copy_;
  const void* image_ = nullptr;
  uint64_t bytes_ = 0;
  std::mutex mutex_;
  std::map<Device*, Loaded> loaded_;
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
  Kernel(std::shared_ptr<Library> library, std::string name) : library_(std::move(library)), name_(std::move(name)) {}

  // Its facts on `device`; asks the executor the first time.
  CUresult On(Device* device, std::shared_ptr<const KernelOnDevice>* out);
  CUresult SetAttribute(Device* device, int attribute, int value);
  CUresult GetAttribute(Device* device, int attribute, int* value);

  const std::string& name() const { return name_; }
  const std::shared_ptr<Library>& library() const { return library_; }

 private:
  const std::shared_ptr<Library> library_;
  const std::string name_;
  std::mutex mutex_;
  std::map<Device*, std::shared_ptr<const KernelOnDevice>> known_;
  int max_dynamic_shared_ = -1;  // as set by the program
  int carveout_ = CU_SHAREDMEM_CARVEOUT_DEFAULT;
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

}  // namespace vgpud::cuda
