// SPDX-License-Identifier: Apache-2.0
// Puts VFs into the domain of a virtual machine of KubeVirt. Pure.
#pragma once

#include <string>

#include "tools/libvirt/domain.h"

namespace vgpud::kubevirt {

// How many VFs the machine's pod has, and so the machine: "2". Without it one.
inline constexpr const char* kVfsAnnotation = "vgpud.dev/vfs";
inline constexpr int kMostVfs = 16;
// Where the device plugin puts sockets of VFs into the pod: vf/vm0.sock and so on.
inline constexpr const char* kRuntimeDir = "/run/vgpud";

// `domain`: XML as KubeVirt's virt-launcher is about to define it; `vmi`: the VirtualMachineInstance, JSON. Returns the
// domain with its VFs. Errors name what is wrong; nothing is half done.
[[nodiscard]] Result<std::string> WithVfs(const std::string& domain, const std::string& vmi);

}  // namespace vgpud::kubevirt
