// SPDX-License-Identifier: Apache-2.0
// The fields of a VF that requests, answers and definitions on the disk have in common.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "vgpud/json/fields.h"
#include "vgpud/model/profiles.h"
#include "vgpud/model/vf_spec.h"

namespace vgpud::daemon {

// The names of all knobs of VFs, or of GPUs, and `more`.
std::set<std::string> KnobNames(bool per_vf, std::set<std::string> more);
// The value in the unit of the row. Its range is checked as well.
ApiResult<uint64_t> ParseKnob(const KnobRow& row, const Json& value, const std::string& field);
// All knobs of VFs or of the GPU that `object` gives; `usual` is what null stands for.
ApiResult<std::vector<KnobValue>> ParseKnobs(const Json& object, bool per_vf,
                                             const std::function<uint64_t(Knob)>& usual);
// The knobs of a VF; null stands for what VFs have without a profile.
ApiResult<std::vector<KnobValue>> ParseVfKnobs(const Json& object);
// Name, memory and knobs. What `object` does not have is as in `profile`.
ApiResult<VfSpec> ParseSpec(const Json& object, const Profile& profile = {});
// "vram_bytes" and "host_memory_bytes"; `usual`, where `object` says nothing.
ApiResult<uint64_t> ParseVram(const Json& object, uint64_t usual);
ApiResult<uint64_t> ParseHostMemory(const Json& object, uint64_t usual);
// `usual`, where `object` says nothing.
ApiResult<std::string> ParseTenant(const Json& object, const std::string& usual);
// The libvirt domain that has the VF; nothing: `object` has none.
ApiResult<VfDomain> ParseDomain(const Json& object);

// "owner_uid" and "owner_gid"; who is not named: `object` does not say.
ApiResult<SocketAccess> ParseOwner(const Json& object);

// A field as answers and definitions have it.
OrderedJson ToJsonValue(const FieldValue& value);
// "domain", "domain_uuid" and "ends_with_domain", as far as there are any.
void PutDomain(const VfDomain& domain, OrderedJson* json);
// "owner_uid" and "owner_gid", as far as there are any.
void PutOwner(const SocketAccess& owner, OrderedJson* json);

}  // namespace vgpud::daemon
