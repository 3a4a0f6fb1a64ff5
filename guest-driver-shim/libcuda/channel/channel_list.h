// SPDX-License-Identifier: Apache-2.0
// The channel sockets that are the devices of this process, in their order, as libcuda.so.1 and libnvidia-ml.so.1 find
// them: by VGPU_CHANNEL, or where containers have them. Nothing is connected to.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vgpud::cuda {

struct ChannelList {
  std::vector<std::string> sockets;
  std::string why;  // when there is none: a sentence
};

// `value`: paths with ',' between. A directory stands for the files in it whose names end with ".channel.sock", in the
// order of their names.
ChannelList ParseChannelList(std::string_view value);

// Where containers have the sockets of their VFs.
inline constexpr const char* kUsualFolder = "/run/vgpud";

// Reads VGPU_CHANNEL. Where it is not set or empty, or this process has more rights than its caller, whose environment
// it must not trust (secure_getenv(3)): the sockets in `usual`. nullopt: there is none either.
std::optional<ChannelList> ChannelsOfEnvironment(const std::string& usual = kUsualFolder);

}  // namespace vgpud::cuda
