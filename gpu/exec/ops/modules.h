// SPDX-License-Identifier: Apache-2.0
// Modules of one context: uploads in progress, loaded modules, and the functions whose handles the guest holds.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/host_memory.h"
#include "base/mapping.h"
#include "gpu/gpu.h"

namespace vgpud::exec {

struct LoadedFunction {
  const FunctionInfo* info = nullptr;
  uint64_t module = 0;
  uint32_t max_dynamic_shared = 0;
};

class Modules {
 public:
  static constexpr uint64_t kMaxImageBytes = uint64_t{512} << 20;  // all uploads in progress together
  static constexpr size_t kMaxModules = 65536;
  static constexpr uint32_t kDefaultShared = 48 * 1024;

  // Starts an upload. kInvalidValue: id taken, image empty or too large; kOutOfMemory: `memory` has no room for it.
  [[nodiscard]] GpuResult<void> Begin(uint64_t id, uint64_t bytes, HostMemory& memory);
  // Where `bytes` bytes at `offset` of the image go. kInvalidHandle: no upload of that id; kInvalidValue: outside of
  // the image.
  [[nodiscard]] GpuResult<std::span<std::byte>> Place(uint64_t id, uint64_t offset, uint64_t bytes) const;
  // The uploaded image. kInvalidHandle: no upload of that id.
  [[nodiscard]] GpuResult<std::span<const std::byte>> Image(uint64_t id) const;
  // Ends the upload: the module is `loaded`, or gone when that is null.
  void EndUpload(uint64_t id, std::unique_ptr<GpuModule> loaded);
  // Returns the VRAM that the module had. kInvalidHandle: not there.
  [[nodiscard]] GpuResult<uint64_t> Unload(uint64_t id);
  // nullptr: no loaded module of that id.
  GpuModule* Find(uint64_t id) const;

  // A handle for `name`, the same one each time. kInvalidHandle or kNotFound.
  [[nodiscard]] GpuResult<uint64_t> Function(uint64_t module, std::string_view name);
  // nullptr: no such handle.
  LoadedFunction* FindFunction(uint64_t handle);

 private:
  struct Module {
    Mapping image;
    HostMemoryPart image_memory;
    std::unique_ptr<GpuModule> gpu;
    std::unordered_map<const FunctionInfo*, uint64_t> handles;
  };
  std::unordered_map<uint64_t, Module> modules_;
  std::unordered_map<uint64_t, LoadedFunction> functions_;
  uint64_t uploading_ = 0;
  uint64_t next_handle_ = 1;
};

}  // namespace vgpud::exec
