// SPDX-License-Identifier: Apache-2.0
#include "tests/first_contact/kernel_side/rm/kinds.h"

#include <algorithm>

#include "tests/first_contact/kernel_side/abi/rm_layouts.h"

namespace vgpud::kernel_side {
namespace {

using Made = std::unique_ptr<Object>;

RmStatus MakePlain(const Making&, Made& made) {
  made = std::make_unique<PlainObject>();
  return RmStatus::kOk;
}

template <class T>
RmStatus MakeEmpty(const Making&, Made& made) {
  made = std::make_unique<T>();
  return RmStatus::kOk;
}

RmStatus MakeDevice(const Making& making, Made& made) {
  const uint32_t index = making.As<DeviceParams>().device;
  if (index >= making.machine.cards().size()) return RmStatus::kInvalidArgument;
  made = std::make_unique<PlainObject>();
  made->card = &making.machine.cards()[index];
  return RmStatus::kOk;
}

// Of the card (kLocalMemory) or of the host.
template <bool kOnCard>
RmStatus MakeMemory(const Making& making, Made& made) {
  auto& params = making.As<MemoryParams>();
  Card& card = *making.card();
  if (params.bytes == 0) return RmStatus::kInvalidArgument;
  if (kOnCard && params.bytes > card.free_bytes()) return RmStatus::kNoMemory;
  auto object = std::make_unique<MemoryObject>();
  object->memory = making.machine.MakeMemory(params.bytes);
  if (!object->memory) return RmStatus::kNoMemory;
  object->charged = kOnCard ? params.bytes : 0;
  card.used_bytes += object->charged;
  params.limit = params.bytes - 1;
  made = std::move(object);
  return RmStatus::kOk;
}

// Registers of the card that programs map: what they write there nobody reads, as a channel looks for work by itself.
RmStatus MakeRegisters(const Making& making, Made& made) {
  constexpr uint64_t kBytes = 64 << 10;
  auto object = std::make_unique<MemoryObject>();
  object->memory = making.machine.MakeMemory(kBytes);
  if (!object->memory) return RmStatus::kNoMemory;
  made = std::move(object);
  return RmStatus::kOk;
}

RmStatus MakeVirtualRange(const Making& making, Made& made) {
  auto range = std::make_unique<VirtualRange>();
  auto& params = making.As<MemoryParams>();
  range->va_space = params.va_space;
  params.limit = params.bytes - 1;
  made = std::move(range);
  return RmStatus::kOk;
}

RmStatus MakeGroup(const Making& making, Made& made) {
  auto group = std::make_unique<ChannelGroup>();
  group->number = making.machine.NewChannelNumber();
  group->va_space = making.As<ChannelGroupParams>().va_space;
  made = std::move(group);
  return RmStatus::kOk;
}

RmStatus MakeContextShare(const Making& making, Made& made) {
  auto share = std::make_unique<ContextShare>();
  share->va_space = making.As<ContextShareParams>().va_space;
  made = std::move(share);
  return RmStatus::kOk;
}

RmStatus MakeChannel(const Making& making, Made& made) {
  const auto& params = making.As<ChannelParams>();
  const auto* const group = dynamic_cast<const ChannelGroup*>(making.parent);
  std::shared_ptr<AddressSpace> space;
  for (const uint32_t handle : {params.va_space, params.context_share, group == nullptr ? 0 : group->va_space})
    if (!space) space = SpaceOf(making.client, handle);
  const auto* const userd = making.client.FindAs<MemoryObject>(params.userd_memory[0]);
  if (!space || userd == nullptr || params.entries == 0) return RmStatus::kInvalidArgument;
  const auto* const notifier = making.client.FindAs<MemoryObject>(params.error);
  Machine& machine = making.machine;
  auto object = std::make_unique<ChannelObject>();
  object->number = machine.NewChannelNumber();
  object->channel = std::make_unique<Channel>(Channel::Setup{
      space, userd->memory, params.userd_offset[0], params.fifo, params.entries,
      notifier == nullptr ? nullptr : notifier->memory, [&machine](bool of_work) { machine.Interrupt(of_work); },
      [&machine] { machine.KernelLaunched(); }, [&machine] { return machine.holds_kernels(); }});
  made = std::move(object);
  return RmStatus::kOk;
}

// A descriptor of the client's becomes readable.
RmStatus MakeEvent(const Making& making, Made& made) {
  constexpr uint32_t kFirstOfEngines = 12;  // NV2080_NOTIFIERS_GRAPHICS
  auto event = std::make_unique<EventObject>();
  event->of_work = (making.As<EventParams>().notify_index & 0xffff) >= kFirstOfEngines;
  event->file = making.caller.FileOf(static_cast<int>(making.As<EventParams>().fd)).value_or(0);
  made = std::move(event);
  return RmStatus::kOk;
}

constexpr Kind kKinds[] = {
    {0x3e, sizeof(MemoryParams), &MakeMemory<false>},
    {0x40, sizeof(MemoryParams), &MakeMemory<true>},
    {0x79, sizeof(EventParams), &MakeEvent},
    {0x80, sizeof(DeviceParams), &MakeDevice},
    {0x2080, 0, &MakePlain},  // subdevice
    {0x2081, 0, &MakePlain},  // calls of the module itself
    {0x50a0, sizeof(MemoryParams), &MakeVirtualRange},
    {0x83de, 0, &MakePlain},  // debugger
    {0x9067, sizeof(ContextShareParams), &MakeContextShare},
    {0x90f1, sizeof(VaSpaceParams), &MakeEmpty<VaSpace>},
    {0xa06c, sizeof(ChannelGroupParams), &MakeGroup},
    {0xc5c0, 0, &MakePlain},  // compute and copies of a channel, which find their engine by its class
    {0xcbc0, 0, &MakePlain},
    {0xc5b5, 0, &MakePlain},
    {0xc8b5, 0, &MakePlain},
    {0xc361, 0, &MakeRegisters},
    {0xc461, 0, &MakeRegisters},
    {0xc561, 0, &MakeRegisters},
    {0xc661, 0, &MakeRegisters},
    {0xc36f, sizeof(ChannelParams), &MakeChannel},
    {0xc46f, sizeof(ChannelParams), &MakeChannel},
    {0xc56f, sizeof(ChannelParams), &MakeChannel},
    {0xc86f, sizeof(ChannelParams), &MakeChannel},
    {0xcb33, 0, &MakePlain},  // confidential computing
};

}  // namespace

const Kind* FindKind(uint32_t id) {
  const auto* const it =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& kind) { return kind.id == id; });
  return it == std::end(kKinds) ? nullptr : it;
}

std::shared_ptr<AddressSpace> SpaceOf(const Client& client, uint32_t handle) {
  if (const auto* const space = client.FindAs<VaSpace>(handle)) return space->space;
  if (const auto* const share = client.FindAs<ContextShare>(handle)) return SpaceOf(client, share->va_space);
  if (const auto* const range = client.FindAs<VirtualRange>(handle)) return SpaceOf(client, range->va_space);
  return nullptr;
}

}  // namespace vgpud::kernel_side
