// SPDX-License-Identifier: Apache-2.0
// A module of the driver, and what it says of its kernels.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "gpu/cuda/card.h"
#include "gpu/cuda/ranges.h"
#include "gpu/gpu.h"

namespace vgpud::driver {

// What Gpu::Launch is given is one of these.
struct Kernel : FunctionInfo {
  Function handle = nullptr;
  mutable uint32_t dynamic_shared_set = 0;  // what the driver has been told that launches may take
};

class CudaModule final : public GpuModule {
 public:
  // `image`: a fat binary, machine code (ELF) or PTX text. It is measured here, because the driver is not told how long
  // it is. Card and ranges outlive the module. The driver's own words, if it has any, are in the text of an error.
  static GpuResult<std::unique_ptr<GpuModule>> Load(const Card& card, Ranges& ranges, std::span<const std::byte> image);
  ~CudaModule() override;

  const FunctionInfo* Function(std::string_view name) const override;
  GpuResult<Global> FindGlobal(std::string_view name) const override;
  uint32_t function_count() const override;
  // The driver does not tell.
  uint32_t global_count() const override { return 0; }
  std::vector<std::string> FunctionNames() const override;
  uint64_t vram_bytes() const override { return vram_bytes_; }

 private:
  CudaModule(const Card& card, Ranges& ranges, Module module) : card_(card), ranges_(ranges), module_(module) {}
  std::unique_ptr<Kernel> Describe(std::string_view name, driver::Function handle) const;

  const Card& card_;
  Ranges& ranges_;
  Module module_;
  uint64_t vram_bytes_ = 0;
  mutable std::map<std::string, std::unique_ptr<Kernel>, std::less<>> kernels_;
  mutable std::map<std::string, Global, std::less<>> globals_;
};

// Is the whole of it there, as its own headers tell its length? Pure; for tests. The text says what is wrong.
GpuResult<void> MeasureImage(std::span<const std::byte> image);

}  // namespace vgpud::driver
