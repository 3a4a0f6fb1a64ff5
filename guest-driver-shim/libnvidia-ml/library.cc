// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libnvidia-ml/library.h"

#include <sys/time.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "guest-driver-shim/libcuda/channel/uuid_text.h"
#include "guest-driver-shim/libnvidia-ml/not_supported.h"

namespace vgpud::nvml {
namespace {

uint64_t UnixUs() {
  timeval now{};
  gettimeofday(&now, nullptr);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000u + static_cast<uint64_t>(now.tv_usec);
}

}  // namespace

nvmlReturn_t FromErrno(int error) {
  switch (error) {
    case 0:
      return NVML_SUCCESS;
    case ENOSYS:
    case EPROTO:
      return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    case EACCES:
    case EPERM:
      return NVML_ERROR_NO_PERMISSION;
    case ETIMEDOUT:
      return NVML_ERROR_TIMEOUT;
    case ENOMEM:
      return NVML_ERROR_MEMORY;
    default:
      return NVML_ERROR_GPU_IS_LOST;
  }
}

Device::Device(std::unique_ptr<Source> source, const vgpu_status& first)
    : source_(std::move(source)),
      name_(first.gpu_name),
      uuid_(cuda::UuidText(first.uuid)),
      capability_(first.capability),
      pci_(source_->pci.value_or(cuda::PciAddressOf(first.uuid))) {
  history_.Add(first, UnixUs());
}

nvmlReturn_t Device::Read(vgpu_status* status) {
  if (const int error = source_->Read(status)) return FromErrno(error);
  MutexLock lock(mutex_);
  history_.Add(*status, UnixUs());
  return NVML_SUCCESS;
}

std::vector<UseHistory::Use> Device::UseSince(uint64_t unix_us, unsigned long long* found_us) {
  MutexLock lock(mutex_);
  *found_us = history_.last_us();
  return history_.Since(unix_us);
}

Library& Library::Get() {
  static Library* const library = new Library;  // outlives every thread and exit handler of the program
  return *library;
}

nvmlReturn_t Library::FindDevices() {
  nvmlReturn_t worst = NVML_ERROR_DRIVER_NOT_LOADED;
  for (auto& source : FindSources()) {
    vgpu_status status;
    const int error = source->Read(&status);
    if (error == 0)
      devices_.push_back(std::make_unique<Device>(std::move(source), status));
    else if (error != ENOENT && error != ECONNREFUSED)
      worst = FromErrno(error);
  }
  return devices_.empty() ? worst : NVML_SUCCESS;
}

nvmlReturn_t Library::Init(bool no_gpus) {
  MutexLock lock(mutex_);
  if (inits_ == 0 && devices_.empty()) found_ = FindDevices();
  if (found_ != NVML_SUCCESS && !no_gpus) return found_;
  ++inits_;
  return NVML_SUCCESS;
}

nvmlReturn_t Library::Shutdown() {
  MutexLock lock(mutex_);
  if (inits_ == 0) return NVML_ERROR_UNINITIALIZED;
  --inits_;
  return NVML_SUCCESS;
}

nvmlReturn_t Library::Ready() const {
  MutexLock lock(mutex_);
  return inits_ != 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

Device* Library::Find(nvmlDevice_t handle) const {
  for (const auto& device : devices_)
    if (HandleOf(*device) == handle) return device.get();
  return nullptr;
}

nvmlDevice_t Library::HandleOf(const Device& device) {
  return reinterpret_cast<nvmlDevice_t>(const_cast<Device*>(&device));
}

Device* Find(nvmlDevice_t handle, bool arguments_ok, nvmlReturn_t* error) {
  *error = Library::Get().Ready();
  if (*error != NVML_SUCCESS) return nullptr;
  Device* const device = Library::Get().Find(handle);
  if (device == nullptr || !arguments_ok) *error = NVML_ERROR_INVALID_ARGUMENT;
  return *error == NVML_SUCCESS ? device : nullptr;
}

nvmlReturn_t CopyText(const std::string& text, char* to, unsigned room) {
  if (room <= text.size()) return NVML_ERROR_INSUFFICIENT_SIZE;
  memcpy(to, text.c_str(), text.size() + 1);
  return NVML_SUCCESS;
}

int NotSupported() {
  const nvmlReturn_t ready = Library::Get().Ready();
  return ready != NVML_SUCCESS ? ready : NVML_ERROR_NOT_SUPPORTED;
}

}  // namespace vgpud::nvml
