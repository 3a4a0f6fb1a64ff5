// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/channel/trace.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "guest-driver-shim/libcuda/generated/cuda_api.h"

namespace vgpud::cuda {
namespace {

constexpr unsigned kMaxExports = 1024;
struct Count {
  std::atomic<unsigned long> calls;
  std::atomic<const char*> name;
};
Count counts[kMaxExports];

bool TraceWanted() {
  const char* value = getenv("VGPU_TRACE");
  return value != nullptr && value[0] != '\0' && value[0] != '0';
}
const bool trace = TraceWanted();

struct PrintAtExit {
  ~PrintAtExit() {
    if (!trace) return;
    for (const Count& count : counts) {
      if (const unsigned long calls = count.calls.load()) {
        fprintf(stderr, "vgpud: %s answered CUDA_ERROR_NOT_SUPPORTED %lu times\n", count.name.load(), calls);
      }
    }
  }
} print_at_exit;

}  // namespace

int NotSupported(unsigned index, const char* name) {
  if (index < kMaxExports) {
    counts[index].name.store(name, std::memory_order_relaxed);
    counts[index].calls.fetch_add(1, std::memory_order_relaxed);
  }
  if (trace) fprintf(stderr, "vgpud: %s is not supported\n", name);
  return CUDA_ERROR_NOT_SUPPORTED;
}

unsigned long NotSupportedCalls(unsigned index) { return index < kMaxExports ? counts[index].calls.load() : 0; }

}  // namespace vgpud::cuda
