// SPDX-License-Identifier: Apache-2.0
// The PTX of a module, parsed, linked and decoded once for all modules that are loaded from the same texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "gpu/gpu.h"
#include "gpu/ptx/ir.h"
#include "gpu/ptx/parser.h"
#include "gpu/soft/code/op_table.h"
#include "gpu/soft/code/program.h"
#include "gpu/soft/decode/decoder.h"

namespace vgpud::soft {

// Never changes. What is a module's own (memory of its variables, addresses, kernels as they are named) is not here.
struct ModuleImage {
  std::vector<std::string> texts;    // of all parts
  std::vector<ptx::Target> targets;  // of each of them
  std::vector<ptx::Variable> variables;
  uint64_t const_bytes = 0;
  std::shared_ptr<const ProgramCode> code;
  std::unique_ptr<const ptx::BodyEnds> ends;  // where no body is decoded: each kernel is when it is asked for
};
using ModuleImagePtr = std::shared_ptr<const ModuleImage>;

enum class Loading : uint8_t { kWhole, kByFunction };

// kByFunction: of a large text the headers are read, and no body (by_function.h).
[[nodiscard]] GpuResult<ModuleImagePtr> MakeModuleImage(std::vector<std::string> texts, const OpTable& table,
                                                        DecodeFor what_for = {}, Loading loading = Loading::kWhole);

// The images that a context loaded last, found by their whole texts. It keeps what it has room for; what modules still
// use lives on without it. Not thread-safe.
class ModuleImageCache {
 public:
  static constexpr size_t kMaxImages = 64;
  static constexpr uint64_t kMaxBytes = 64u << 20;  // of host memory, texts and code
  // As MakeModuleImage, which is called only when the same texts are not here. Errors are not kept.
  // `what_for` is the same for all.
  [[nodiscard]] GpuResult<ModuleImagePtr> Get(std::vector<std::string> texts, const OpTable& table,
                                              DecodeFor what_for = {}, Loading loading = Loading::kWhole);
  // Forgets what it keeps; modules go on with what they use.
  void Clear() {
    entries_.clear();
    bytes_ = 0;
  }
  uint64_t hits() const { return hits_; }
  size_t images() const { return entries_.size(); }
  uint64_t bytes() const { return bytes_; }

 private:
  struct Entry {
    size_t hash;
    uint64_t bytes;
    ModuleImagePtr image;
  };
  std::list<Entry> entries_;  // used last first
  uint64_t bytes_ = 0;
  uint64_t hits_ = 0;
};

}  // namespace vgpud::soft
