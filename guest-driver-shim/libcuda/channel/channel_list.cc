// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/channel/channel_list.h"

#include <dirent.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace vgpud::cuda {
namespace {

constexpr std::string_view kEnding = ".channel.sock";

// nullopt: it is no directory that can be read.
std::optional<std::vector<std::string>> SocketsIn(const std::string& directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(directory.c_str()), &closedir);
  if (open == nullptr) return std::nullopt;
  std::vector<std::string> found;
  while (const dirent* entry = readdir(open.get())) {
    const std::string_view name = entry->d_name;
    if (name.size() > kEnding.size() && name.ends_with(kEnding)) found.push_back(directory + "/" + entry->d_name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

ChannelList ParseChannelList(std::string_view value) {
  ChannelList list;
  while (!value.empty()) {
    const std::string path(value.substr(0, value.find(',')));
    value.remove_prefix(std::min(value.size(), path.size() + 1));
    if (path.empty()) continue;
    const auto inside = SocketsIn(path);
    if (!inside) {
      list.sockets.push_back(path);
      continue;
    }
    if (inside->empty()) list.why = path + ": no file in that directory ends with " + std::string(kEnding);
    list.sockets.insert(list.sockets.end(), inside->begin(), inside->end());
  }
  if (list.sockets.empty() && list.why.empty()) list.why = "VGPU_CHANNEL names no socket";
  return list;
}

std::optional<ChannelList> ChannelsOfEnvironment(const std::string& usual) {
  const char* const value = secure_getenv("VGPU_CHANNEL");
  if (value != nullptr && value[0] != '\0') return ParseChannelList(value);
  ChannelList list{SocketsIn(usual).value_or(std::vector<std::string>()), {}};
  return list.sockets.empty() ? std::nullopt : std::optional(std::move(list));
}

}  // namespace vgpud::cuda
