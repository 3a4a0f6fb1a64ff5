// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/channels/rm_model.h"

#include <cerrno>
#include <cstring>

namespace rm_model {
namespace {

using namespace vgpud::rm;

enum : uint32_t {
  kOk = 0,
  kLostGpu = 0x0f,
  kNotPermitted = 0x1b,
  kInvalidArgument = 0x1f,
  kInvalidClient = 0x23,
  kInvalidObject = 0x31,
  kNoSuchObject = 0x33,
  kInvalidState = 0x40,
  kNotSupported = 0x56,
};
constexpr uint64_t kTimesliceUs = 1024;

}  // namespace

File::~File() { model_.Closed(*this); }
int File::Ioctl(unsigned long request, void* argument) const { return model_.Ioctl(*this, request, argument); }

int Model::Ioctl(const File& file, unsigned long request, void* argument) {
  int error = error_;
  if (error == 0 && request == kControlRequest) {
    auto* const control = static_cast<RmControl*>(argument);
    control->status = lost_ ? uint32_t{kLostGpu} : Control(file, *control);
  } else if (error == 0 && (request == kAllocRequest || request == kShortAllocRequest)) {
    RmAlloc made{};
    const bool is_short = request == kShortAllocRequest;
    std::memcpy(&made, argument, is_short ? kShortAllocBytes : sizeof made);
    made.status = lost_ ? uint32_t{kLostGpu} : Alloc(file, made.root, made.parent, made.kind, &made.object);
    std::memcpy(static_cast<char*>(argument) + offsetof(RmAlloc, object), &made.object, sizeof made.object);
    std::memcpy(static_cast<char*>(argument) + (is_short ? kShortAllocStatus : offsetof(RmAlloc, status)), &made.status,
                sizeof made.status);
  } else if (error == 0 && request == kFreeRequest) {
    auto* const freed = static_cast<RmFree*>(argument);
    freed->status = Free(file, freed->root, freed->object);
  } else if (error == 0) {
    error = EINVAL;  // a size that is none of its own, or another driver's request
  }
  errno = error;
  return error == 0 ? 0 : -1;
}

void Model::Closed(const File& file) {
  std::erase_if(clients_, [&file](const auto& client) { return client.second.owner == &file; });
}

uint32_t Model::Alloc(const File& file, uint32_t root, uint32_t parent, uint32_t kind, uint32_t* handle) {
  if (*handle == 0) *handle = next_++;
  if (kind == kClientClass) {
    clients_[*handle] = Client{&file, {{*handle, Object{0, kind}}}};
    return kOk;
  }
  const auto client = clients_.find(root);
  if (client == clients_.end() || client->second.owner != &file) return kInvalidClient;
  if (client->second.objects.count(parent) == 0) return kNoSuchObject;
  client->second.objects[*handle] = Object{parent, kind};
  return kOk;
}

uint32_t Model::Free(const File& file, uint32_t root, uint32_t handle) {
  const auto client = clients_.find(root);
  if (client == clients_.end() || client->second.owner != &file) return kInvalidClient;
  if (handle == root) {
    clients_.erase(client);
    return kOk;
  }
  auto& objects = client->second.objects;
  if (objects.erase(handle) == 0) return kNoSuchObject;
  for (bool more = true; more;) {
    more = std::erase_if(objects,
                         [&](const auto& o) { return o.first != root && objects.count(o.second.parent) == 0; }) > 0;
  }
  return kOk;
}

uint32_t Model::Control(const File& file, const RmControl& control) {
  const auto command = static_cast<Command>(control.command);
  ++calls_[command];
  if (const auto told = refusals_.find(command);
      told != refusals_.end() && told->second.after-- <= 0 && told->second.times-- > 0)
    return told->second.status;
  const auto found = clients_.find(control.client);
  if (found == clients_.end() || found->second.owner != &file) return kInvalidClient;
  Client& client = found->second;
  const auto object = client.objects.find(control.object);
  if (object == client.objects.end()) return kNoSuchObject;
  const struct {
    Command command;
    uint32_t kind, bytes;
  } kKnown[] = {
      {Command::kSchedule, kGroupClass, settings_.schedule_bytes},
      {Command::kSetTimeslice, kGroupClass, 8},
      {Command::kGetTimeslice, kGroupClass, 8},
      {Command::kPreempt, kGroupClass, sizeof(vgpud::rm::Preempt)},
      {Command::kGroupInfo, kGroupClass, 4},
      {Command::kDisableChannels, kSubdeviceClass, sizeof(DisableChannels)},
      {Command::kSwitchStatistics, kSubdeviceClass, sizeof(SwitchStatistics)},
  };
  void* const params = reinterpret_cast<void*>(control.params);
  for (const auto& known : kKnown) {
    if (known.command != command) continue;
    if (known.kind != object->second.kind) return kInvalidObject;
    if (known.bytes != control.params_bytes) return kInvalidArgument;
    uint64_t& timeslice = timeslices_.try_emplace(control.object, kTimesliceUs).first->second;
    if (command == Command::kGroupInfo) std::memcpy(params, &control.object, 4);
    if (command == Command::kGetTimeslice) std::memcpy(params, &timeslice, 8);
    if (command == Command::kSetTimeslice) std::memcpy(&timeslice, params, 8);
    if (command == Command::kSwitchStatistics) return Count(client, params);
    if (command == Command::kDisableChannels) return Disable(client, params);
    if (command == Command::kPreempt) return Preempt(object->second, params);
    if (command == Command::kSchedule)
      return Schedule(client, control.object, *static_cast<const uint8_t*>(params) != 0);
    return kOk;
  }
  // Of a group, or a subdevice, but for somebody else; or nothing that it knows.
  return settings_.privileged ? kNotSupported : kNotPermitted;
}

uint32_t Model::Count(Client& client, void* params) {
  SwitchStatistics told;
  std::memcpy(&told, params, sizeof told);
  const auto group = client.objects.find(told.group);
  if (group == client.objects.end() || group->second.kind != kGroupClass) return kNoSuchObject;
  told.saves = told.by_instruction = group->second.saves;
  std::memcpy(params, &told, sizeof told);
  return kOk;
}

uint32_t Model::Disable(Client& client, void* params) {
  DisableChannels told;
  std::memcpy(&told, params, sizeof told);
  if (told.event != 0) return kNotPermitted;
  if (told.count > kMostChannels) return kInvalidArgument;
  if (!settings_.firmware_disables) return kNotSupported;
  std::vector<Object*> channels;
  for (uint32_t n = 0; n < told.count; ++n) {
    const auto owner = clients_.find(told.clients[n]);
    if (owner == clients_.end() || (settings_.checks_listed_clients && &owner->second != &client))
      return kInvalidClient;
    const auto channel = owner->second.objects.find(told.channels[n]);
    if (channel == owner->second.objects.end() || !IsChannel(channel->second.kind)) return kNoSuchObject;
    channels.push_back(&channel->second);
  }
  for (Object* const channel : channels) channel->enabled = told.disable == 0;
  return kOk;
}

uint32_t Model::Schedule(Client& client, uint32_t group, bool on) {
  for (const auto& [handle, object] : client.objects)
    if (on && object.parent == group && IsChannel(object.kind) && !object.bound) return kInvalidState;
  Object& object = client.objects[group];
  object.scheduled = on;
  object.preempted = !on && settings_.unscheduling_stops;
  return kOk;
}

// One that is on the runlist is on the GPU again at once.
uint32_t Model::Preempt(Object& group, const void* params) {
  vgpud::rm::Preempt told;
  std::memcpy(&told, params, sizeof told);
  if (told.manual_timeout != 0 && told.timeout_us > kMostPreemptUs) return kInvalidArgument;
  group.preempted = !group.scheduled;
  ++group.saves;
  return kOk;
}

bool Model::Runs(uint32_t client, uint32_t channel) const {
  const auto owner = clients_.find(client);
  if (owner == clients_.end() || lost_) return false;
  const auto found = owner->second.objects.find(channel);
  if (found == owner->second.objects.end() || !found->second.bound || !found->second.enabled) return false;
  const auto group = owner->second.objects.find(found->second.parent);
  return group != owner->second.objects.end() && (group->second.scheduled || !group->second.preempted);
}

void Model::Bind(uint32_t client, uint32_t channel) { clients_.at(client).objects.at(channel).bound = true; }

}  // namespace rm_model
