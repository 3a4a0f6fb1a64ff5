// SPDX-License-Identifier: Apache-2.0
// VFs as devices of containers, as clients of vgpud describe them.
#pragma once

#include <string>

#include "base/result.h"
#include "vgpud/containers/cdi.h"

namespace vgpud::tools {

// What a container engine calls, as the file of CdiFileOf says, when the container has its files and does not run yet:
// the cache of its dynamic linker, which programs ask with `ldconfig -p`, gets to know the libraries. Its state comes
// on standard input, as OCI hooks have it. Always 0: a container without that cache, or one that can't be written to,
// works as well.
[[nodiscard]] int UpdateLdcache();

// The file for all VFs of `vfs`, vgpud's answer to GET /v1/vfs. Says on stderr which VFs are left out.
[[nodiscard]] Result<std::string> CdiText(const std::string& vfs, const std::string& library);

}  // namespace vgpud::tools
