// The JSON of the control API: requests become checked values, values become replies. Every rule about what a client
// may ask is here; a request that breaks one changes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "base/vf_link.h"
#include "vgpud/gpu_thread.h"

namespace vgpud {

struct ApiError {
  int status = 500;  // HTTP
  std::string error;
  std::string field;  // of the request, empty if none
};
template <class T>
using ApiResult = tl::expected<T, ApiError>;
inline tl::unexpected<ApiError> ApiFail(int status, std::string error, std::string field = {}) {
  return tl::unexpected(ApiError{status, std::move(error), std::move(field)});
}

struct VfSpec {
  std::string name;
  uint32_t weight = kDefaultWeight;
  uint64_t slice_us = 0;  // 0 = by weight
  uint64_t vram_bytes = 0;
};
struct VfPatch {
  std::optional<uint32_t> weight;
  std::optional<uint64_t> slice_us;  // 0 = by weight
};
struct VfReport {
  std::string name;
  std::string uuid;
  std::string state;
  std::string reason;  // of state "failed"
  uint32_t weight = 0;
  uint64_t slice_us = 0;  // as in force
  bool slice_fixed = false;
  uint64_t vram_bytes = 0;
  uint64_t vram_used_bytes = 0;
  uint32_t executors = 0;
  bool client_connected = false;
  vf_link::Events events;
  std::string vfio_user_socket;
  std::string channel_socket;
};
struct VfChange {
  std::string field;
  uint64_t old_value = 0;
  uint64_t new_value = 0;
};
struct GpuReport {
  std::string name;
  std::string kind;
  uint64_t base_slice_us = 0;
  uint64_t preempt_timeout_us = 0;
  uint32_t vfs = 0;
  bool fifo = false;
};
struct VfStatsReport {
  std::string name;
  uint32_t weight = 0;
  uint64_t slice_us = 0;
  GpuThread::VfStats stats;
};

// POST /v1/vfs: {"name", "weight"?, "slice_us"?, "vram_bytes"?}
ApiResult<VfSpec> ParseVfSpec(std::string_view body);
// PATCH /v1/vfs/NAME: {"weight"?, "slice_us"? (null = by weight)}, at least one.
ApiResult<VfPatch> ParseVfPatch(std::string_view body);

std::string ToJson(const ApiError& error);
std::string ToJson(const VfReport& vf);
std::string ToJson(const std::vector<VfReport>& vfs);
std::string ToJson(const VfReport& vf, const std::vector<VfChange>& changes, uint64_t round);
std::string ToJson(const GpuReport& gpu);
std::string ToJson(const GpuThread::Stats& gpu, const std::vector<VfStatsReport>& vfs);

}  // namespace vgpud
