// SPDX-License-Identifier: Apache-2.0
// Loading what a fuzzer made and running it for a bounded number of warp instructions.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "gpu/soft/soft_gpu.h"
#include "tests/fuzz/fuzz_bytes.h"

namespace vgpud::soft {

inline constexpr uint64_t kFuzzVram = 8 << 20;
// The highest: no kernel is refused for its target.
inline constexpr const ComputeCapability& kFuzzCapability = std::end(kComputeCapabilities)[-1];

// What a context needs before it runs anything: memory at the arena's start, textures and surfaces in it.
struct HostileMachine {
  HostileMachine();
  // Without them, for a saved context.
  struct Bare {};
  explicit HostileMachine(Bare) : gpu(kFuzzVram, BestIsa(), 1, nullptr, kFuzzCapability) {}
  // A launch out of bytes: mostly one that is allowed.
  LaunchShape Shape(FuzzBytes& in);
  // Parameters of the kernels that HostilePtx writes: pointers and handles, good ones and bad ones.
  std::vector<std::byte> Params(FuzzBytes& in, uint32_t bytes);
  // Launches `function` and runs it for at most `budget` warp instructions, in several pieces.
  void Run(const FunctionInfo& function, FuzzBytes& in, uint64_t budget);
  // Loads an image, and on success runs its kernels (the first few).
  void LoadAndRun(std::string_view image, FuzzBytes& in, uint64_t budget);
  // The PTX line of which loading `text`, or launching its kernel "k", complains; 0: of none.
  uint32_t WrongLine(const std::string& text);

  SoftGpu gpu;
  GpuVa memory{};
  std::vector<uint64_t> handles;  // of textures and surfaces
};

// One wrong instruction keeps a kernel from running at all, so the first few such lines go.
void LeaveOutWhatIsWrong(std::string& text);

// Any Error must have a text; aborts otherwise.
void CheckText(const GpuError& error);

}  // namespace vgpud::soft
