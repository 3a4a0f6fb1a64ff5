// SPDX-License-Identifier: Apache-2.0
// Controls of a client: the system and its cards.
#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "tests/first_contact/kernel_side/abi/control_layouts.h"
#include "tests/first_contact/kernel_side/rm/controls.h"

namespace vgpud::kernel_side {
namespace {

constexpr uint32_t kNoCard = 0xffffffff;
constexpr int32_t kNoNode = -1;

RmStatus TellVersion(const Asking& asking) {
  constexpr uint32_t kMostBytes = 4096;
  auto& params = asking.As<BuildVersion>();
  if (params.string_bytes > kMostBytes) return RmStatus::kInvalidArgument;
  const struct {
    uint64_t at;
    std::string text;
  } kTexts[] = {{params.driver, asking.machine.version()},
                {params.version, "r" + asking.machine.version()},
                {params.title, "NVIDIA UNIX x86_64 Kernel Module"}};
  for (const auto& [at, text] : kTexts) {
    std::string padded = text;
    padded.resize(params.string_bytes);
    if (!asking.caller.Write(at, padded.data(), padded.size())) return RmStatus::kInvalidPointer;
  }
  params.changelist = params.official_changelist = 35695000;
  return RmStatus::kOk;
}

RmStatus ListCards(const Asking& asking) {
  auto* const ids = &asking.As<uint32_t>();
  std::fill_n(ids, asking.params.size() / sizeof *ids, kNoCard);
  size_t at = 0;
  for (const Card& card : asking.machine.cards())
    if (!card.lost) ids[at++] = card.gpu_id();
  return RmStatus::kOk;
}

template <class T>
RmStatus TellCard(const Asking& asking) {
  auto& params = asking.As<T>();
  const Card* const card = asking.machine.FindCard(params.gpu_id);
  if (card == nullptr) return RmStatus::kInvalidArgument;
  params.flags = 1;  // in use
  params.device = params.gpu = card->index;
  params.subdevice = params.sli = 0;
  params.board = card->gpu_id();
  params.numa = kNoNode;
  return RmStatus::kOk;
}

RmStatus Attach(const Asking&) { return RmStatus::kOk; }

// Through which file a memory is mapped (NV0000_CTRL_CLIENT_GET_ADDR_SPACE_TYPE_*).
RmStatus TellAddressSpace(const Asking& asking) {
  enum Type : uint32_t { kSystem = 1, kVideo = 2, kRegisters = 3 };
  auto& params = asking.As<AddressSpaceType>();
  const auto* const memory = asking.client.FindAs<MemoryObject>(params.object);
  if (memory == nullptr) return RmStatus::kObjectNotFound;
  params.type = memory->kind == 0x40 ? kVideo : (memory->kind & 0xff) == 0x61 ? kRegisters : kSystem;
  return RmStatus::kOk;
}

constexpr Control kControls[] = {
    {kGetBuildVersion, sizeof(BuildVersion), &TellVersion},
    {kGetAttachedIds, 32 * sizeof(uint32_t), &ListCards},
    {kGetProbedIds, 32 * sizeof(uint32_t), &ListCards},
    {kGetIdInfo, sizeof(GpuIdInfo), &TellCard<GpuIdInfo>},
    {kGetIdInfo2, sizeof(GpuIdInfo2), &TellCard<GpuIdInfo2>},
    {kAttachIds, 0, &Attach},
    {kGetAddressSpaceType, sizeof(AddressSpaceType), &TellAddressSpace},
};

}  // namespace

std::span<const Control> ClientControls() { return kControls; }

}  // namespace vgpud::kernel_side
