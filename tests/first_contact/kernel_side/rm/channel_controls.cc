// SPDX-License-Identifier: Apache-2.0
// Controls of channels and their groups.
#include <vector>

#include "tests/first_contact/kernel_side/abi/control_layouts.h"
#include "tests/first_contact/kernel_side/rm/controls.h"

namespace vgpud::kernel_side {
namespace {

constexpr uint32_t kMostChannels = 1024;

constexpr uint32_t Number(rm::Command command) { return static_cast<uint32_t>(command); }

RmStatus TellClassEngine(const Asking& asking) {
  auto& params = asking.As<ClassEngine>();
  const Object* const object = asking.client.Find(params.object);
  if (object == nullptr) return RmStatus::kObjectNotFound;
  params.class_engine = 1u << 16 | object->kind;
  params.class_id = object->kind;
  params.engine = 1;
  return RmStatus::kOk;
}

// Every channel that the object is, or has.
template <class Do>
RmStatus EachChannel(const Asking& asking, Do run) {
  if (auto* const own = dynamic_cast<ChannelObject*>(asking.object)) run(*own);
  asking.client.Each<ChannelObject>([&](ChannelObject& object) {
    if (object.parent == asking.object->handle) run(object);
  });
  return RmStatus::kOk;
}

RmStatus Schedule(const Asking& asking) {
  const bool enabled = asking.params[0] != std::byte{0};
  return EachChannel(asking, [&](ChannelObject& object) { object.channel->Schedule(enabled); });
}

// Nothing is running when a control is answered.
RmStatus Preempt(const Asking&) { return RmStatus::kOk; }

RmStatus SetTimeslice(const Asking& asking) {
  auto* const group = dynamic_cast<ChannelGroup*>(asking.object);
  if (group == nullptr) return RmStatus::kInvalidObject;
  group->timeslice_us = asking.As<uint64_t>();
  return RmStatus::kOk;
}

RmStatus TellTimeslice(const Asking& asking) {
  const auto* const group = dynamic_cast<const ChannelGroup*>(asking.object);
  if (group == nullptr) return RmStatus::kInvalidObject;
  asking.As<uint64_t>() = group->timeslice_us;
  return RmStatus::kOk;
}

RmStatus TellGroup(const Asking& asking) {
  const auto* const group = dynamic_cast<const ChannelGroup*>(asking.object);
  if (group == nullptr) return RmStatus::kInvalidObject;
  asking.As<uint32_t>() = group->number;
  return RmStatus::kOk;
}

RmStatus Disable(const Asking& asking) {
  const auto& params = asking.As<rm::DisableChannels>();
  if (params.count > rm::kMostChannels) return RmStatus::kInvalidArgument;
  std::vector<Channel*> channels;
  for (uint32_t i = 0; i < params.count; ++i) {
    const Client* const client = asking.machine.FindClient(params.clients[i]);
    const auto* const object = client == nullptr ? nullptr : client->FindAs<ChannelObject>(params.channels[i]);
    if (object == nullptr) return RmStatus::kInvalidChannel;
    channels.push_back(object->channel.get());
  }
  for (Channel* const channel : channels) channel->Enable(params.disable == 0);
  return RmStatus::kOk;
}

RmStatus Reset(const Asking& asking) {
  return EachChannel(asking, [](ChannelObject& object) { object.channel->Fail(Xid::kStoppedByProgram); });
}

// Kernels do nothing here: what can fail is an address.
RmStatus TellSmErrors(const Asking& asking) {
  auto& params = asking.As<SmErrors>();
  asking.client.Each<ChannelObject>([&](const ChannelObject& object) {
    if (object.card == asking.object->card && object.channel->failure() == Xid::kMmuFault) params.mmu_fault = 1;
  });
  return RmStatus::kOk;
}

RmStatus ClearSmErrors(const Asking&) { return RmStatus::kOk; }

RmStatus TellToken(const Asking& asking) {
  const auto* const channel = dynamic_cast<const ChannelObject*>(asking.object);
  if (channel == nullptr) return RmStatus::kInvalidChannel;
  asking.As<uint32_t>() = channel->number;
  return RmStatus::kOk;
}

RmStatus TellNumbers(const Asking& asking) {
  const auto& params = asking.As<ChannelNumbers>();
  if (params.count > kMostChannels) return RmStatus::kInvalidArgument;
  std::vector<uint32_t> handles(params.count), numbers;
  if (!asking.caller.Read(params.handles, handles.data(), handles.size() * sizeof(uint32_t)))
    return RmStatus::kInvalidPointer;
  for (const uint32_t handle : handles) {
    const auto* const channel = asking.client.FindAs<ChannelObject>(handle);
    numbers.push_back(channel == nullptr ? UINT32_MAX : channel->number);
  }
  return asking.caller.Write(params.numbers, numbers.data(), numbers.size() * sizeof(uint32_t))
             ? RmStatus::kOk
             : RmStatus::kInvalidPointer;
}

constexpr Control kControls[] = {
    {kGetClassEngine, sizeof(ClassEngine), &TellClassEngine},
    {kGetClassEngine2, sizeof(ClassEngine), &TellClassEngine},
    {kReadSmErrors, sizeof(SmErrors), &TellSmErrors},
    {kClearSmErrors, 0, &ClearSmErrors},
    {kResetChannel, 0, &Reset},
    {kScheduleChannel, 1, &Schedule},
    {Number(rm::Command::kSchedule), 1, &Schedule},
    {Number(rm::Command::kSetTimeslice), sizeof(uint64_t), &SetTimeslice},
    {Number(rm::Command::kGetTimeslice), sizeof(uint64_t), &TellTimeslice},
    {Number(rm::Command::kPreempt), sizeof(rm::Preempt), &Preempt},
    {Number(rm::Command::kGroupInfo), sizeof(uint32_t), &TellGroup},
    {Number(rm::Command::kDisableChannels), sizeof(rm::DisableChannels), &Disable},
    {kGetSubmitToken, sizeof(uint32_t), &TellToken},
    {kGetChannelNumbers, sizeof(ChannelNumbers), &TellNumbers},
};

}  // namespace

std::span<const Control> ChannelControls() { return kControls; }

}  // namespace vgpud::kernel_side
