// SPDX-License-Identifier: Apache-2.0
// Images on devices: their upload, their variables, and what kernels of them are like there.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "guest-driver-shim/libcuda/channel/image.h"
#include "guest-driver-shim/libcuda/driver/allocations.h"
#include "guest-driver-shim/libcuda/driver/managed_blocks.h"
#include "guest-driver-shim/libcuda/driver/shared_memory.h"
#include "guest-driver-shim/libcuda/module/module.h"

namespace vgpud::cuda {
namespace {

constexpr uint64_t kUploadStep = 256 * 1024;
constexpr uint32_t kMaxParameters = 4096;
constexpr uint64_t kLongestName = 64 * 1024;

// The largest values of the attributes that concern clusters: width, height, depth, non-portable sizes, scheduling.
constexpr int kFirstOfCluster = CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH;
constexpr std::array<int, 5> kMostOfCluster = {INT32_MAX, INT32_MAX, INT32_MAX, 1, 2};
static_assert(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH == kFirstOfCluster + 2 &&
              CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED == kFirstOfCluster + 3 &&
              CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE == kFirstOfCluster + 4);

// In steps: a damaged header may promise much more than there is.
bool Copy(const ImageExtent& extent, std::vector<std::byte>* out) {
  for (uint64_t at = 0; at < extent.bytes; at += kUploadStep) {
    const uint64_t n = std::min(kUploadStep, extent.bytes - at);
    out->resize(at + n);
    if (!ReadOwnMemory(&(*out)[at], static_cast<const std::byte*>(extent.start) + at, n)) return false;
  }
  return true;
}

}  // namespace

CUresult Library::Make(const void* image, bool keep_pointer, uint32_t most_registers, std::shared_ptr<Library>* out) {
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<ImageExtent> images;
  if (!FindImages(image, ReadOwnMemory, &images)) return CUDA_ERROR_INVALID_IMAGE;
  auto library = std::make_shared<Library>();
  if (keep_pointer && images.size() == 1 && most_registers == 0) {
    library->image_ = images[0].start;
    library->bytes_ = images[0].bytes;
  } else {
    std::vector<std::vector<std::byte>> parts(images.size());
    for (size_t n = 0; n < images.size(); ++n)
      if (!Copy(images[n], &parts[n])) return CUDA_ERROR_INVALID_IMAGE;
    library->copy_ = parts.size() == 1 && most_registers == 0 ? std::move(parts[0]) : JoinImages(parts, most_registers);
    library->image_ = library->copy_.data();
    library->bytes_ = library->copy_.size();
  }
  *out = std::move(library);
  return CUDA_SUCCESS;
}

Library::~Library() {
  if (Driver::Get().Ready() != CUDA_SUCCESS) return;
  for (const auto& [device, loaded] : loaded_) {
    if (loaded.epoch != device->epoch.load()) {
      FreeShared(device, loaded.managed);
      continue;
    }
    for (const auto& [name, variable] : loaded.variables) {
      ForgetGlobal(device, variable.address);
      if (variable.is_managed) ForgetManagedVariable(device, variable.address);
    }
    Command command;
    command.op = VGPU_OP_MODULE_UNLOAD;
    command.args[0] = loaded.module;
    if (loaded.managed == 0) {
      device->channel->Post(command);
      continue;
    }
    device->channel->Call(command);
    FreeShared(device, loaded.managed);
  }
}

CUresult Library::UploadWith(Device* device, const Loaded& loaded, uint64_t managed_bytes, Completion* done,
                             std::string* why) {
  Channel& channel = *device->channel;
  const uint64_t module = loaded.module;
  Command begin;
  begin.op = VGPU_OP_MODULE_BEGIN;
  begin.args[0] = module;
  begin.args[1] = bytes_;
  if (const CUresult error = channel.Post(begin)) return error;
  const uint64_t step = std::min(kUploadStep, channel.max_span());
  std::vector<std::byte> piece(std::min(step, bytes_));
  for (uint64_t at = 0; at < bytes_; at += step) {
    const uint64_t n = std::min(step, bytes_ - at);
    if (!ReadOwnMemory(piece.data(), static_cast<const std::byte*>(image_) + at, n)) return CUDA_ERROR_INVALID_IMAGE;
    Command data;
    data.op = VGPU_OP_MODULE_DATA;
    data.args[0] = module;
    data.args[1] = at;
    if (const CUresult error = channel.Post(data, {piece.data(), n})) return error;
  }
  Command load;
  load.op = VGPU_OP_MODULE_LOAD;
  load.args[0] = module;
  load.args[1] = loaded.managed;
  load.args[2] = managed_bytes;
  *done = channel.Call(load);
  const CUresult error = done->status;
  if (error != CUDA_SUCCESS && channel.Sticky() == CUDA_SUCCESS) {
    const std::string text = channel.ErrorText();
    if (!text.empty()) fprintf(stderr, "vgpud: %s\n", text.c_str());
    if (why != nullptr) *why = text;
  }
  return error;
}

// How much memory managed variables need is known when they have been loaded once. Then they are loaded into memory
// that is shared.
CUresult Library::Upload(Device* device, Loaded* loaded, std::string* why) {
  Completion done;
  if (const CUresult error = UploadWith(device, *loaded, 0, &done, why)) return error;
  const uint64_t managed_bytes = device->shares_memory ? done.value[2] : 0;
  if (managed_bytes == 0) return CUDA_SUCCESS;
  Command unload;
  unload.op = VGPU_OP_MODULE_UNLOAD;
  unload.args[0] = loaded->module;
  if (const CUresult error = device->channel->Call(unload).status) return error;
  if (const CUresult error = AllocShared(device, managed_bytes, &loaded->managed)) return error;
  const CUresult error = UploadWith(device, *loaded, managed_bytes, &done, why);
  if (error != CUDA_SUCCESS) FreeShared(device, std::exchange(loaded->managed, 0));
  return error;
}

CUresult Library::ModuleOn(Device* device, uint64_t* module, std::string* why) {
  MutexLock lock(mutex_);
  Loaded& loaded = loaded_[device];
  const uint64_t epoch = device->epoch.load();
  if (loaded.epoch != epoch) {
    // What it had before a reset of the device is nobody's.
    FreeShared(device, loaded.managed);
    loaded = {};
    loaded.module = device->next_module.fetch_add(1);
    if (const CUresult error = Upload(device, &loaded, why)) {
      Command unload;
      unload.op = VGPU_OP_MODULE_UNLOAD;
      unload.args[0] = loaded.module;
      device->channel->Call(unload);
      return error;
    }
    loaded.epoch = epoch;
  }
  *module = loaded.module;
  return CUDA_SUCCESS;
}

CUresult Library::FindVariable(Device* device, const std::string& name, Variable* out) {
  uint64_t module;
  if (const CUresult error = ModuleOn(device, &module)) return error;
  MutexLock lock(mutex_);
  Loaded& loaded = loaded_[device];
  if (const auto known = loaded.variables.find(name); known != loaded.variables.end()) {
    *out = known->second;
    return CUDA_SUCCESS;
  }
  if (name.empty() || name.size() > device->channel->max_span()) return CUDA_ERROR_INVALID_VALUE;
  Command command;
  command.op = VGPU_OP_MODULE_GLOBAL;
  command.args[0] = module;
  const Completion done = device->channel->Call(command, std::as_bytes(std::span(name.data(), name.size())));
  if (done.status != CUDA_SUCCESS) return done.status;
  *out = {done.value[0], done.value[1], false};
  loaded.variables[name] = *out;
  NoteGlobal(device, out->address, out->bytes);
  return CUDA_SUCCESS;
}

CUresult Library::FunctionNames(Device* device, std::vector<std::string>* out) {
  if ((device->channel->transport().info().features & VGPU_FEATURE_FUNCTION_NAMES) == 0)
    return CUDA_ERROR_NOT_SUPPORTED;
  uint64_t module;
  if (const CUresult error = ModuleOn(device, &module)) return error;
  out->clear();
  std::vector<std::byte> room(std::min<uint64_t>(kLongestName, device->channel->max_span()));
  for (;;) {
    Command command;
    command.op = VGPU_OP_MODULE_FUNCTION_NAME;
    command.args[0] = module;
    command.args[1] = out->size();
    const Completion done = device->channel->Call(command, {}, room);
    if (done.status != CUDA_SUCCESS) return done.status;
    if (done.value[1] == 0) return CUDA_SUCCESS;
    if (done.value[1] > room.size()) return CUDA_ERROR_UNKNOWN;
    out->emplace_back(reinterpret_cast<const char*>(room.data()), done.value[1]);
  }
}

CUresult Library::FindManaged(Device* device, const std::string& name, Variable* out) {
  if (const CUresult error = FindVariable(device, name, out)) return error;
  MutexLock lock(mutex_);
  Variable& variable = loaded_[device].variables[name];
  if (variable.is_managed) return CUDA_SUCCESS;
  const bool shared = loaded_[device].managed != 0;
  if (const CUresult error = AdoptManagedVariable(device, out->address, out->bytes, shared)) return error;
  variable.is_managed = true;
  return CUDA_SUCCESS;
}

CUresult Kernel::On(Device* device, std::shared_ptr<const KernelOnDevice>* out) {
  MutexLock lock(mutex_);
  std::shared_ptr<const KernelOnDevice>& known = known_[device];
  if (known != nullptr && known->epoch == device->epoch.load()) {
    *out = known;
    return CUDA_SUCCESS;
  }
  uint64_t module;
  if (const CUresult error = library_->ModuleOn(device, &module)) return error;
  if (name_.empty() || name_.size() > device->channel->max_span()) return CUDA_ERROR_NOT_FOUND;

  std::vector<std::byte> answer(sizeof(vgpu_function_info) + kMaxParameters * sizeof(vgpu_param));
  Command command;
  command.op = VGPU_OP_MODULE_FUNCTION;
  command.args[0] = module;
  command.args[1] = name_.size();
  const Completion done = device->channel->Call(command, std::as_bytes(std::span(name_.data(), name_.size())), answer);
  if (done.status != CUDA_SUCCESS) return done.status;

  auto fresh = std::make_shared<KernelOnDevice>();
  fresh->epoch = device->epoch.load();
  fresh->function = done.value[0];
  memcpy(&fresh->info, answer.data(), sizeof fresh->info);
  if (fresh->info.param_count > kMaxParameters) return CUDA_ERROR_UNKNOWN;
  fresh->parameters.resize(fresh->info.param_count);
  std::ranges::copy(std::span(answer).subspan(sizeof fresh->info, fresh->info.param_count * sizeof(vgpu_param)),
                    std::as_writable_bytes(std::span(fresh->parameters)).begin());
  for (const vgpu_param& parameter : fresh->parameters) {
    if (parameter.offset > fresh->info.param_bytes || parameter.bytes > fresh->info.param_bytes - parameter.offset) {
      return CUDA_ERROR_UNKNOWN;
    }
  }
  known = std::move(fresh);
  *out = known;
  return CUDA_SUCCESS;
}

CUresult Kernel::SetAttribute(Device* device, int attribute, int value) {
  std::shared_ptr<const KernelOnDevice> facts;
  if (const CUresult error = On(device, &facts)) return error;
  if (const auto i = static_cast<size_t>(attribute - kFirstOfCluster); i < cluster_.size()) {
    if (value < 0 || value > kMostOfCluster[i]) return CUDA_ERROR_INVALID_VALUE;
    MutexLock lock(mutex_);
    cluster_[i] = value;
    if (i < 3) asks_for_cluster_ = true;
    return CUDA_SUCCESS;
  }
  Command command;
  command.op = VGPU_OP_FUNCTION_SET;
  command.args[0] = facts->function;
  command.args[1] = static_cast<uint64_t>(attribute);
  command.args[2] = static_cast<uint64_t>(static_cast<int64_t>(value));
  MutexLock lock(mutex_);
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    const int limit = device->attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    if (value < 0 || value > limit - static_cast<int>(facts->info.static_shared_bytes)) return CUDA_ERROR_INVALID_VALUE;
    max_dynamic_shared_ = value;
  } else if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
    if (value < CU_SHAREDMEM_CARVEOUT_DEFAULT || value > CU_SHAREDMEM_CARVEOUT_MAX_SHARED) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    carveout_ = value;
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return device->channel->Call(command).status;
}

