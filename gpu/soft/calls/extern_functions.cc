// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/calls/extern_functions.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>

#include "gpu/soft/calls/extern_launch.h"
#include "gpu/soft/memory/print_format.h"
#include "gpu/soft/ops/address.h"
#include "gpu/soft/run/grid.h"

namespace vgpud::soft {
namespace {

using VGPUD_ISA::LaneAddress;

template <class F>
bool EachLane(const ExternCall& call, F f) {
  for (uint32_t m = call.warp.mask; m != 0; m &= m - 1)
    if (!f(static_cast<uint32_t>(std::countr_zero(m)))) return false;
  return true;
}

bool Unreadable(const ExternCall& call, uint32_t lane, std::string_view who, uint64_t address) {
  RaiseFault(call.warp, call.inst, CuStatus::kIllegalAddress, lane,
             fmt::format("{} was given {:#x}, from which not all can be read", who, address));
  return false;
}

class LaneSource final : public PrintSource {
 public:
  LaneSource(const Warp& warp, uint32_t lane, uint64_t arguments) : warp_(warp), lane_(lane), arguments_(arguments) {}
  std::optional<uint64_t> Argument(uint64_t offset, uint32_t bytes) override {
    const std::byte* at = LaneAddress(warp_, MemSpace::kGeneric, lane_, arguments_ + offset, bytes, false);
    if (at == nullptr) return std::nullopt;
    uint64_t value = 0;
    std::memcpy(&value, at, bytes);
    return value;
  }
  std::optional<std::string> Text(uint64_t address, size_t most) override {
    std::string text;
    while (text.size() < most) {
      const std::byte* at = LaneAddress(warp_, MemSpace::kGeneric, lane_, address + text.size(), 1, false);
      if (at == nullptr) return std::nullopt;
      if (*at == std::byte{0}) break;
      text += static_cast<char>(*at);
    }
    return text;
  }

