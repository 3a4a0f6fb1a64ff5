// SPDX-License-Identifier: Apache-2.0
// Functions that the device runtime provides: a kernel declares them `.extern` and calls them.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "gpu/soft/code/program.h"
#include "gpu/soft/run/warp.h"

namespace vgpud::soft {

// A call of one, lane by lane: where each argument and the result lie.
class ExternCall {
 public:
  ExternCall(Warp& w, const Inst* i, const CallSite& site, const CodeFunction& caller)
      : warp(w), inst(i), site_(site), caller_(caller) {}
  Warp& warp;
  const Inst* const inst;
  // Zero-extended; 0 if the call passes fewer.
  uint64_t Argument(size_t index, uint32_t lane) const;
  // The argument's bytes as they are (a struct); zeros where the call passes fewer.
  void Read(size_t index, uint32_t lane, std::span<std::byte> to) const;
  void Return(uint32_t lane, uint64_t value) const;
  // Stores `value` where argument `index` points to. False: it cannot be written there, a fault was raised.
  bool Store(uint32_t lane, size_t index, uint64_t value, uint32_t bytes) const;

 private:
  std::byte* At(const ptx::Param& param, uint32_t lane) const;
  const CallSite& site_;
  const CodeFunction& caller_;
};

struct ExternFunction {
  std::string_view name;
  // Beyond what every kernel has.
  enum class Uses : uint8_t { kNothing, kHeap, kLaunches };
  // How many lanes one instruction does. A function whose work the guest's memory or an argument sets does one of them,
  // and that in at most a millisecond; the others come back to the call.
  enum class Lanes : uint8_t { kAll, kOne };
  size_t arguments;
  Uses uses;
  // For the lanes in warp.mask. False: a fault was raised.
  bool (*run)(const ExternCall& call);
  Lanes lanes = Lanes::kAll;
};

// nullptr if there is none of that name.
const ExternFunction* FindExternFunction(std::string_view name);
// All there are.
std::array<std::span<const ExternFunction>, 2> AllExternFunctions();

}  // namespace vgpud::soft
