// SPDX-License-Identifier: Apache-2.0
// Questions to the vgpud of this node.
#pragma once

#include <string>

#include "base/result.h"

namespace vgpud::kubernetes {

// The body of the answer, within 5 s. `socket`: control::ControlSocketPath. Errors: those of tools::HttpRequest, and
// operation_not_permitted with vgpud's words when it refuses.
[[nodiscard]] Result<std::string> AskVgpud(const std::string& socket, const std::string& method,
                                           const std::string& path, const std::string& body);

}  // namespace vgpud::kubernetes
