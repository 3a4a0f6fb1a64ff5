// SPDX-License-Identifier: Apache-2.0
// Executable graphs, for the files that make, launch and change them.
#pragma once

#include <utility>

#include "guest-driver-shim/libcuda/graph/body.h"

namespace vgpud::cuda {

struct Executable {
  Executable(Body of, References held, uint64_t told) : body(std::move(of)), references(std::move(held)), flags(told) {}

  Mutex mutex{lock_rank::kExecutable};
  Body body GUARDED_BY(mutex);
  const References references;
  const uint64_t flags;  // CUgraphInstantiate_flags, of which none changes what is launched
};
HandleTable<CUgraphExec, Executable>& Executables();

}  // namespace vgpud::cuda
