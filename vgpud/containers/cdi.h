// SPDX-License-Identifier: Apache-2.0
// VFs as devices of containers, in the words of the Container Device Interface (cncf-tags), which podman, containerd,
// CRI-O and docker read.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace vgpud::tools {

inline constexpr const char* kCdiKind = "vgpud.dev/vf";

// What a container engine calls, as the file of CdiTextOf says, when the container has its files and does not run yet:
// the cache of its dynamic linker, which programs ask with `ldconfig -p`, gets to know the libraries. Its state comes
// on standard input, as OCI hooks have it. Always 0: a container without that cache, or one that can't be written to,
// works as well.
[[nodiscard]] int UpdateLdcache();

// libcuda.so.1 of vgpud on this host, without links in its path: `given`, or where it is as built or as installed, seen
// from this program.
[[nodiscard]] Result<std::string> FindCudaLibrary(const std::string& given);

// The files of a container that runs CUDA programs, under all names that programs and linkers look for; `libcuda` as
// FindCudaLibrary has it.
struct LibraryMount {
  std::string on_host;
  std::string in_container;
};
[[nodiscard]] std::vector<LibraryMount> LibraryMounts(const std::string& libcuda);

// What a container gets by one name: one VF, or several.
struct CdiDevice {
  struct Vf {
    std::string name;
    std::string channel_socket;  // on the host
  };
  std::string name;
  std::vector<Vf> vfs;
};

// The file for devices of a kind; empty when there is none, for a file without devices is refused by those who read it.
[[nodiscard]] std::string CdiTextOf(const std::string& kind, const std::vector<CdiDevice>& devices,
                                    const std::string& library);

// That of all VFs of `vfs`, vgpud's answer to GET /v1/vfs. VFs whose names no such device may have are left out, and
// said on stderr.
[[nodiscard]] Result<std::string> CdiText(const std::string& vfs, const std::string& library);

// It is there whole or not at all, and everybody may read it: a container engine may do so at any time. Empty `text`:
// it is removed.
[[nodiscard]] Result<void> WriteCdi(const std::string& path, const std::string& text);

}  // namespace vgpud::tools
