// SPDX-License-Identifier: Apache-2.0
// Asks for the figures of a virtual function without a channel, which would cost the host an executor. Any thread.
#pragma once

#include <chrono>
#include <string>

#include "guest-driver-shim/include/uapi/vgpu_channel_sock.h"

namespace vgpud::cuda {

// 0 or an errno. ENOSYS: the host or the guest's driver is too old to tell.
// Of the VF with that channel socket, by a connection for each question: nothing is held between them, and a fork or a
// new vgpud changes nothing. `patience`: for the host to take the question, and again for its answer.
inline constexpr std::chrono::milliseconds kStatusPatience{5000};
int ReadStatusOfSocket(const std::string& path, vgpu_status* status,
                       std::chrono::milliseconds patience = kStatusPatience);
// Of the VF with that device file.
int ReadStatusOfFile(const std::string& path, vgpu_status* status);

}  // namespace vgpud::cuda
