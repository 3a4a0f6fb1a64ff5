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
#include "vgpud/gpu/gpu_thread.h"
#include "vgpud/host/protection.h"
#include "vgpud/server_report.h"
#include "vgpud/settings.h"

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
  VfView view;  // its knobs
  uint64_t vram_bytes = 0;
  uint64_t host_memory_bytes = 0;
};
struct VfReport {
  std::string name;
  std::string uuid;
  std::string state;
  std::string reason;     // of the states failed, parked and paused
  VfView view;            // its knobs, and whether it is paused
  uint64_t slice_us = 0;  // in force
  double share = 0;       // of the GPU, while all VFs that are not paused have work
  uint64_t vram_bytes = 0;
  uint64_t vram_used_bytes = 0;
  uint64_t host_memory_bytes = 0;
  uint64_t host_memory_used_bytes = 0;
  uint32_t executors = 0;
  bool client_connected = false;
  vf_link::Events events;
  ServerReport server;
  uint64_t cpu_ns = 0;    // that its processes have used since it was created
  uint64_t gave_way = 0;  // times that it had computed too much outside of its turns
  uint64_t gave_way_ns = 0;
  uint32_t gpu_threads = 1;
  std::string vfio_user_socket;
  std::string channel_socket;
};
struct GpuReport {
  std::string name;
  std::string kind;
  GpuSettings settings;
  uint64_t preempt_timeout_us = 0;
  Ns switch_cost{0};
  uint32_t vfs = 0;
  bool fifo = false;
  Protections protections;
};
// What a change did, or would do.
struct ChangeReport {
  std::optional<VfReport> vf;  // of a change to a VF, as it is now
  std::optional<GpuReport> gpu;
  Difference difference;
  std::optional<uint64_t> round;  // in which it took effect; nothing: it was only asked what would change
};
struct VfStatsReport {
  VfReport vf;
  GpuThread::VfStats stats;
  uint64_t cpu_outside_turns_ns = 0;  // since it was created, at least
};

// Knobs have the names and ranges of sched/registry.h; null stands for the default. guarantee and limit: 0..1.
// POST /v1/vfs: {"name", "vram_bytes"?, "host_memory_bytes"?, knobs of a VF?}
ApiResult<VfSpec> ParseVfSpec(std::string_view body);
// PATCH /v1/vfs/NAME: knobs of a VF, "paused"?; at least one.
ApiResult<VfPatch> ParseVfPatch(std::string_view body);
// PATCH /v1/gpu: "policy"?, "idle"?, knobs of a GPU, "group_weight": {"0": 200, ...}?; at least one.
ApiResult<GpuPatch> ParseGpuPatch(std::string_view body);

// PATCH /v1/settings: "gpu"?: as PATCH /v1/gpu, "vfs"?: {NAME: as PATCH /v1/vfs/NAME, ...}; at least one.
ApiResult<SettingsPatch> ParseSettingsPatch(std::string_view body);

std::string ToJson(const ApiError& error);
std::string ToJson(const VfReport& vf);
std::string ToJson(const std::vector<VfReport>& vfs);
std::string ToJson(const ChangeReport& change);
std::string ToJson(const GpuReport& gpu);

}  // namespace vgpud