CUresult Kernel::GetAttribute(Device* device, int attribute, int* value) {
  std::shared_ptr<const KernelOnDevice> facts;
  if (const CUresult error = On(device, &facts)) return error;
  const vgpu_function_info& info = facts->info;
  MutexLock lock(mutex_);
  const bool asked = asks_for_cluster();
  const struct {
    int attribute;
    int64_t value;
  } rows[] = {
      {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, info.max_threads},
      {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, info.static_shared_bytes},
      {CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, info.const_bytes},
      {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, info.local_bytes},
      {CU_FUNC_ATTRIBUTE_NUM_REGS, info.registers},
      {CU_FUNC_ATTRIBUTE_PTX_VERSION, info.ptx_version},
      {CU_FUNC_ATTRIBUTE_BINARY_VERSION, info.binary_version},
      {CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, 0},
      {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, max_dynamic_shared(info)},
      {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, carveout_},
      {CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, info.flags & VGPU_FUNCTION_CLUSTER_MUST_BE_SET},
      {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, asked ? cluster_[0] : static_cast<int64_t>(info.cluster & 255)},
      {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, asked ? cluster_[1] : static_cast<int64_t>(info.cluster >> 8 & 255)},
      {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, asked ? cluster_[2] : static_cast<int64_t>(info.cluster >> 16 & 255)},
      {CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, cluster_[3]},
      {CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, cluster_[4]},
  };
  for (const auto& row : rows) {
    if (row.attribute != attribute) continue;
    *value = static_cast<int>(row.value);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace vgpud::cuda
