// SPDX-License-Identifier: Apache-2.0
// Where in the program's source the PTX comes from, as far as it says so (.file and .loc; nvcc -lineinfo).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/ptx/ir.h"

namespace vgpud::soft {

class SourceLines {
 public:
  SourceLines() = default;
  explicit SourceLines(const ptx::Module& module);
  // "saxpy.cu:12" for a line of the PTX in the function with that index, "" where nothing is known.
  std::string Find(uint32_t function, uint32_t ptx_line) const;
  uint64_t bytes() const;  // of host memory

 private:
  std::vector<std::string> files_;
  std::vector<ptx::SourceLine> lines_;  // function by function
  std::vector<size_t> ends_;            // of each function's; empty if there are none at all
};

}  // namespace vgpud::soft
