// SPDX-License-Identifier: Apache-2.0
// Controls of a device and of its one subdevice: what the chip is.
#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/first_contact/kernel_side/abi/control_layouts.h"
#include "tests/first_contact/kernel_side/rm/controls.h"

namespace vgpud::kernel_side {
namespace {

constexpr uint32_t kMostInfos = 4096;
// NV2080_ENGINE_TYPE_*: graphics with compute, and three copy engines.
constexpr uint32_t kGraphics = 1, kFirstCopy = 9, kCopies = 3;

RmStatus CountSubdevices(const Asking& asking) {
  asking.As<uint32_t>() = 1;
  return RmStatus::kOk;
}

// A count and a list behind it.
RmStatus ListBehind(const Asking& asking, std::span<const uint32_t> values) {
  auto* const words = &asking.As<uint32_t>();
  if (values.size() > asking.params.size() / sizeof *words - 1) return RmStatus::kInvalidParamStruct;
  words[0] = static_cast<uint32_t>(values.size());
  std::copy(values.begin(), values.end(), words + 1);
  return RmStatus::kOk;
}

RmStatus ListClasses(const Asking& asking) { return ListBehind(asking, asking.chip().classes); }

RmStatus ListEngines(const Asking& asking) {
  std::vector<uint32_t> engines = {kGraphics};
  for (uint32_t i = 0; i < kCopies; ++i) engines.push_back(kFirstCopy + i);
  return ListBehind(asking, engines);
}

// Of the card itself, or of its chip's table.
uint32_t ValueFor(const Asking& asking, std::span<const Info> Chip::*table, uint32_t index) {
  constexpr uint32_t kBusNumber = 0xf;  // in the table `bus`
  const Card& card = asking.card();
  if (table == &Chip::fb && index == kHeapFree) return static_cast<uint32_t>(card.free_bytes() >> 10);
  if (table == &Chip::bus && index == kBusNumber) return card.bus();
  return ValueOf(asking.chip().*table, index);
}

// What a table says of each index that was asked for. The list is elsewhere, or behind its count.
template <std::span<const Info> Chip::*Table>
RmStatus TellInfosElsewhere(const Asking& asking) {
  const auto& list = asking.As<InfoList>();
  if (list.count > kMostInfos) return RmStatus::kInvalidArgument;
  std::vector<Info> infos(list.count);
  const size_t bytes = infos.size() * sizeof(Info);
  if (!asking.caller.Read(list.at, infos.data(), bytes)) return RmStatus::kInvalidPointer;
  for (Info& info : infos) info.value = ValueFor(asking, Table, info.index);
  return asking.caller.Write(list.at, infos.data(), bytes) ? RmStatus::kOk : RmStatus::kInvalidPointer;
}
template <std::span<const Info> Chip::*Table>
RmStatus TellInfosBehind(const Asking& asking) {
  const uint32_t count = asking.As<uint32_t>();
  if (count > (asking.params.size() - sizeof count) / sizeof(Info)) return RmStatus::kInvalidArgument;
  auto* const infos = reinterpret_cast<Info*>(asking.params.data() + sizeof count);
  for (uint32_t i = 0; i < count; ++i) infos[i].value = ValueFor(asking, Table, infos[i].index);
  return RmStatus::kOk;
}

RmStatus TellArchitecture(const Asking& asking) {
  asking.As<ArchInfo>() = {asking.chip().architecture, asking.chip().implementation, 0xa1, 0};
  return RmStatus::kOk;
}

RmStatus TellName(const Asking& asking) {
  auto& params = asking.As<NameString>();
  std::strncpy(params.name, asking.chip().name, sizeof params.name - 1);
  return RmStatus::kOk;
}

RmStatus TellShortName(const Asking& asking) {
  std::strncpy(reinterpret_cast<char*>(asking.params.data()), asking.chip().short_name, asking.params.size() - 1);
  return RmStatus::kOk;
}

RmStatus TellGid(const Asking& asking) {
  constexpr uint32_t kBinary = 2;
  auto& params = asking.As<GidInfo>();
  const auto uuid = asking.card().uuid();
  const std::string text = asking.card().uuid_text();
  const bool binary = (params.flags & kBinary) != 0;
  params.bytes = static_cast<uint32_t>(binary ? uuid.size() : text.size() + 1);
  std::memcpy(params.data, binary ? static_cast<const void*>(uuid.data()) : text.c_str(), params.bytes);
  return RmStatus::kOk;
}

RmStatus TellPci(const Asking& asking) {
  constexpr uint32_t kVendor = 0x10de, kSubsystem = 0x12a2'10de, kRevision = 0xa1;
  const uint32_t device = asking.chip().device;
  asking.As<PciInfo>() = {device << 16 | kVendor, kSubsystem, kRevision, device};
  return RmStatus::kOk;
}

RmStatus TellGpcs(const Asking& asking) {
  asking.As<GpcMask>().mask = (1u << asking.chip().gpcs) - 1;
  return RmStatus::kOk;
}

RmStatus TellTpcs(const Asking& asking) {
  asking.As<TpcMask>().mask = (1u << asking.chip().tpcs_per_gpc) - 1;
  return RmStatus::kOk;
}

RmStatus TellSms(const Asking& asking) {
  constexpr uint16_t kSmsPerTpc = 2;
  auto& params = asking.As<SmOrder>();
  const auto tpcs = static_cast<uint16_t>(asking.chip().tpcs_per_gpc);
  const auto count = static_cast<uint16_t>(asking.chip().sms);
  for (uint16_t sm = 0; sm < count; ++sm) {
    const auto tpc = static_cast<uint16_t>(sm / kSmsPerTpc), gpc = static_cast<uint16_t>(tpc / tpcs);
    params.sms[sm] = {gpc, static_cast<uint16_t>(tpc % tpcs), static_cast<uint16_t>(sm % kSmsPerTpc), tpc, gpc, tpc};
  }
  params.sm_count = count;
  params.tpc_count = count / kSmsPerTpc;
  return RmStatus::kOk;
}

// Host memory in both directions, and layouts of textures; the first shares its engine with graphics.
CopyCaps CapsOf(uint32_t engine) {
  constexpr uint8_t kWithGraphics = 0x01, kHostMemory = 0x2c, kTextures = 0x03;
  return {engine, {static_cast<uint8_t>(engine == kFirstCopy ? kWithGraphics | kHostMemory : kHostMemory), kTextures}};
}

RmStatus TellCopyCaps(const Asking& asking) {
  asking.As<CopyCaps>() = CapsOf(asking.As<CopyCaps>().engine);
  return RmStatus::kOk;
}

// Two bytes for each engine that there can be, 32 or 64 of them, and a mask of those that are there.
RmStatus TellAllCopyCaps(const Asking& asking) {
  for (uint32_t i = 0; i < kCopies; ++i)
    std::memcpy(asking.params.data() + 2 * i, CapsOf(kFirstCopy + i).caps, sizeof(CopyCaps::caps));
  const uint64_t there = (1u << kCopies) - 1;
  std::memcpy(asking.params.data() + (asking.params.size() >= 136 ? 128 : 64), &there,
              asking.params.size() >= 136 ? sizeof there : sizeof(uint32_t));
  return RmStatus::kOk;
}

RmStatus ListEngineClasses(const Asking& asking) {
  auto& params = asking.As<EngineClasses>();
  const auto classes = params.engine == kGraphics ? asking.chip().engine_classes : asking.chip().copy_classes;
  const size_t fit = params.count == 0 ? classes.size() : std::min<size_t>(params.count, classes.size());
  if (params.at != 0 && !asking.caller.Write(params.at, classes.data(), fit * sizeof classes[0]))
    return RmStatus::kInvalidPointer;
  params.count = static_cast<uint32_t>(classes.size());
  return RmStatus::kOk;
}

constexpr Control kControls[] = {
    {kGetSubdeviceCount, sizeof(uint32_t), &CountSubdevices},
    {kGetClassList2, sizeof(uint32_t), &ListClasses},
    {kGetDeviceGrInfo, sizeof(InfoList), &TellInfosElsewhere<&Chip::gr>},
    {kGetDeviceGrInfo2, sizeof(uint32_t), &TellInfosBehind<&Chip::gr>},
    {kGetGpuInfo2, sizeof(uint32_t), &TellInfosBehind<&Chip::gpu>},
    {kGetNameString, sizeof(NameString), &TellName},
    {kGetShortName, sizeof(uint64_t), &TellShortName},
    {kGetEngineClasses, sizeof(EngineClasses), &ListEngineClasses},
    {kGetGid, sizeof(GidInfo), &TellGid},
    {kGetEngines2, sizeof(uint32_t), &ListEngines},
    {kGetGrInfo, sizeof(InfoList), &TellInfosElsewhere<&Chip::gr>},
    {kGetSmOrder, sizeof(SmOrder), &TellSms},
    {kGetGpcMask, sizeof(GpcMask), &TellGpcs},
    {kGetTpcMask, sizeof(TpcMask), &TellTpcs},
    {kGetFbInfo, sizeof(InfoList), &TellInfosElsewhere<&Chip::fb>},
    {kGetFbInfo2, sizeof(uint32_t), &TellInfosBehind<&Chip::fb>},
    {kGetArchInfo, sizeof(ArchInfo), &TellArchitecture},
    {kGetPciInfo, sizeof(PciInfo), &TellPci},
    {kGetBusInfo, sizeof(InfoList), &TellInfosElsewhere<&Chip::bus>},
    {kGetBusInfo2, sizeof(uint32_t), &TellInfosBehind<&Chip::bus>},
    {kGetCopyCaps2, sizeof(CopyCaps), &TellCopyCaps},
    {kGetAllCopyCaps, 68, &TellAllCopyCaps},
};

}  // namespace

std::span<const Control> CardControls() { return kControls; }

}  // namespace vgpud::kernel_side
