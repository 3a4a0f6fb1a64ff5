// Functions that the device runtime provides: a kernel declares them `.extern` and calls them.
#pragma once

#include <string_view>

#include "gpu/soft/program.h"
#include "gpu/soft/warp.h"

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
  void Return(uint32_t lane, uint64_t value) const;

 private:
  std::byte* At(const ptx::Param& param, uint32_t lane) const;
  const CallSite& site_;
  const CodeFunction& caller_;
};

struct ExternFunction {
  std::string_view name;
  size_t arguments;
  bool uses_heap;
  // For the lanes in warp.mask. False: a fault was raised.
  bool (*run)(const ExternCall& call);
};

// nullptr if there is none of that name.
const ExternFunction* FindExternFunction(std::string_view name);

}  // namespace vgpud::soft
