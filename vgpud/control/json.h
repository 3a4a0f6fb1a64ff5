// SPDX-License-Identifier: Apache-2.0
// The JSON of the control API: requests become checked values, values become replies. Every rule about what a client
// may ask is here; a request that breaks one changes nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vgpud/events/record.h"
#include "vgpud/model/api_error.h"
#include "vgpud/model/process_report.h"
#include "vgpud/model/profiles.h"
#include "vgpud/model/report.h"
#include "vgpud/registry/vf_wish.h"
#include "vgpud/tenants/tenants.h"

namespace vgpud::daemon {

// Knobs have the names and ranges of sched/registry.h; null stands for the default. guarantee and limit: 0..1.
// POST /v1/vfs: {"name", "profile"?, "vram_bytes"?, "host_memory_bytes"?, "paused"?, "transient"?, "domain"?,
// "domain_uuid"?, "ends_with_domain"?, knobs of a VF?}.
// What is not said is as in the profile, which is one of `profiles`.
// "gpu"?, or "placement"? and "numa_node"?: where it is to be. "tenant"?: whose it is, else `tenant`'s.
ApiResult<VfSpec> ParseVfSpec(std::string_view body, const Profiles& profiles = {}, const std::string& tenant = {});
// The same as something that can be asked what it is with the profiles of another GPU.
ApiResult<VfWish> ParseVfWish(const std::string& body, const Profiles& profiles, const std::string& tenant = {});
// PATCH /v1/vfs/NAME: knobs of a VF, "paused"?; at least one.
ApiResult<VfPatch> ParseVfPatch(std::string_view body);
// POST /v1/vfs/NAME/domain: {"domain", "domain_uuid"}, of the libvirt domain that has it.
ApiResult<VfDomain> ParseVfDomain(std::string_view body);
// PATCH /v1/gpu: "policy"?, "idle"?, knobs of a GPU, "group_weight": {"0": 200, ...}?; at least one.
ApiResult<GpuPatch> ParseGpuPatch(std::string_view body);

// PATCH /v1/settings: "gpu"?: as PATCH /v1/gpu, "gpus"?: {NAME: as PATCH /v1/gpus/NAME, ...}, "vfs"?: {NAME: as PATCH
// /v1/vfs/NAME, ...}; at least one.
ApiResult<SettingsPatch> ParseSettingsPatch(std::string_view body);

// The status of the answer (RFC 9110, section 15).
int HttpStatus(ErrorKind kind);
std::string ToJson(const ApiError& error);
std::string ErrorText(const std::string& error);  // the same of one without a kind
std::string ToJson(const VfReport& vf);
std::string ToJson(const std::vector<ProcessReport>& processes);
// With its latest events.
std::string ToJson(const VfReport& vf, const std::vector<Record>& recent);
std::string ToJson(const std::vector<VfReport>& vfs);
std::string ToJson(const ChangeReport& change);
std::string ToJson(const GpuReport& gpu);
// `waiting`: how many new VFs wait for room.
std::string ToJson(const std::vector<GpuReport>& gpus, size_t waiting);
std::string ToJson(const Profiles& profiles);
std::string ToJson(const std::vector<TenantReport>& tenants);

}  // namespace vgpud::daemon
