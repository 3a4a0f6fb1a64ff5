// SPDX-License-Identifier: Apache-2.0
// VFs as devices of containers, in the words of the Container Device Interface (cncf-tags), which podman, containerd,
// CRI-O and docker read.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace vgpud::daemon {

inline constexpr const char* kCdiKind = "vgpud.dev/vf";

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

// That of all VFs: each is a device of kCdiKind, and the device "all" has all of them.
struct CdiFile {
  std::string text;
  std::vector<std::string> left_out;  // VFs whose names no such device may have: they end with -
};
[[nodiscard]] CdiFile CdiFileOf(const std::vector<CdiDevice::Vf>& vfs, const std::string& library);

// It is there whole or not at all, and everybody may read it: a container engine may do so at any time. Empty `text`:
// it is removed.
[[nodiscard]] Result<void> WriteCdi(const std::string& path, const std::string& text);

}  // namespace vgpud::daemon
