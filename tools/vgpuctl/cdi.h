// SPDX-License-Identifier: Apache-2.0
// VFs as devices of containers, in the words of the Container Device Interface (cncf-tags), which podman, containerd,
// CRI-O and docker read.
#pragma once

#include <string>

#include "base/result.h"

namespace vgpud::tools {

inline constexpr const char* kCdiKind = "vgpud.dev/vf";

// libcuda.so.1 of vgpud on this host, without links in its path: `given`, or where it is as built or as installed, seen
// from this program.
[[nodiscard]] Result<std::string> FindCudaLibrary(const std::string& given);

// The file for all VFs of `vfs`, vgpud's answer to GET /v1/vfs; empty: there is none, and a file without devices is
// refused by those who read it. VFs whose names no such device may have are left out, and said on stderr.
[[nodiscard]] Result<std::string> CdiText(const std::string& vfs, const std::string& library);

// It is there whole or not at all, and everybody may read it: a container engine may do so at any time. Empty `text`:
// it is removed.
[[nodiscard]] Result<void> WriteCdi(const std::string& path, const std::string& text);

}  // namespace vgpud::tools
