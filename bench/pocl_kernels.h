// SPDX-License-Identifier: Apache-2.0
// The kernels of ptx_kernels.h in OpenCL C, on PoCL with one thread: what a compiler for the CPU makes of them, without
// checks of addresses and without preemption.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace vgpud::bench {

class PoclKernels {
 public:
  // nullptr if there is no PoCL; `why` then says so in a sentence. To be called before any other thread runs: PoCL is
  // told by the environment to use one thread.
  static std::unique_ptr<PoclKernels> Make(std::string& why);
  virtual ~PoclKernels() = default;
  // The device's own words.
  virtual std::string Name() const = 0;
  // Runs `kernel` (vectoradd, matmul, reduction, collatz) once, compiled before, and waits for its end.
  virtual void Run(const std::string& kernel) = 0;
  // The output of `kernel` as 32-bit words.
  virtual std::vector<uint32_t> Output(const std::string& kernel, size_t words) = 0;
};

}  // namespace vgpud::bench
