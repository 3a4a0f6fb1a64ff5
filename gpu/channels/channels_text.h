// SPDX-License-Identifier: Apache-2.0
// The channels of a process as a line of text, from an executor to vgpud. The executor may lie: what is read is numbers
// that are named through its own file only.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gpu/channels/rm_objects.h"

namespace vgpud::rm {

inline constexpr char kChannelsWord[] = "channels";
// "channels FD CLIENT SUBDEVICE GROUP groups G... channels C... compute C..."
std::string ChannelsText(const ClientChannels& channels);
// nullopt: it is no such line, or has more than kMostListed handles.
inline constexpr size_t kMostListed = 4096;
std::optional<ClientChannels> ReadChannels(std::string_view line);

}  // namespace vgpud::rm