 private:
  const Warp& warp_;
  uint32_t lane_;
  uint64_t arguments_;
};

// int vprintf(format, arguments)
bool Vprintf(const ExternCall& call) {
  return EachLane(call, [&](uint32_t lane) {
    const uint64_t format_at = call.Argument(0, lane);
    if (format_at == 0) {
      call.Return(lane, static_cast<uint32_t>(-1));
      return true;
    }
    LaneSource source(call.warp, lane, call.Argument(1, lane));
    const auto format = source.Text(format_at, kMostText);
    auto printed = format ? FormatPrint(*format, source) : std::nullopt;
    if (!printed) return Unreadable(call, lane, "printf", format ? call.Argument(1, lane) : format_at);
    call.warp.grid->device().print.Append(false, std::move(printed->text));
    call.Return(lane, static_cast<uint32_t>(printed->arguments));
    return true;
  });
}

// void __assertfail(expression, file, line, function, character size): each lane says so, then the grid is over.
bool AssertFail(const ExternCall& call) {
  constexpr size_t kMostName = 1024;
  std::string first;
  EachLane(call, [&](uint32_t lane) {
    LaneSource source(call.warp, lane, 0);
    const auto text = [&](size_t index) { return source.Text(call.Argument(index, lane), kMostName).value_or("?"); };
    const Grid& grid = *call.warp.grid;
    std::string line =
        fmt::format("{}:{}: {}: {} Assertion `{}` failed.", text(1), static_cast<uint32_t>(call.Argument(2, lane)),
                    text(3), grid.DescribeThread(call.warp, lane), text(0));
    if (first.empty()) first = line;
    call.warp.grid->device().print.Append(true, line + "\n");
    return true;
  });
  RaiseFault(call.warp, call.inst, CuStatus::kAssert, static_cast<uint32_t>(std::countr_zero(call.warp.mask)), first);
  return false;
}

uint64_t Allocate(const ExternCall& call, uint64_t bytes, uint64_t alignment) {
  return call.warp.grid->device().heap.Allocate(bytes, alignment);
}

// void* malloc(bytes)
bool Malloc(const ExternCall& call) {
  return EachLane(call, [&](uint32_t lane) {
    call.Return(lane, Allocate(call, call.Argument(0, lane), DeviceHeap::kAlignment));
    return true;
  });
}

// void* __nv_aligned_device_malloc(bytes, alignment)
bool AlignedMalloc(const ExternCall& call) {
  return EachLane(call, [&](uint32_t lane) {
    const uint64_t alignment = call.Argument(1, lane);
    call.Return(lane, std::has_single_bit(alignment) ? Allocate(call, call.Argument(0, lane), alignment) : 0);
    return true;
  });
}

// void free(address)
bool Free(const ExternCall& call) {
  return EachLane(call, [&](uint32_t lane) {
    const uint64_t address = call.Argument(0, lane);
    if (address == 0 || call.warp.grid->device().heap.Free(address)) return true;
    RaiseFault(call.warp, call.inst, CuStatus::kIllegalAddress, lane,
               fmt::format("free of {:#x}, which malloc did not return or which was freed already", address));
    return false;
  });
}

// void cudaGraphSetConditional(handle, value): a handle is the address of the word that the graph looks at.
bool SetConditional(const ExternCall& call) {
  return EachLane(call, [&](uint32_t lane) { return call.Store(lane, 0, call.Argument(1, lane), sizeof(uint32_t)); });
}

using Uses = ExternFunction::Uses;
constexpr ExternFunction kFunctions[] = {
    {"vprintf", 2, Uses::kNothing, Vprintf, ExternFunction::Lanes::kOne},
    {"__assertfail", 5, Uses::kNothing, AssertFail},
    {"malloc", 1, Uses::kHeap, Malloc},
    {"__nv_aligned_device_malloc", 2, Uses::kHeap, AlignedMalloc},
    {"free", 1, Uses::kHeap, Free},
    {"cudaGraphSetConditional", 2, Uses::kNothing, SetConditional},
};

}  // namespace

std::byte* ExternCall::At(const ptx::Param& param, uint32_t lane) const {
  return warp.stack + warp.frame + caller_.params_at + static_cast<size_t>(lane) * caller_.block_bytes + param.offset;
}

uint64_t ExternCall::Argument(size_t index, uint32_t lane) const {
  if (index >= site_.arguments.size()) return 0;
  const ptx::Param& param = site_.arguments[index];
  uint64_t value = 0;
  std::memcpy(&value, At(param, lane), std::min<size_t>(param.bytes, sizeof value));
  return value;
}

void ExternCall::Read(size_t index, uint32_t lane, std::span<std::byte> to) const {
  if (index >= site_.arguments.size()) return;
  const ptx::Param& param = site_.arguments[index];
  std::memcpy(to.data(), At(param, lane), std::min<size_t>(param.bytes, to.size()));
}

bool ExternCall::Store(uint32_t lane, size_t index, uint64_t value, uint32_t bytes) const {
  const uint64_t address = Argument(index, lane);
  std::byte* at = LaneAddress(warp, MemSpace::kGeneric, lane, address, bytes, true);
  if (at != nullptr && address % bytes == 0) {
    std::memcpy(at, &value, bytes);
    return true;
  }
  RaiseAddressFault(warp, inst, CuStatus::kIllegalAddress, lane, address, bytes, "write");
  return false;
}

void ExternCall::Return(uint32_t lane, uint64_t value) const {
  if (site_.results.empty()) return;
  const ptx::Param& param = site_.results[0];
  std::memcpy(At(param, lane), &value, std::min<size_t>(param.bytes, sizeof value));
}

std::array<std::span<const ExternFunction>, 2> AllExternFunctions() { return {kFunctions, LaunchFunctions()}; }

const ExternFunction* FindExternFunction(std::string_view name) {
  for (const auto table : AllExternFunctions())
    for (const ExternFunction& f : table)
      if (f.name == name) return &f;
  return nullptr;
}

}  // namespace vgpud::soft
