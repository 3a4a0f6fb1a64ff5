// SPDX-License-Identifier: Apache-2.0
// What the replies of the control API have in common. For the sources that write them only.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "vgpud/control/json.h"
#include "vgpud/host/topology.h"

namespace vgpud::daemon {

using OrderedJson = nlohmann::ordered_json;

// Of the text of VF definitions.
inline constexpr uint64_t kDefinitionVersion = 1;

// The knobs of a VF in the order of their table, the slice as it is in force.
void PutKnobs(const VfReport& vf, OrderedJson* json);
// "domain", "domain_uuid" and "ends_with_domain", as far as there are any.
void PutDomain(const VfDomain& domain, OrderedJson* json);
// Of a GPU as the PCI bus has it.
OrderedJson Describe(const PciGpu& gpu);
// The text of a reply, with the version of the API.
std::string Finish(OrderedJson json);

}  // namespace vgpud::daemon
