// SPDX-License-Identifier: Apache-2.0
// A VF's definition as a file of the state directory, JSON: {"version": 1, "name", "uuid", "number", "paused",
// "vram_bytes", "host_memory_bytes", "vfio_user_socket", "gpu"?, "profile"?, "tenant"?, "domain"?, "domain_uuid"?,
// "ends_with_domain"?, knobs of a VF}.
#pragma once

#include <string>
#include <string_view>

#include "vgpud/model/api_error.h"
#include "vgpud/model/definition.h"

namespace vgpud::daemon {

std::string ToText(const VfDefinition& definition);
// Reads what ToText writes; anything else is refused, as a client's request is.
ApiResult<VfDefinition> ParseDefinition(std::string_view text);

}  // namespace vgpud::daemon
