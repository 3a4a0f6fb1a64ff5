// SPDX-License-Identifier: Apache-2.0
// What a ResourceClaim (resource.k8s.io/v1) says about VFs of this node. It comes from a user by way of the API server:
// nothing in it is believed before it was checked here. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "integrations/kubernetes/config.h"

namespace vgpud::kubernetes {

inline constexpr const char* kDriver = "vgpud.dev";

struct ClaimId {
  std::string uid;
  std::string ns;  // namespace
  std::string name;
  bool operator==(const ClaimId&) const = default;
  std::string text() const { return ns + "/" + name; }
};

// They become part of a URL, of files' names and of devices' names. Errors: invalid_argument.
[[nodiscard]] Result<void> CheckClaimId(const ClaimId& id);

// How a VF is made other than its resource says.
struct VfSettings {
  std::optional<int> weight;
  std::optional<int> slice_us;
  std::optional<uint64_t> vram_bytes;
  bool operator==(const VfSettings&) const = default;
};

struct AllocatedVf {
  std::string request;  // of the claim, without a subrequest
  std::string device;   // the VF
  VfSettings of_class;  // what the administrator's DeviceClass says
  VfSettings of_claim;  // what the user's claim says
  bool operator==(const AllocatedVf&) const = default;
};

// `claim`: the API server's answer about the claim `id`. VFs of other drivers are left out, and so is configuration for
// them. Errors: not_connected when it is another claim of that name; no_such_device when nothing is allocated to us on
// `node`; invalid_argument; all in words for the user.
[[nodiscard]] Result<std::vector<AllocatedVf>> ParseClaim(const std::string& claim, const ClaimId& id,
                                                          const std::string& node);

// What the VF is to have: the claim goes before the class, as far as `resource` allows it. `most_vram`: of the
// resource's profile. Errors: operation_not_permitted.
[[nodiscard]] Result<VfSettings> SettingsFor(const AllocatedVf& vf, const Resource& resource, uint64_t most_vram);

}  // namespace vgpud::kubernetes
