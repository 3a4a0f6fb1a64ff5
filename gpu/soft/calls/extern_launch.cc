// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/calls/extern_launch.h"

#include <bit>

#include "base/checked.h"
#include "gpu/soft/run/device_launches.h"
#include "gpu/soft/run/grid.h"

namespace vgpud::soft {
namespace {

template <class F>
bool EachLane(const ExternCall& call, F f) {
  for (uint32_t m = call.warp.mask; m != 0; m &= m - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(m));
    call.Return(lane, f(lane));
  }
  return true;
}
DeviceLaunches& Launches(const ExternCall& call) { return *call.warp.grid->launches(); }
uint64_t Code(DeviceError error) { return static_cast<uint32_t>(error); }

const CodeFunction* KernelOf(const Program& program, uint64_t handle) {
  const uint64_t index = handle ^ kFunctionHandle;
  if (index >= program.functions.size() || !program.functions[index]->is_kernel) return nullptr;
  return program.functions[index].get();
}

// void* cudaGetParameterBufferV2(void* kernel, dim3 grid, dim3 block, unsigned shared)
bool GetParameterBuffer(const ExternCall& call) {
  return EachLane(call, [&](uint32_t lane) {
    LaunchShape shape{};
    call.Read(1, lane, std::as_writable_bytes(std::span(shape.grid)));
    call.Read(2, lane, std::as_writable_bytes(std::span(shape.block)));
    shape.dynamic_shared = CheckedSize(call.Argument(3, lane)).To<uint32_t>().value_or(UINT32_MAX);
    return Launches(call).Prepare(KernelOf(call.warp.grid->program(), call.Argument(0, lane)), shape);
  });
}
// cudaError_t cudaLaunchDeviceV2(void* buffer, cudaStream_t stream)
bool Launch(const ExternCall& call) {
  return EachLane(call, [&](uint32_t lane) {
    const uint64_t buffer = call.Argument(0, lane);
    DeviceLaunches& launches = Launches(call);
    return Code(buffer == 0 ? launches.LastError(false) : launches.Add(buffer, call.Argument(1, lane)));
  });
}
bool GetLastError(const ExternCall& call) {
  return EachLane(call, [&](uint32_t) { return Code(Launches(call).LastError(true)); });
}
bool PeekAtLastError(const ExternCall& call) {
  return EachLane(call, [&](uint32_t) { return Code(Launches(call).LastError(false)); });
}

// Streams and events of a kernel: all its launches run in their order, so that any handle serves.
constexpr uint64_t kAnyHandle = 0x10;
bool Create(const ExternCall& call) {
  for (uint32_t m = call.warp.mask; m != 0; m &= m - 1)
    if (!call.Store(static_cast<uint32_t>(std::countr_zero(m)), 0, kAnyHandle, sizeof kAnyHandle)) return false;
  return EachLane(call, [](uint32_t) { return Code(DeviceError::kSuccess); });
}
bool Nothing(const ExternCall& call) {
  return EachLane(call, [](uint32_t) { return Code(DeviceError::kSuccess); });
}
template <uint32_t kValue>
bool StoreInt(const ExternCall& call) {
  for (uint32_t m = call.warp.mask; m != 0; m &= m - 1)
    if (!call.Store(static_cast<uint32_t>(std::countr_zero(m)), 0, kValue, sizeof kValue)) return false;
  return EachLane(call, [](uint32_t) { return Code(DeviceError::kSuccess); });
}

// cudaError_t cudaMalloc(void** address, size_t bytes), cudaFree(void*): memory of the kernels' heap
bool Malloc(const ExternCall& call) {
  DeviceHeap& heap = call.warp.grid->device().heap;
  for (uint32_t m = call.warp.mask; m != 0; m &= m - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(m));
    const uint64_t address = heap.Allocate(call.Argument(1, lane));
    if (!call.Store(lane, 0, address, sizeof address)) return false;
    call.Return(lane, Code(address != 0 ? DeviceError::kSuccess : DeviceError::kMemoryAllocation));
  }
  return true;
}
bool Free(const ExternCall& call) {
  DeviceHeap& heap = call.warp.grid->device().heap;
  return EachLane(call, [&](uint32_t lane) {
    const uint64_t address = call.Argument(0, lane);
    return Code(address == 0 || heap.Free(address) ? DeviceError::kSuccess : DeviceError::kInvalidValue);
  });
}

using Uses = ExternFunction::Uses;
constexpr ExternFunction kFunctions[] = {
    {"__cudaCDP2GetParameterBufferV2", 4, Uses::kLaunches, GetParameterBuffer},
    {"__cudaCDP2LaunchDeviceV2", 2, Uses::kLaunches, Launch},
    {"__cudaCDP2LaunchDeviceV2_ptsz", 2, Uses::kLaunches, Launch},
    {"__cudaCDP2GetLastError", 0, Uses::kLaunches, GetLastError},
    {"__cudaCDP2PeekAtLastError", 0, Uses::kLaunches, PeekAtLastError},
    {"__cudaCDP2Malloc", 2, Uses::kHeap, Malloc},
    {"__cudaCDP2Free", 1, Uses::kHeap, Free},
    {"__cudaCDP2StreamCreateWithFlags", 2, Uses::kNothing, Create},
    {"__cudaCDP2StreamDestroy", 1, Uses::kNothing, Nothing},
    {"__cudaCDP2StreamWaitEvent", 3, Uses::kNothing, Nothing},
    {"__cudaCDP2StreamWaitEvent_ptsz", 3, Uses::kNothing, Nothing},
    {"__cudaCDP2EventCreateWithFlags", 2, Uses::kNothing, Create},
    {"__cudaCDP2EventRecord", 2, Uses::kNothing, Nothing},
    {"__cudaCDP2EventRecord_ptsz", 2, Uses::kNothing, Nothing},
    {"__cudaCDP2EventDestroy", 1, Uses::kNothing, Nothing},
    {"__cudaCDP2GetDevice", 1, Uses::kNothing, StoreInt<0>},
    {"__cudaCDP2GetDeviceCount", 1, Uses::kNothing, StoreInt<1>},
};

}  // namespace

std::span<const ExternFunction> LaunchFunctions() { return kFunctions; }

}  // namespace vgpud::soft
