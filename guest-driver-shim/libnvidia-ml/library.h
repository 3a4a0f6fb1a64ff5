// SPDX-License-Identifier: Apache-2.0
// What the process has of NVML between nvmlInit and nvmlShutdown: the virtual functions that it may look at.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/locks/mutex.h"
#include "guest-driver-shim/libnvidia-ml/api.h"
#include "guest-driver-shim/libnvidia-ml/lock_ranks.h"
#include "guest-driver-shim/libnvidia-ml/source.h"
#include "guest-driver-shim/libnvidia-ml/use_history.h"

namespace vgpud::nvml {

// A virtual function. What never changes of it is read once.
class Device {
 public:
  Device(std::unique_ptr<Source> source, const vgpu_status& first);

  // The figures of now: NVML_SUCCESS, NVML_ERROR_GPU_IS_LOST, ... Any thread.
  nvmlReturn_t Read(vgpu_status* status);
  // How busy each of its processes was since then, in microseconds of the system's clock, and when that was found out.
  std::vector<UseHistory::Use> UseSince(uint64_t unix_us, unsigned long long* found_us);

  const std::string& name() const { return name_; }  // of the GPU; empty: the host has not said
  const std::string& uuid() const { return uuid_; }
  unsigned capability() const { return capability_; }  // times 10; 0: the host has not said
  const PciAddress& pci() const { return pci_; }
  const Source& source() const { return *source_; }

 private:
  const std::unique_ptr<Source> source_;
  const std::string name_, uuid_;
  const unsigned capability_;
  const PciAddress pci_;
  Mutex mutex_{lock_rank::kDevice};
  UseHistory history_ GUARDED_BY(mutex_);
};

class Library {
 public:
  static Library& Get();

  // Counts. `no_gpus`: also where there is none.
  nvmlReturn_t Init(bool no_gpus);
  nvmlReturn_t Shutdown();
  // NVML_ERROR_UNINITIALIZED or NVML_SUCCESS.
  nvmlReturn_t Ready() const;

  // Those that the first Init found. They stay until the process ends: a handle is never one of something else.
  const std::vector<std::unique_ptr<Device>>& devices() const { return devices_; }
  // nullptr: no handle of a device.
  Device* Find(nvmlDevice_t handle) const;
  static nvmlDevice_t HandleOf(const Device& device);

 private:
  nvmlReturn_t FindDevices() REQUIRES(mutex_);

  mutable Mutex mutex_{lock_rank::kLibrary};
  unsigned inits_ GUARDED_BY(mutex_) = 0;
  nvmlReturn_t found_ GUARDED_BY(mutex_) = NVML_ERROR_DRIVER_NOT_LOADED;
  std::vector<std::unique_ptr<Device>> devices_;  // written by the first Init, before anybody looks
};

// For calls of a device: it, and the error in *error. `arguments_ok`: what else the caller has checked.
Device* Find(nvmlDevice_t handle, bool arguments_ok, nvmlReturn_t* error);

// `text` and a NUL into the caller's room.
nvmlReturn_t CopyText(const std::string& text, char* to, unsigned room);

// An errno of a Source as NVML has it.
nvmlReturn_t FromErrno(int error);

}  // namespace vgpud::nvml
