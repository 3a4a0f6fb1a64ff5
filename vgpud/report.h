// SPDX-License-Identifier: Apache-2.0
// What the VFs' registry is asked and what it answers: specifications, reports, and why not.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "base/vf_link.h"
#include "vgpud/device/gpu_facts.h"
#include "vgpud/gpu/gpu_thread.h"
#include "vgpud/host/protection.h"
#include "vgpud/host/shares.h"
#include "vgpud/host/vf_domain.h"
#include "vgpud/placement/placement.h"
#include "vgpud/profiles.h"
#include "vgpud/server_report.h"
#include "vgpud/settings.h"
#include "vgpud/tenants/tenants.h"

namespace vgpud::daemon {

// Why what a client asked for was not done.
enum class ErrorKind : uint8_t {
  kInvalid,      // it can't be meant so, whatever the state
  kTooLarge,     // the request is
  kNotFound,     // no such VF, no such path
  kWrongMethod,  // not on this path
  kConflict,     // not in this state
  kFailed,       // tried, and it did not work
  kUnavailable,  // not now
  kForbidden,    // not for this client
  kTooMany,      // its share is used up for now
};
struct ApiError {
  ErrorKind kind = ErrorKind::kFailed;
  std::string error;
  std::string field;  // of the request, empty if none
};
template <class T>
using ApiResult = tl::expected<T, ApiError>;
inline tl::unexpected<ApiError> ApiFail(ErrorKind kind, std::string error, std::string field = {}) {
  return tl::unexpected(ApiError{kind, std::move(error), std::move(field)});
}

// The name of a GPU that was given none: the one that is there when no configuration names any.
inline constexpr const char* kUnnamedGpu = "soft0";

struct VfSpec {
  std::string name;
  std::string profile;  // that it was made with, if any
  VfView view;          // its knobs
  uint64_t vram_bytes = 0;
  uint64_t host_memory_bytes = 0;
  bool transient = false;              // ends with this vgpud; others are back after a restart
  std::string gpu;                     // where it is, or is to be; empty: where `placement` says
  std::optional<Placement> placement;  // none: as the daemon is configured
  std::optional<int> numa_node;        // of the virtual machine that it is for, where that is known
  VfDomain domain;
  std::string tenant;  // whose it is; empty: nobody's
};
// A new VF as somebody wants it: what its profile means depends on the GPU.
struct VfWish {
  VfSpec spec;  // as it would be on the first GPU
  std::function<ApiResult<VfSpec>(const Profiles&)> on;
  // Of one that waits: why it may not be made any more.
  std::function<std::optional<ApiError>()> why_not = [] { return std::optional<ApiError>(); };
  // Of one that waits: who has its place.
  Sharer whose = {};
};
struct VfReport {
  std::string name;
  std::string gpu;
  std::string placed;     // of one that has just been made: why there
  uint64_t revision = 0;  // settings.h
  std::string uuid;
  std::string state;
  std::string reason;   // of the states failed, parked, paused and lost
  std::string profile;  // that it was made with, empty if none
  bool transient = false;
  VfDomain domain;
  std::string tenant;          // empty: nobody's
  VfView view;                 // its knobs, and whether it is paused
  uint64_t slice_us = 0;       // in force
  double share = 0;            // of the GPU, while all VFs that are not paused have work
  uint64_t wake_bound_ns = 0;  // what the policy promises of its waits after sleep; 0: nothing
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
  std::string capability;
  std::optional<GpuFacts> facts;  // of a real one
  GpuSettings settings;
  uint64_t preempt_timeout_us = 0;
  Ns switch_cost{0};
  uint32_t vfs = 0;
  bool fifo = false;
  uint64_t vram_bytes = 0;  // 0: VFs may have what they want
  uint64_t vram_promised_bytes = 0;
  std::optional<int> numa_node;
  uint64_t revision = 0;
  Protections protections;
};
// A tenant, configured or not, or the site, and what its VFs have and may have.
struct TenantReport {
  std::string name;  // empty: the site
  Quota quota;       // in force
  Amounts use;
  double share = 0;  // of GPUs, while all VFs that are not paused have work
};
// What a change did, or would do.
struct ChangeReport {
  std::optional<VfReport> vf;  // of a change to a VF, as it is now
  std::optional<GpuReport> gpu;
  Difference difference;
  std::optional<uint64_t> round;  // in which it took effect; nothing: it was only asked what would change
  std::vector<std::pair<std::string, uint64_t>> rounds = {};  // of each GPU, where several were changed
  std::string placed = {};                                    // of a VF that would be made: where, and why there
};
struct VfStatsReport {
  VfReport vf;
  GpuThread::VfStats stats;
  uint64_t cpu_outside_turns_ns = 0;  // since it was created, at least
};

}  // namespace vgpud::daemon
