// SPDX-License-Identifier: Apache-2.0
#include "tests/first_contact/kernel_side/engine/engine.h"

#include <algorithm>
#include <span>

#include "base/clock.h"
#include "tests/first_contact/kernel_side/abi/methods.h"

namespace vgpud::kernel_side {

Outcome Engine::Take(uint32_t method, uint32_t value) {
  registers_[method] = value;
  return Do(method, value);
}

uint32_t Engine::Register(uint32_t method) const {
  const auto it = registers_.find(method);
  return it == registers_.end() ? 0 : it->second;
}

uint64_t Engine::WideRegister(uint32_t high, uint32_t low) const { return Wide(Register(high), Register(low)); }

Outcome Engine::Release(uint64_t at, uint64_t payload, bool with_time, bool wide) {
  const auto write = [&](uint64_t where, const auto& value) {
    return space().Write(where, std::as_bytes(std::span{&value, 1}));
  };
  // The time first: a program reads it once it has seen the payload.
  if (with_time && !write(at + 8, MonotonicNs())) return Outcome::kFault;
  const bool written = wide ? write(at, payload) : write(at, static_cast<uint32_t>(payload));
  return written ? Outcome::kDone : Outcome::kFault;
}

Outcome Engine::Reduce(uint64_t at, uint32_t reduction, uint32_t operand, bool is_signed) {
  uint32_t had = 0;
  const auto bytes = std::as_writable_bytes(std::span{&had, 1});
  if (!space().Read(at, bytes)) return Outcome::kFault;
  const bool less = is_signed ? static_cast<int32_t>(operand) < static_cast<int32_t>(had) : operand < had;
  uint32_t result = had;
  switch (reduction) {
    case host::kMin:
      result = less ? operand : had;
      break;
    case host::kMax:
      result = less ? had : operand;
      break;
    case host::kXor:
      result = had ^ operand;
      break;
    case host::kAnd:
      result = had & operand;
      break;
    case host::kOr:
      result = had | operand;
      break;
    case host::kAdd:
      result = had + operand;
      break;
    case host::kIncrement:
      result = had >= operand ? 0 : had + 1;
      break;
    case host::kDecrement:
      result = had == 0 || had > operand ? operand : had - 1;
      break;
    default:
      return Outcome::kFault;
  }
  had = result;
  return space().Write(at, bytes) ? Outcome::kDone : Outcome::kFault;
}

}  // namespace vgpud::kernel_side
