// SPDX-License-Identifier: Apache-2.0
#include "tests/first_contact/kernel_side/rm/escapes.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "base/log.h"
#include "tests/first_contact/kernel_side/abi/rm_layouts.h"
#include "tests/first_contact/kernel_side/rm/controls.h"
#include "tests/first_contact/kernel_side/rm/kinds.h"

namespace vgpud::kernel_side {
namespace {

constexpr uint32_t kMostParams = 1 << 20;
constexpr uint32_t kClientKinds[] = {0, 1, rm::kClientClass};
constexpr uint32_t kProcessMemoryKind = 0x71, kCardMemoryKind = 0x40, kVirtualKind = 0x50a0;

constexpr uint32_t Number(RmStatus status) { return static_cast<uint32_t>(status); }

// An address that means something to us alone: programs give it back.
uint64_t NextToken(uint64_t bytes) {
  static uint64_t next = uint64_t{1} << 40;
  constexpr uint64_t kStep = 1 << 16;
  return std::exchange(next, next + (bytes / kStep + 1) * kStep);
}

int TellCards(const EscapeCall& call) {
  const size_t room = call.bytes.size() / sizeof(CardInfo);
  std::fill(call.bytes.begin(), call.bytes.end(), std::byte{0});
  auto* info = &call.As<CardInfo>();
  for (const Card& card : call.machine.cards()) {
    if (card.index >= room || card.lost) continue;
    info->valid = 1;
    info->bus = static_cast<uint8_t>(card.bus());
    info->vendor = 0x10de;
    info->device = card.chip->device;
    info->gpu_id = card.gpu_id();
    info->interrupt_line = 16;
    info->registers_address = 0xf000'0000 + (uint64_t{card.index} << 24);
    info->registers_bytes = 1 << 24;
    info->memory_address = uint64_t{0xe0'0000'0000} + (uint64_t{card.index} << 38);
    info->memory_bytes = card.bytes();
    info->minor = card.index;
    ++info;
  }
  return 0;
}

int CheckVersion(const EscapeCall& call) {
  auto& version = call.As<Version>();
  version.text[sizeof version.text - 1] = 0;
  const bool same = call.machine.version() == version.text;
  std::strncpy(version.text, call.machine.version().c_str(), sizeof version.text - 1);
  version.reply = same ? kVersionRecognized : 0;
  return same ? 0 : EINVAL;
}

int Nothing(const EscapeCall&) { return 0; }

template <class T, uint32_t T::*Status>
int Agree(const EscapeCall& call) {
  call.As<T>().*Status = Number(RmStatus::kOk);
  return 0;
}

int TellSystem(const EscapeCall& call) {
  call.As<uint64_t>() = 128 << 20;  // a block of memory that can be plugged
  return 0;
}

int TellNode(const EscapeCall& call) {
  call.As<NumaInfo>() = {-1, 0};  // a card's memory is no node of the system's
  return 0;
}

int TellOpened(const EscapeCall& call) {
  call.As<WaitOpenComplete>() = {};
  return 0;
}

int TellStatus(const EscapeCall& call) {
  auto& params = call.As<StatusCode>();
  const auto& cards = call.machine.cards();
  const bool lost =
      std::any_of(cards.begin(), cards.end(), [&](const Card& card) { return card.bus() == params.bus && card.lost; });
  params.status = Number(lost ? RmStatus::kGpuIsLost : RmStatus::kOk);
  return 0;
}

RmStatus MakeClient(const EscapeCall& call, uint32_t& handle) {
  if (handle == 0) handle = call.machine.NewHandle();
  if (call.machine.FindClient(handle) != nullptr) return RmStatus::kInvalidClient;
  call.machine.AddClient(handle, call.file);
  return RmStatus::kOk;
}

// `params` are as many bytes as the row of the kind says, or more; `handle` is chosen if it is 0.
RmStatus AddObject(const EscapeCall& call, Client& client, uint32_t kind_id, uint32_t parent_handle, uint32_t& handle,
                   std::span<std::byte> params) {
  const Kind* const kind = FindKind(kind_id);
  if (kind == nullptr) return RmStatus::kInvalidClass;
  if (const auto refusal = call.machine.RefusalOf(kind_id)) return *refusal;
  Object* const parent = client.Find(parent_handle);
  if (parent == nullptr && parent_handle != client.handle()) return RmStatus::kInvalidObjectParent;
  if (parent != nullptr && parent->card != nullptr && parent->card->lost) return RmStatus::kGpuIsLost;
  if (handle == 0) handle = call.machine.NewHandle();
  if (client.Find(handle) != nullptr) return RmStatus::kInvalidObjectHandle;
  std::unique_ptr<Object> made;
  const RmStatus status = kind->make({call.machine, client, parent, call.caller, params}, made);
  if (status != RmStatus::kOk) return status;
  made->handle = handle;
  made->parent = parent_handle;
  made->kind = kind_id;
  if (made->card == nullptr && parent != nullptr) made->card = parent->card;
  client.Add(std::move(made));
  return RmStatus::kOk;
}

// The parameters are elsewhere, and go back there.
RmStatus MakeObject(const EscapeCall& call, const rm::RmAlloc& asked, uint32_t params_bytes, uint32_t& handle) {
  Client* const client = call.machine.FindClient(asked.root);
  if (client == nullptr) return RmStatus::kInvalidClient;
  const Kind* const kind = FindKind(asked.kind);
  const size_t needed = kind == nullptr ? 0 : kind->params_bytes;
  const size_t bytes = params_bytes != 0 ? params_bytes : needed;
  if (bytes > kMostParams || bytes < needed) return RmStatus::kInvalidParamStruct;
  std::vector<std::byte> params(bytes);
  if (asked.params != 0 && !call.caller.Read(asked.params, params.data(), bytes)) return RmStatus::kInvalidPointer;
  const RmStatus status = AddObject(call, *client, asked.kind, asked.parent, handle, params);
  if (status != RmStatus::kOk || asked.params == 0) return status;
  return call.caller.Write(asked.params, params.data(), bytes) ? RmStatus::kOk : RmStatus::kInvalidPointer;
}

int Allocate(const EscapeCall& call) {
  const bool is_long = call.bytes.size() >= sizeof(rm::RmAlloc);
  auto& asked = call.As<rm::RmAlloc>();
  uint32_t short_params = 0;
  std::memcpy(&short_params, call.bytes.data() + 24, sizeof short_params);
  const bool of_client =
      std::find(std::begin(kClientKinds), std::end(kClientKinds), asked.kind) != std::end(kClientKinds);
  const RmStatus status = of_client
                              ? MakeClient(call, asked.object)
                              : MakeObject(call, asked, is_long ? asked.params_bytes : short_params, asked.object);
  const uint32_t number = Number(status);
  std::memcpy(call.bytes.data() + (is_long ? offsetof(rm::RmAlloc, status) : rm::kShortAllocStatus), &number,
              sizeof number);
  if (status != RmStatus::kOk)
    LOG(kWarning, "object of class {:04x} of parent {:x} is refused: {:x}", asked.kind, asked.parent, number);
  return 0;
}

int Release(const EscapeCall& call) {
  auto& asked = call.As<rm::RmFree>();
  Client* const client = call.machine.FindClient(asked.root);
  RmStatus status = client == nullptr ? RmStatus::kInvalidClient : RmStatus::kOk;
  if (client != nullptr && asked.object == asked.root)
    call.machine.RemoveClient(asked.root);
  else if (client != nullptr && !client->Free(asked.object))
    status = RmStatus::kObjectNotFound;
  asked.status = Number(status);
  return 0;
}

RmStatus Answer(const EscapeCall& call, const rm::RmControl& asked) {
  Client* const client = call.machine.FindClient(asked.client);
  if (client == nullptr) return RmStatus::kInvalidClient;
  Object* const object = client->Find(asked.object);
  if (object == nullptr && asked.object != asked.client) return RmStatus::kInvalidObject;
  if (asked.params_bytes > kMostParams) return RmStatus::kInvalidParamStruct;
  std::vector<std::byte> params(asked.params_bytes);
  if (!call.caller.Read(asked.params, params.data(), params.size())) return RmStatus::kInvalidPointer;
  const RmStatus status = AnswerControl({call.machine, *client, object, call.caller, asked.command, params});
  if (status != RmStatus::kOk) return status;
  return call.caller.Write(asked.params, params.data(), params.size()) ? RmStatus::kOk : RmStatus::kInvalidPointer;
}

int ControlObject(const EscapeCall& call) {
  auto& asked = call.As<rm::RmControl>();
  const RmStatus status = Answer(call, asked);
  asked.status = Number(status);
  if (status != RmStatus::kOk)
    LOG(kInfo, "control {:08x} of {:x} is refused: {:x}", asked.command, asked.object, asked.status);
  return 0;
}

// The next mmap of the file that `fd` is to the caller maps this memory.
RmStatus OfferToMap(const EscapeCall& call, int fd, const std::shared_ptr<Memory>& memory, uint64_t offset) {
  const auto stored = std::dynamic_pointer_cast<StoredMemory>(memory);
  const auto number = call.caller.FileOf(fd);
  if (!stored || !number || call.files.count(*number) == 0) return RmStatus::kInvalidArgument;
  OpenFile& file = call.files[*number];
  if (!stored->ShareThrough(file.node)) return RmStatus::kInvalidState;
  file.mapped = stored;
  file.mapped_offset = offset;
  return RmStatus::kOk;
}

RmStatus MakeOldMemory(const EscapeCall& call, AllocMemory& asked) {
  Client* const client = call.machine.FindClient(asked.root);
  if (client == nullptr) return RmStatus::kInvalidClient;
  Object* const parent = client->Find(asked.parent);
  if (parent == nullptr || parent->card == nullptr) return RmStatus::kInvalidObjectParent;
  if (parent->card->lost) return RmStatus::kGpuIsLost;
  if (asked.limit == UINT64_MAX) return RmStatus::kInvalidLimit;
  if (asked.object == 0) asked.object = call.machine.NewHandle();
  if (client->Find(asked.object) != nullptr) return RmStatus::kInvalidObjectHandle;
  auto object = std::make_unique<MemoryObject>();
  const uint64_t bytes = asked.limit + 1;
  const bool of_process = asked.kind == kProcessMemoryKind;
  if (of_process)
    object->memory = std::make_shared<ProcessMemory>(call.caller.process(), asked.address, bytes);
  else
    object->memory = call.machine.MakeMemory(bytes);
  if (!object->memory) return RmStatus::kNoMemory;
  object->handle = asked.object;
  object->parent = asked.parent;
  object->kind = asked.kind;
  object->card = parent->card;
  const auto memory = object->memory;
  client->Add(std::move(object));
  if (of_process || asked.fd < 0) return RmStatus::kOk;
  asked.address = NextToken(bytes);
  return OfferToMap(call, asked.fd, memory, 0);
}

int AllocateMemory(const EscapeCall& call) {
  auto& asked = call.As<AllocMemory>();
  asked.status = Number(MakeOldMemory(call, asked));
  return 0;
}

RmStatus Map(const EscapeCall& call, MapMemory& asked) {
  Client* const client = call.machine.FindClient(asked.client);
  if (client == nullptr) return RmStatus::kInvalidClient;
  const auto* const object = client->FindAs<MemoryObject>(asked.memory);
  if (object == nullptr) return RmStatus::kObjectNotFound;
  if (object->card != nullptr && object->card->lost) return RmStatus::kGpuIsLost;
  asked.address = NextToken(asked.bytes);
  return OfferToMap(call, asked.fd, object->memory, asked.offset);
}

int MapObject(const EscapeCall& call) {
  auto& asked = call.As<MapMemory>();
  asked.status = Number(Map(call, asked));
  return 0;
}

RmStatus MapToGpu(const EscapeCall& call, MapMemoryDma& asked) {
  Client* const client = call.machine.FindClient(asked.client);
  if (client == nullptr) return RmStatus::kInvalidClient;
  const auto space = SpaceOf(*client, asked.dma);
  const auto* const object = client->FindAs<MemoryObject>(asked.memory);
  if (!space || object == nullptr) return RmStatus::kObjectNotFound;
  space->Map(asked.address, asked.bytes, object->memory, asked.offset);
  return RmStatus::kOk;
}

int MapObjectToGpu(const EscapeCall& call) {
  auto& asked = call.As<MapMemoryDma>();
  asked.status = Number(MapToGpu(call, asked));
  return 0;
}

int UnmapFromGpu(const EscapeCall& call) {
  const uint32_t ok = Number(RmStatus::kOk);
  const bool is_old = call.bytes.size() < sizeof(UnmapMemoryDma);
  std::memcpy(call.bytes.data() + (is_old ? kOldUnmapStatus : offsetof(UnmapMemoryDma, status)), &ok, sizeof ok);
  return 0;
}

// The same memory by another handle, of whatever client.
RmStatus Duplicate(const EscapeCall& call, DupObject& asked) {
  Client* const client = call.machine.FindClient(asked.client);
  Client* const from = call.machine.FindClient(asked.from_client);
  if (client == nullptr || from == nullptr) return RmStatus::kInvalidClient;
  const Object* const object = from->Find(asked.from_object);
  if (object == nullptr) return RmStatus::kObjectNotFound;
  if (asked.object == 0) asked.object = call.machine.NewHandle();
  if (client->Find(asked.object) != nullptr) return RmStatus::kInvalidObjectHandle;
  std::unique_ptr<Object> copy;
  if (const auto* const memory = dynamic_cast<const MemoryObject*>(object)) {
    auto same = std::make_unique<MemoryObject>();
    same->memory = memory->memory;
    copy = std::move(same);
  } else {
    copy = std::make_unique<PlainObject>();
  }
  copy->handle = asked.object;
  copy->parent = asked.parent;
  copy->kind = object->kind;
  copy->card = object->card;
  client->Add(std::move(copy));
  return RmStatus::kOk;
}

int DuplicateObject(const EscapeCall& call) {
  auto& asked = call.As<DupObject>();
  asked.status = Number(Duplicate(call, asked));
  return 0;
}

// The old way to make memory: addresses only, or the card's own.
RmStatus UseHeap(const EscapeCall& call, VidHeap& asked) {
  Client* const client = call.machine.FindClient(asked.root);
  if (client == nullptr) return RmStatus::kInvalidClient;
  if (asked.function == kFreeMemory) return client->Free(asked.memory) ? RmStatus::kOk : RmStatus::kObjectNotFound;
  if (asked.function != kAllocateSize) return RmStatus::kNotSupported;
  const bool is_virtual = (asked.flags & kVirtualFlag) != 0;
  MemoryParams params{};
  params.bytes = asked.bytes;
  params.offset = asked.offset;
  params.va_space = asked.va_space;
  const RmStatus status = AddObject(call, *client, is_virtual ? kVirtualKind : kCardMemoryKind, asked.parent,
                                    asked.memory, std::as_writable_bytes(std::span{&params, 1}));
  asked.limit = params.limit;
  return status;
}

int UseVidHeap(const EscapeCall& call) {
  auto& asked = call.As<VidHeap>();
  asked.status = Number(UseHeap(call, asked));
  return 0;
}

constexpr struct {
  uint32_t escape;
  size_t bytes;  // it needs at least
  int (*run)(const EscapeCall& call);
} kEscapes[] = {
    {kAllocMemory, sizeof(AllocMemory), &AllocateMemory},
    {kFree, sizeof(rm::RmFree), &Release},
    {kControl, sizeof(rm::RmControl), &ControlObject},
    {kAlloc, rm::kShortAllocBytes, &Allocate},
    {kDupObject, sizeof(DupObject), &DuplicateObject},
    {kShare, sizeof(Share), &Agree<Share, &Share::status>},
    {kVidHeapControl, kVidHeapBytes, &UseVidHeap},
    {kMapMemory, sizeof(MapMemory), &MapObject},
    {kUnmapMemory, sizeof(UnmapMemory), &Agree<UnmapMemory, &UnmapMemory::status>},
    {kMapMemoryDma, sizeof(MapMemoryDma), &MapObjectToGpu},
    {kUnmapMemoryDma, kOldUnmapStatus + sizeof(uint32_t), &UnmapFromGpu},
    {kUpdateMapping, sizeof(UpdateMapping), &Agree<UpdateMapping, &UpdateMapping::status>},
    {kCardInfo, sizeof(CardInfo), &TellCards},
    {kRegisterFd, 0, &Nothing},
    {kAllocOsEvent, sizeof(OsEvent), &Agree<OsEvent, &OsEvent::status>},
    {kFreeOsEvent, sizeof(OsEvent), &Agree<OsEvent, &OsEvent::status>},
    {kStatusCode, sizeof(StatusCode), &TellStatus},
    {kCheckVersion, sizeof(Version), &CheckVersion},
    {kAttachGpus, 0, &Nothing},
    {kSysParams, sizeof(uint64_t), &TellSystem},
    {kNumaInfo, sizeof(NumaInfo), &TellNode},
    {kWaitOpenComplete, sizeof(WaitOpenComplete), &TellOpened},
};

}  // namespace

int DoEscape(uint32_t escape, const EscapeCall& call) {
  if (escape == kTransfer && call.bytes.size() >= sizeof(Transfer)) {
    const auto transfer = call.As<Transfer>();
    std::vector<std::byte> bytes(std::min(transfer.bytes, kMostParams));
    if (!call.caller.Read(transfer.at, bytes.data(), bytes.size())) return EFAULT;
    const int error = DoEscape(transfer.escape, {call.machine, call.files, call.file, call.caller, bytes});
    return error == 0 && !call.caller.Write(transfer.at, bytes.data(), bytes.size()) ? EFAULT : error;
  }
  for (const auto& row : kEscapes)
    if (row.escape == escape) return call.bytes.size() < row.bytes ? EINVAL : row.run(call);
  LOG(kWarning, "escape {:#x} with {} bytes is refused: no row has it", escape, call.bytes.size());
  return EINVAL;
}

}  // namespace vgpud::kernel_side
