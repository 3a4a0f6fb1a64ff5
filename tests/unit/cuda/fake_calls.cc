// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/cuda/fake_calls.h"

#include <cstdio>
#include <cstring>
#include <string>

#include "tests/unit/cuda/fake_arrays.h"

namespace fake_cuda {
namespace {

constexpr Status kInvalidValue = 1;
std::string linked;

template <class T>
Status Answer(T* out, T value) {
  *out = value;
  return 0;
}

}  // namespace

Status LinkBegin(unsigned count, int* options, void** values, void** out) {
  constexpr int kMaxRegisters = 0;  // CU_JIT_MAX_REGISTERS
  linked = "linked";
  for (unsigned n = 0; n < count; ++n) {
    char line[64];
    std::snprintf(line, sizeof line, "link with %zu registers\n", reinterpret_cast<size_t>(values[n]));
    if (options[n] == kMaxRegisters) Note(line);
  }
  return Answer<void*>(out, &linked);
}
Status LinkAdd(void*, int type, const void* data, size_t bytes, const char* name, unsigned, int*, void**) {
  const std::string input(static_cast<const char*>(data), bytes);
  char line[128];
  std::snprintf(line, sizeof line, "link %s: type %d, %zu bytes%s\n", name, type, bytes,
                input.back() == '\0' ? ", with its end" : "");
  Note(line);
  if (type == 1 && input.find(".version") == std::string::npos) return 218;
  return knob("link");
}
Status LinkEnd(void*, void** code, size_t* bytes) {
  *bytes = linked.size() + 1;
  return Answer<void*>(code, linked.data());
}
Status LinkForget(void*) {
  Note("link forgotten\n");
  linked = "nothing any more";
  return 0;
}
Status MakeMap(void* map, int type, unsigned rank, void* address, const uint64_t* size, const uint64_t*,
               const unsigned* box, const unsigned*, int, int swizzle, int, int) {
  if (reinterpret_cast<uintptr_t>(map) % 64 != 0 || type > 15) return kInvalidValue;
  std::memset(map, 0, 128);
  std::snprintf(static_cast<char*>(map), 128, "tiled %d %u %p %llu %u %d", type, rank, address,
                static_cast<unsigned long long>(size[rank - 1]), box[rank - 1], swizzle);
  return 0;
}
Status MakeColumns(void* map, int, unsigned, void*, const uint64_t*, const uint64_t*, const int* lower,
                   const int* upper, unsigned of_pixel, unsigned pixels, const unsigned*, int, int, int, int fill) {
  std::memset(map, 0, 128);
  std::snprintf(static_cast<char*>(map), 128, "im2col %d %d %u %u %d", lower[0], upper[1], of_pixel, pixels, fill);
  return 0;
}
Status MoveMap(void* map, void* address) {
  const size_t end = std::strlen(static_cast<char*>(map));
  std::snprintf(static_cast<char*>(map) + end, 128 - end, " moved to %p", address);
  return 0;
}

}  // namespace fake_cuda
