// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/ops/modules.h"

#include <fmt/core.h>

#include <algorithm>

namespace vgpud::exec {

GpuResult<void> Modules::Begin(uint64_t id, uint64_t bytes, HostMemory& memory) {
  if (modules_.count(id) != 0)
    return GpuFail(CuStatus::kInvalidValue, fmt::format("MODULE_BEGIN: module {} exists already", id));
  if (bytes == 0 || bytes > kMaxImageBytes - uploading_ || modules_.size() >= kMaxModules)
    return GpuFail(CuStatus::kInvalidValue,
                   fmt::format("MODULE_BEGIN: image of {} bytes, limit {} ({} in other uploads)", bytes, kMaxImageBytes,
                               uploading_));
  if (!memory.Take(bytes))
    return GpuFail(CuStatus::kOutOfMemory,
                   fmt::format("MODULE_BEGIN: an image of {} bytes exceeds the VF's host memory", bytes));
  HostMemoryPart part(memory, bytes);
  auto image = Mapping::Anonymous(bytes);
  if (!image) return GpuFail(CuStatus::kOutOfMemory, "MODULE_BEGIN: " + image.error().context);
  Module& module = modules_[id];
  module.image = std::move(*image);
  module.image_memory = std::move(part);
  uploading_ += bytes;
  return {};
}

GpuResult<std::span<const std::byte>> Modules::Image(uint64_t id) const {
  const auto it = modules_.find(id);
  if (it == modules_.end() || !it->second.image)
    return GpuFail(CuStatus::kInvalidHandle, fmt::format("module {} is not being uploaded", id));
  return it->second.image.bytes();
}

GpuResult<std::span<std::byte>> Modules::Place(uint64_t id, uint64_t offset, uint64_t bytes) const {
  const auto it = modules_.find(id);
  if (it == modules_.end() || !it->second.image)
    return GpuFail(CuStatus::kInvalidHandle, fmt::format("MODULE_DATA: module {} is not being uploaded", id));
  const Mapping& image = it->second.image;
  if (!image.Contains(offset, bytes))
    return GpuFail(CuStatus::kInvalidValue,
                   fmt::format("MODULE_DATA: {} bytes at {} of an image of {}", bytes, offset, image.size()));
  return image.bytes().subspan(offset, bytes);
}

void Modules::EndUpload(uint64_t id, std::unique_ptr<GpuModule> loaded) {
  const auto it = modules_.find(id);
  uploading_ -= it->second.image.size();
  it->second.image = Mapping{};
  it->second.image_memory = HostMemoryPart{};
  it->second.gpu = std::move(loaded);
  if (it->second.gpu == nullptr) modules_.erase(it);
}

GpuResult<uint64_t> Modules::Unload(uint64_t id) {
  const auto it = modules_.find(id);
  if (it == modules_.end()) return GpuFail(CuStatus::kInvalidHandle, fmt::format("MODULE_UNLOAD: no module {}", id));
  const uint64_t vram = it->second.gpu != nullptr ? it->second.gpu->vram_bytes() : 0;
  for (const auto& [info, handle] : it->second.handles) functions_.erase(handle);
  uploading_ -= it->second.image.size();
  modules_.erase(it);
  return vram;
}

GpuModule* Modules::Find(uint64_t id) const {
  const auto it = modules_.find(id);
  return it == modules_.end() ? nullptr : it->second.gpu.get();
}

GpuResult<uint64_t> Modules::Function(uint64_t module, std::string_view name) {
  const auto it = modules_.find(module);
  if (it == modules_.end() || it->second.gpu == nullptr)
    return GpuFail(CuStatus::kInvalidHandle, fmt::format("MODULE_FUNCTION: no loaded module {}", module));
  const FunctionInfo* info = it->second.gpu->Function(name);
  if (info == nullptr)
    return GpuFail(CuStatus::kNotFound, fmt::format("module {} has no kernel \"{}\"", module, name.substr(0, 200)));
  auto& handles = it->second.handles;
  if (const auto known = handles.find(info); known != handles.end()) return known->second;
  const uint32_t dynamic = kDefaultShared - std::min(kDefaultShared, info->static_shared_bytes);
  // A handle that is known leads to a function, whatever of this throws.
  functions_[next_handle_] = {info, module, dynamic};
  handles.emplace(info, next_handle_);
  return next_handle_++;
}

LoadedFunction* Modules::FindFunction(uint64_t handle) {
  const auto it = functions_.find(handle);
  return it == functions_.end() ? nullptr : &it->second;
}

}  // namespace vgpud::exec
