// SPDX-License-Identifier: Apache-2.0
// Executable graphs, for the files that make, launch and change them.
#pragma once

#include "guest-driver-shim/libcuda/graph/body.h"

namespace vgpud::cuda {

struct Executable {
  std::mutex mutex;
  Body body;
  References references;
  uint64_t flags = 0;  // CUgraphInstantiate_flags, of which none changes what is launched
};
HandleTable<CUgraphExec, Executable>& Executables();

}  // namespace vgpud::cuda
