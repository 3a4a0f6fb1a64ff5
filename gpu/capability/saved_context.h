// SPDX-License-Identifier: Apache-2.0
// A whole context as bytes (docs/saved-context.md), in pieces of at most kStatePiece. An error of a sink or a source
// ends the saving or reading, which returns it; whoever wants to do something else in between does it in there.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "gpu/gpu.h"

namespace vgpud {

inline constexpr size_t kStatePiece = 64 << 10;
using StateSink = std::function<GpuResult<void>(std::span<const std::byte>)>;
// Fills `out` from the front and returns how many bytes came; 0 = there are no more.
using StateSource = std::function<GpuResult<size_t>(std::span<std::byte> out)>;

// The modules and grids of a saved context, in the order in which Save was given them: that is how their owner finds
// each again. Kernels are found by name (GpuModule::Function). Destroyed before the Gpu.
struct RestoredObjects {
  std::vector<std::unique_ptr<GpuModule>> modules;
  std::vector<std::unique_ptr<GpuGrid>> grids;
};

class SavedContext {
 public:
  virtual ~SavedContext() = default;
  // Writes everything: memory, modules, textures, heap, what was printed, limits, and how far each grid is. All live
  // modules and all grids that have neither ended nor failed must be named, each once (kInvalidValue). Nothing changes
  // here: what was saved may go on.
  virtual GpuResult<void> Save(const StateSink& sink, std::span<GpuModule* const> modules,
                               std::span<GpuGrid* const> grids) = 0;
  // Reads what Save has written, in another process too, into this context, which must be fresh. Device addresses and
  // texture handles are what they were, grids go on bit-exactly. The bytes may be hostile: whatever contradicts itself
  // is kInvalidImage, another version, device or build that decodes the code differently kNotSupported, each with a
  // sentence; after an error the context is good for nothing but destruction.
  virtual GpuResult<RestoredObjects> Restore(const StateSource& source) = 0;
};

}  // namespace vgpud
