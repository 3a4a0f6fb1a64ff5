// SPDX-License-Identifier: Apache-2.0
// A loaded module of the soft GPU: its decoded code and its globals in the arena.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpu/capability/module_memory.h"
#include "gpu/soft/code/op_table.h"
#include "gpu/soft/code/program.h"
#include "gpu/soft/decode/decoder.h"
#include "gpu/soft/decode/module_image.h"
#include "gpu/soft/memory/arena.h"

namespace vgpud::soft {

class PinnedBlocks;
class StateReader;
class StateWriter;

class SoftModule final : public GpuModule {
 public:
  // Memory that the host shares, for managed variables; of no bytes: they are device memory like others.
  struct ManagedPlace {
    GpuVa address{};
    uint64_t bytes = 0;
    ModuleMemory::WhileThere there = {};  // ModuleMemory::PlaceManaged
  };
  // What modules of a context share. `registry`: where a module is listed while it lives.
  struct Around {
    const OpTable& table;
    ModuleImageCache& images;
    Arena& arena;
    std::vector<SoftModule*>& registry;
    DecodeFor what_for;
    const std::function<bool(uint64_t bytes)>& admit_vram;  // ModuleMemory::AdmitVram
    const ComputeCapability& capability;
    ManagedPlace managed = {};
  };
  // `texts`: PTX of all parts. `most_registers`: of a thread, 0 = any. Lays out and fills globals; parses, links and
  // decodes what the context has not loaded lately.
  static GpuResult<std::unique_ptr<SoftModule>> Make(std::vector<std::string> texts, uint32_t most_registers,
                                                     const Around& around);
  ~SoftModule() override;

  const FunctionInfo* Function(std::string_view name) const override;
  bool NeedsLoading(std::string_view name) const override;
  GpuResult<uint64_t> LoadFunction(std::string_view name) override;
  GpuResult<Global> FindGlobal(std::string_view name) const override;
  uint32_t function_count() const override { return kernels_; }
  uint32_t global_count() const override { return static_cast<uint32_t>(globals_.size()); }
  uint64_t vram_bytes() const override { return vram_bytes_; }
  std::vector<std::string> FunctionNames() const override;
  uint64_t managed_bytes() const override { return managed_bytes_; }

  // --- module_state.cc ---
  void Save(StateWriter& out) const;
  // The arena has the blocks of its globals already, and gets their contents later.
  static GpuResult<std::unique_ptr<SoftModule>> Restore(StateReader& in, const Around& around, PinnedBlocks& pinned);

  // Of a module that is loaded by function: without the code of any.
  const std::shared_ptr<Program>& program() const { return program_; }
  bool by_function() const { return image_->ends != nullptr; }
  struct Kernel {
    const CodeFunction* code = nullptr;
    std::shared_ptr<Program> program;
  };
  // The kernel whose info this is, with the program that has its code; nothing if it is not of this module.
  Kernel Find(const FunctionInfo& info) const;

 private:
  // Gives a variable its memory.
  using Placer = std::function<GpuResult<GpuVa>(const ptx::Variable&)>;
  SoftModule(ModuleImagePtr image, uint32_t most_registers, const Around& around);
  GpuResult<void> Prepare(const Placer& place);
  std::shared_ptr<Program> MakeOwnProgram(std::shared_ptr<const ProgramCode> code) const;
  GpuResult<void> PlaceVariables(const Placer& place);
  GpuResult<std::vector<std::byte>> WithAddresses(const ptx::Variable& variable) const;
  GpuResult<void> Initialise(const ModuleMemory::WhileThere& there);

  const ModuleImagePtr image_;
  const uint32_t most_registers_;
  const OpTable& table_;
  const DecodeFor what_for_;
  Arena& arena_;
  std::vector<SoftModule*>& registry_;
  const ComputeCapability& capability_;
  std::shared_ptr<Program> program_;
  // By function: of each kernel that was loaded, of all together, bytes that were read for single ones.
  std::map<std::string, std::shared_ptr<Program>, std::less<>> loaded_;
  std::shared_ptr<Program> whole_;
  uint64_t read_ = 0;
  std::map<std::string, Global, std::less<>> globals_;
  std::vector<uint64_t> addresses_;  // by variable index
  uint64_t vram_bytes_ = 0;
  uint64_t managed_bytes_ = 0;
  bool managed_outside_ = false;  // of the arena: managed variables are not its own to free
  uint32_t kernels_ = 0;
};

}  // namespace vgpud::soft
