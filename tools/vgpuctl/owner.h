// SPDX-License-Identifier: Apache-2.0
// Who may use a VF's channel socket, as people write it. Names become numbers here: vgpud takes numbers only.
#pragma once

#include <string>

#include "base/result.h"
#include "tools/vgpuctl/ask.h"

namespace vgpud::tools {

// Of "alice", ":ml", "alice:ml", "1000:1001": the fields owner_uid and owner_gid of a new VF. An error if this host
// knows no such user or group.
[[nodiscard]] Result<CtlJson> OwnerFields(const std::string& text);
// The same the other way round, in numbers; empty: the VF has no owner.
std::string OwnerText(const CtlJson& vf);

}  // namespace vgpud::tools
