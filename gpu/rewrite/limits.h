// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace vgpud::rewrite {

// What rewriting one text may take; beyond, kernels stay as they are.
struct Limits {
  static constexpr uint64_t kGrowthBytes = 64u << 20;        // of the text, by safepoints
  static constexpr uint64_t kReachSteps = 4'000'000;         // functions that kernels may call, all kernels together
  static constexpr uint64_t kAnalysisSteps = 400'000'000;    // of control flow and registers, all kernels together
  static constexpr uint64_t kAliveWords = 8'000'000;         // 64 registers of one basic block each, of a kernel
  static constexpr uint64_t kAliveRegisters = 4'000'000;     // of all safepoints of a kernel
  static constexpr uint32_t kPollAfter = 1u << 20;           // most of Options::poll_after
  static constexpr size_t kSafepoints = 2000;                // of a kernel
  static constexpr uint32_t kStaticSharedBytes = 48u << 10;  // of a kernel (CUDA C++ Programming Guide)
  static constexpr uint32_t kOldParamBytes = 4096;           // before PTX 8.1
  static constexpr uint32_t kParamBytes = 32764;
};

}  // namespace vgpud::rewrite
