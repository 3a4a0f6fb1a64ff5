// SPDX-License-Identifier: Apache-2.0
// The options of JIT compilers and linkers: how many registers a thread may use, and where a program wants to hear what
// there is to say about its image.
#pragma once

#include <cstdint>
#include <string>

#include "guest-driver-shim/libcuda/api.h"

namespace vgpud::cuda {

class JitOptions {
 public:
  // Notes the places in a call's option list, which stay the program's. CUDA_ERROR_INVALID_VALUE for options that CUDA
  // doesn't have; those that tune a compiler are taken and mean nothing here.
  static CUresult Read(unsigned count, const int* options, void** values, JitOptions* out);

  // Writes the texts, cut to the buffers and ended with NUL, and back into the option values how long they are and how
  // many milliseconds it took. As often as there is more to say.
  void Answer(const std::string& info, const std::string& error, float milliseconds) const;

  // CU_JIT_MAX_REGISTERS; 0 = not given.
  uint32_t most_registers() const { return most_registers_; }

 private:
  struct Text {
    void** buffer = nullptr;  // the value of the option, which the program may have taken back since
    void** bytes = nullptr;
    unsigned capacity = 0;
    void Write(const std::string& text) const;
  };
  Text info_, error_;
  void** wall_time_ = nullptr;
  uint32_t most_registers_ = 0;
};

}  // namespace vgpud::cuda
