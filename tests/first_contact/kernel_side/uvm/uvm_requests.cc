// SPDX-License-Identifier: Apache-2.0
#include "tests/first_contact/kernel_side/uvm/uvm_requests.h"

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/log.h"
#include "tests/first_contact/kernel_side/abi/uvm_layouts.h"

namespace vgpud::kernel_side {
namespace {

struct UvmCall {
  Machine& machine;
  OpenFile& file;
  std::vector<std::byte>& bytes;

  template <class T>
  T& At(size_t offset = 0) const {
    return *reinterpret_cast<T*>(bytes.data() + offset);
  }
};

RmStatus Nothing(const UvmCall&) { return RmStatus::kOk; }

RmStatus RegisterVaSpace(const UvmCall& call) {
  const auto& params = call.At<UvmRegisterVaSpace>();
  Client* const client = call.machine.FindClient(params.client);
  auto* const space = client == nullptr ? nullptr : client->FindAs<VaSpace>(params.va_space);
  if (space == nullptr) return RmStatus::kObjectNotFound;
  space->space = call.file.space;
  return RmStatus::kOk;
}

RmStatus RegisterCard(const UvmCall& call) {
  const Card* const card = call.machine.FindCard(call.At<Uuid>());
  if (card == nullptr) return RmStatus::kGpuUuidNotFound;
  return card->lost ? RmStatus::kGpuIsLost : RmStatus::kOk;
}

RmStatus MapExternal(const UvmCall& call) {
  const auto& params = call.At<UvmMapExternal>();
  const auto& end =
      call.At<UvmMapExternalEnd>(sizeof params + kUvmAttributesBytes * UvmMostCards(call.machine.major()));
  const Client* const client = call.machine.FindClient(end.client);
  const auto* const object = client == nullptr ? nullptr : client->FindAs<MemoryObject>(end.memory);
  if (object == nullptr) return RmStatus::kObjectNotFound;
  call.file.space->Map(params.base, params.bytes, object->memory, params.offset);
  return RmStatus::kOk;
}

RmStatus Unmap(const UvmCall& call) {
  const auto& range = call.At<UvmRange>();
  call.file.space->Unmap(range.base, range.bytes);
  return RmStatus::kOk;
}

// The offset of the status is the last four bytes before `bytes`, without padding.
struct Row {
  uint32_t request;
  size_t bytes;
  size_t status_at;
  RmStatus (*run)(const UvmCall& call);
  bool per_card = false;  // has attributes of each card that there is room for, which are not in `bytes`
};
constexpr Row kRows[] = {
    {kUvmInitializeSpace, 16, 8, &Nothing},
    {kUvmCreateRangeGroup, 16, 8, &Nothing},
    {kUvmDestroyRangeGroup, 16, 8, &Nothing},
    {kUvmRegisterVaSpace, sizeof(UvmRegisterVaSpace), 28, &RegisterVaSpace},
    {kUvmUnregisterVaSpace, 20, 16, &Nothing},
    {kUvmRegisterChannel, 56, 48, &Nothing},
    {kUvmUnregisterChannel, 28, 24, &Nothing},
    {kUvmEnablePeers, 36, 32, &Nothing},
    {kUvmDisablePeers, 36, 32, &Nothing},
    {kUvmSetRangeGroup, 32, 24, &Nothing},
    {kUvmMapExternal, sizeof(UvmMapExternal) + sizeof(UvmMapExternalEnd), 44, &MapExternal, true},
    {kUvmFree, 24, 16, &Unmap},
    {kUvmRegisterGpu, 40, 36, &RegisterCard},
    {kUvmUnregisterGpu, 20, 16, &Nothing},
    {kUvmPageableAccess, 8, 4, &Nothing},
    {kUvmMapDynamicParallelism, 40, 32, &Nothing},
    {kUvmUnmapExternal, 40, 32, &Unmap},
    {kUvmAllocSemaphorePool, 32, 24, &Nothing, true},
    {kUvmCleanUp, 4, 0, &Nothing},
    {kUvmPageableAccessOnGpu, 24, 20, &Nothing},
    {kUvmValidateRange, 24, 16, &Nothing},
    {kUvmCreateExternalRange, 24, 16, &Nothing},
    {kUvmMapSparse, 40, 32, &Nothing},
    {kUvmMmInitialize, 8, 4, &Nothing},
};

}  // namespace

int DoUvmRequest(Machine& machine, OpenFile& file, const Caller& caller, uint32_t request, uint64_t argument) {
  if (request == kUvmDeinitialize) return 0;
  for (const Row& row : kRows) {
    if (row.request != request) continue;
    const size_t more = row.per_card ? kUvmAttributesBytes * UvmMostCards(machine.major()) : 0;
    std::vector<std::byte> bytes(row.bytes + more);
    if (!caller.Read(argument, bytes.data(), bytes.size())) return EFAULT;
    const auto status = static_cast<uint32_t>(row.run({machine, file, bytes}));
    if (status != 0) LOG(kWarning, "request {} of unified memory is refused: {:x}", request, status);
    std::memcpy(bytes.data() + row.status_at + more, &status, sizeof status);
    return caller.Write(argument, bytes.data(), bytes.size()) ? 0 : EFAULT;
  }
  LOG(kWarning, "request {} of unified memory is refused: no row has it", request);
  return EINVAL;
}

}  // namespace vgpud::kernel_side
