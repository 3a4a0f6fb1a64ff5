// SPDX-License-Identifier: Apache-2.0
// The lines of trace.h, and the counts behind them.
#include "guest-driver-shim/libcuda/channel/trace.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include "base/locks/mutex.h"
#include "guest-driver-shim/libcuda/channel/api_call.h"
#include "guest-driver-shim/libcuda/channel/lock_ranks.h"
#include "guest-driver-shim/libcuda/generated/cuda_api.h"

namespace vgpud::cuda {
namespace {

constexpr unsigned kMaxExports = 1024;
struct Count {
  std::atomic<unsigned long> calls;
  std::atomic<const char*> name;
};
Count counts[kMaxExports];

enum class Level { kSilent, kFirst, kAll };

Level LevelWanted() {
  const char* value = secure_getenv("VGPU_TRACE");
  if (value == nullptr || value[0] == '\0') return Level::kFirst;
  return value[0] == '0' ? Level::kSilent : Level::kAll;
}
const Level level = LevelWanted();

// Is this the first time that `name` is asked about?
bool First(const char* name) {
  static auto* const mutex = new Mutex(lock_rank::kTrace);
  static auto* const said = new std::set<std::string>;  // both outlive the program's exit handlers
  MutexLock lock(*mutex);
  return said->insert(name).second;
}

struct PrintAtExit {
  ~PrintAtExit() {
    if (level != Level::kAll) return;
    for (const Count& count : counts) {
      if (const unsigned long calls = count.calls.load()) {
        fprintf(stderr, "vgpud: %s answered CUDA_ERROR_NOT_SUPPORTED %lu times\n", count.name.load(), calls);
      }
    }
  }
} print_at_exit;

}  // namespace

void SayOnce(const char* name, const char* why) {
  if (level == Level::kAll) {
    fprintf(stderr, "vgpud: %s %s\n", name, why);
  } else if (level == Level::kFirst && First(name)) {
    fprintf(stderr, "vgpud: %s %s (said once; VGPU_TRACE=1 says it each time, 0 never)\n", name, why);
  }
}

void Trace(const char* format, ...) {
  if (level != Level::kAll) return;
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fprintf(stderr, "vgpud: %s\n", text);
}

int NotSupported(unsigned index, const char* name) {
  if (index < kMaxExports) {
    counts[index].name.store(name, std::memory_order_relaxed);
    counts[index].calls.fetch_add(1, std::memory_order_relaxed);
  }
  return Enter([name]() -> CUresult {
    SayOnce(name, "is not supported");
    return CUDA_ERROR_NOT_SUPPORTED;
  });
}

unsigned long NotSupportedCalls(unsigned index) { return index < kMaxExports ? counts[index].calls.load() : 0; }

}  // namespace vgpud::cuda
