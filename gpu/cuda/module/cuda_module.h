// SPDX-License-Identifier: Apache-2.0
// A module of the driver, and what it says of its kernels.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpu/cuda/card.h"
#include "gpu/cuda/kernel_length.h"
#include "gpu/cuda/memory/ranges.h"
#include "gpu/gpu.h"
#include "gpu/rewrite/plan.h"

namespace vgpud::driver {

// A kernel that leaves by itself when its turn is over, beside the program's.
struct InTurns {
  Function handle = nullptr;
  rewrite::KernelPlan plan;
  uint32_t static_shared_bytes = 0;
  uint32_t max_threads = 0;
  mutable uint32_t dynamic_shared_set = 0;
};

// What Gpu::Launch is given is one of these.
struct Kernel : FunctionInfo {
  Function handle = nullptr;
  mutable uint32_t dynamic_shared_set = 0;  // what the driver has been told that launches may take
  std::unique_ptr<InTurns> in_turns;        // nullptr: why_not_in_turns
  std::unique_ptr<InTurns> in_pieces;       // for launches that turn out to be short (KernelPlan::piece_entry)
  std::string why_not_in_turns;
  mutable KernelLength length;        // as long as it is not stopped
  mutable uint64_t piece_blocks = 0;  // of the next piece (PieceGrid); 0: there was none
  mutable uint32_t piece_most = 0;    // instructions of a thread at most, of the longest launch so far
  mutable unsigned told = 0;          // bit: the rung that the log has named
};

class CudaModule final : public GpuModule {
 public:
  // `image`: a fat binary, machine code (ELF) or PTX text. It is measured here, because the driver is not told how long
  // it is; machine code that is too new for the driver it never sees (machine_code.h). Card and ranges outlive the
  // module. The driver's own words, if it has any, are in the text of an error. Where its PTX is there and
  // Card::best_rung allows it, what is loaded has a kernel that goes in turns beside each that can be stopped.
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
  uint32_t AttributeOf(driver::Function handle, FunctionAttribute which, uint32_t otherwise) const;
  void DescribeTurns(Kernel& kernel) const;
  std::unique_ptr<InTurns> FindInTurns(const Kernel& kernel, const rewrite::KernelPlan& plan) const;
  std::unique_ptr<Kernel> Describe(std::string_view name, driver::Function handle) const;

  const Card& card_;
  Ranges& ranges_;
  Module module_;
  uint64_t vram_bytes_ = 0;
  std::vector<rewrite::KernelPlan> plans_;                          // of all kernels, if the text was rewritten
  std::map<std::string_view, const rewrite::KernelPlan*> plan_of_;  // by name
  std::string why_not_rewritten_;
  mutable std::map<std::string, std::unique_ptr<Kernel>, std::less<>> kernels_;
  mutable std::map<std::string, Global, std::less<>> globals_;
};

// Is the whole of it there, as its own headers tell its length? Pure; for tests. The text says what is wrong.
GpuResult<void> MeasureImage(std::span<const std::byte> image);

}  // namespace vgpud::driver
