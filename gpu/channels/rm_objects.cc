// SPDX-License-Identifier: Apache-2.0
#include "gpu/channels/rm_objects.h"

#include <algorithm>
#include <cstring>

namespace vgpud::rm {
namespace {

bool Names(uint32_t kind) {
  return kind == kGroupClass || kind == kSubdeviceClass || IsChannel(kind) || IsCompute(kind);
}

}  // namespace

std::vector<ClientChannels> ChannelsOf(const std::vector<Object>& objects) {
  std::vector<ClientChannels> clients;
  const auto client_of = [&](const Object& object) -> ClientChannels& {
    for (ClientChannels& known : clients)
      if (known.client == object.client) return known;
    return clients.emplace_back(ClientChannels{object.fd, object.client, 0, 0, {}, {}, {}});
  };
  for (const Object& object : objects) {
    if (object.kind == kSubdeviceClass) client_of(object).subdevice = object.handle;
    if (object.kind == kGroupClass) client_of(object).groups.push_back(object.handle);
    if (IsChannel(object.kind)) client_of(object).channels.push_back(object.handle);
  }
  const auto parent_of = [&](uint32_t client, uint32_t handle) {
    for (const Object& object : objects)
      if (object.client == client && object.handle == handle) return object.parent;
    return uint32_t{0};
  };
  for (ClientChannels& known : clients) {
    for (const Object& object : objects)
      if (object.client == known.client && IsCompute(object.kind))
        known.compute_group = parent_of(known.client, object.parent);
    for (const uint32_t channel : known.channels)
      if (known.compute_group != 0 && parent_of(known.client, channel) == known.compute_group)
        known.of_compute_group.push_back(channel);
  }
  std::erase_if(clients, [](const ClientChannels& known) { return known.channels.empty(); });
  return clients;
}

void ObservedObjects::Saw(int fd, unsigned long request, const void* argument) {
  if (request == kAllocRequest || request == kShortAllocRequest) Made(fd, argument, request == kShortAllocRequest);
  if (request != kFreeRequest) return;
  RmFree freed;
  std::memcpy(&freed, argument, sizeof freed);
  if (freed.status == 0) Freed(freed);
}

void ObservedObjects::Made(int fd, const void* argument, bool is_short) {
  RmAlloc made{};
  std::memcpy(&made, argument, is_short ? kShortAllocBytes : sizeof made);
  if (is_short) std::memcpy(&made.status, static_cast<const char*>(argument) + kShortAllocStatus, sizeof made.status);
  if (made.status != 0) return;
  const std::lock_guard lock(mutex_);
  if (objects_.size() >= kMost) {
    overflowed_ = true;
    return;
  }
  // A client is its own root, and may be told its handle by the call only.
  const uint32_t client = made.kind == kClientClass ? made.object : made.root;
  objects_.push_back({client, made.object, made.parent, made.kind, fd});
  if (Names(made.kind)) ++revision_;
}

void ObservedObjects::Freed(const RmFree& freed) {
  const std::lock_guard lock(mutex_);
  // With an object goes all that is below it.
  std::vector<uint32_t> gone{freed.object};
  for (size_t n = 0; n < gone.size(); ++n)
    for (const Object& object : objects_)
      if (object.client == freed.root && object.parent == gone[n] && object.handle != gone[n] &&
          std::find(gone.begin(), gone.end(), object.handle) == gone.end())
        gone.push_back(object.handle);
  std::erase_if(objects_, [&](const Object& object) {
    const bool goes = object.client == freed.root &&
                      (freed.object == freed.root || std::find(gone.begin(), gone.end(), object.handle) != gone.end());
    if (goes && Names(object.kind)) ++revision_;
    return goes;
  });
}

void ObservedObjects::Closed(int fd) {
  const std::lock_guard lock(mutex_);
  revision_ += std::erase_if(objects_, [fd](const Object& object) { return object.fd == fd; });
}

std::vector<Object> ObservedObjects::all() const {
  const std::lock_guard lock(mutex_);
  return objects_;
}

uint64_t ObservedObjects::revision() const {
  const std::lock_guard lock(mutex_);
  return revision_;
}

bool ObservedObjects::overflowed() const {
  const std::lock_guard lock(mutex_);
  return overflowed_;
}

}  // namespace vgpud::rm
