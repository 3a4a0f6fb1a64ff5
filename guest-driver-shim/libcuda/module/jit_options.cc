// SPDX-License-Identifier: Apache-2.0
// Option lists of JIT calls: numbers travel in the pointers themselves.
#include "guest-driver-shim/libcuda/module/jit_options.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace vgpud::cuda {

CUresult JitOptions::Read(unsigned count, const int* options, void** values, JitOptions* out) {
  if (count != 0 && (options == nullptr || values == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  *out = {};
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] < 0 || options[i] >= CU_JIT_NUM_OPTIONS) return CUDA_ERROR_INVALID_VALUE;
    const auto number = static_cast<unsigned>(reinterpret_cast<uintptr_t>(values[i]));
    const struct {
      int option;
      void*** place;
      unsigned* capacity;
    } rows[] = {{CU_JIT_INFO_LOG_BUFFER, &out->info_.buffer, nullptr},
                {CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, &out->info_.bytes, &out->info_.capacity},
                {CU_JIT_ERROR_LOG_BUFFER, &out->error_.buffer, nullptr},
                {CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, &out->error_.bytes, &out->error_.capacity},
                {CU_JIT_WALL_TIME, &out->wall_time_, nullptr}};
    if (options[i] == CU_JIT_MAX_REGISTERS) out->most_registers_ = number;
    for (const auto& row : rows) {
      if (row.option != options[i]) continue;
      *row.place = &values[i];
      if (row.capacity != nullptr) *row.capacity = number;
    }
  }
  return CUDA_SUCCESS;
}

void JitOptions::Text::Write(const std::string& text) const {
  size_t written = 0;
  if (buffer != nullptr && *buffer != nullptr && capacity > 0) {
    written = std::min<size_t>(text.size(), capacity - 1);
    memcpy(*buffer, text.data(), written);
    static_cast<char*>(*buffer)[written] = '\0';
  }
  if (bytes != nullptr) *bytes = reinterpret_cast<void*>(written);
}

void JitOptions::Answer(const std::string& info, const std::string& error, float milliseconds) const {
  info_.Write(info);
  error_.Write(error);
  if (wall_time_ == nullptr) return;
  *wall_time_ = nullptr;
  memcpy(wall_time_, &milliseconds, sizeof milliseconds);
}

}  // namespace vgpud::cuda
