// SPDX-License-Identifier: Apache-2.0
// What a process has made of the driver's objects, seen from its own ioctls: the only place where handles are told.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "gpu/channels/rm_abi.h"

namespace vgpud::rm {

struct Object {
  uint32_t client, handle, parent, kind;
  int fd;  // by which it was made
};

// The channels of one client that run kernels, and how to name them.
struct ClientChannels {
  int fd = -1;
  uint32_t client = 0;
  uint32_t subdevice = 0;
  uint32_t compute_group = 0;  // of the channel that has the compute object; 0: none yet
  std::vector<uint32_t> groups;
  std::vector<uint32_t> channels;
  std::vector<uint32_t> of_compute_group;
};

// Of each client of these objects that has channels.
std::vector<ClientChannels> ChannelsOf(const std::vector<Object>& objects);

// Thread-safe.
class ObservedObjects {
 public:
  // What an ioctl that came back with 0 did. Requests of others, and those that the manager refused, are nothing.
  void Saw(int fd, unsigned long request, const void* argument);
  // Another process closed its file, or this one: its objects are gone.
  void Closed(int fd);

  std::vector<ClientChannels> Channels() const { return ChannelsOf(all()); }
  std::vector<Object> all() const;
  // Grows when a channel, a group, or what names them, was made or freed.
  uint64_t revision() const;
  // There were more than kMost: nobody needs as many, and the list is not complete.
  bool overflowed() const;
  static constexpr size_t kMost = 65536;

 private:
  void Made(int fd, const void* argument, bool is_short);
  void Freed(const RmFree& freed);

  mutable std::mutex mutex_;
  std::vector<Object> objects_;
  bool overflowed_ = false;
  uint64_t revision_ = 0;
};

}  // namespace vgpud::rm
