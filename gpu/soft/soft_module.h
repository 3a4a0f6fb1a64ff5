// A loaded module of the soft GPU: its decoded code and its globals in the arena.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpu/gpu.h"
#include "gpu/soft/arena.h"
#include "gpu/soft/op_table.h"
#include "gpu/soft/program.h"

namespace vgpud::soft {

class SoftModule final : public GpuModule {
 public:
  // Lays out globals, decodes the code. `registry`: where the module is listed while it lives.
  static GpuResult<std::unique_ptr<SoftModule>> Make(const ptx::Module& source, const OpTable& table, Arena& arena,
                                                     std::vector<SoftModule*>& registry);
  ~SoftModule() override;

  const FunctionInfo* Function(std::string_view name) const override;
  GpuResult<Global> FindGlobal(std::string_view name) const override;
  uint32_t function_count() const override { return kernels_; }
  uint32_t global_count() const override { return static_cast<uint32_t>(globals_.size()); }
  uint64_t vram_bytes() const override { return vram_bytes_; }

  const std::shared_ptr<Program>& program() const { return program_; }
  // The kernel whose info this is, nullptr if it is not of this module.
  const CodeFunction* Find(const FunctionInfo& info) const;

 private:
  SoftModule(Arena& arena, std::vector<SoftModule*>& registry) : arena_(arena), registry_(registry) {}
  GpuResult<void> PlaceVariables(const ptx::Module& source);
  GpuResult<void> Initialise(const ptx::Module& source);

  Arena& arena_;
  std::vector<SoftModule*>& registry_;
  std::shared_ptr<Program> program_;
  std::map<std::string, Global, std::less<>> globals_;
  std::vector<uint64_t> addresses_;  // by variable index
  uint64_t vram_bytes_ = 0;
  uint32_t kernels_ = 0;
};

}  // namespace vgpud::soft
