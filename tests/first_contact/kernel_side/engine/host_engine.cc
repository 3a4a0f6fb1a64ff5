// SPDX-License-Identifier: Apache-2.0
// Semaphores and interrupts: what every channel can do without an engine.
#include <span>

#include "tests/first_contact/kernel_side/abi/methods.h"
#include "tests/first_contact/kernel_side/engine/engine.h"

namespace vgpud::kernel_side {
namespace {

class HostEngine : public Engine {
 public:
  using Engine::Engine;

 protected:
  Outcome Do(uint32_t method, uint32_t value) override {
    if (method == host::kNonStallInterrupt) surroundings().Interrupt();
    if (method == host::kSemExecute) return Execute(value);
    if (method == host::kSemaphoreD) return ExecuteOld(value);
    return Outcome::kDone;
  }

 private:
  Outcome Execute(uint32_t value) {
    const uint64_t at = WideRegister(host::kSemAddressHigh, host::kSemAddressLow);
    const uint64_t payload = WideRegister(host::kSemPayloadHigh, host::kSemPayloadLow);
    const uint32_t operation = Bits(value, 2, 0);
    const bool wide = Bits(value, 24, 24) != 0;
    if (operation == host::kRelease) return Release(at, payload, Bits(value, 25, 25) != 0, wide);
    if (operation == host::kReduce)
      return Reduce(at, Bits(value, 30, 27), static_cast<uint32_t>(payload), Bits(value, 31, 31) == 0);
    return Acquire(at, payload, operation, wide);
  }

  Outcome ExecuteOld(uint32_t value) {
    const uint64_t at = WideRegister(host::kSemaphoreA, host::kSemaphoreB);
    const uint32_t payload = Register(host::kSemaphoreC);
    switch (Bits(value, 4, 0)) {
      case 1:
        return Acquire(at, payload, host::kAcquire, false);
      case 2:
        return Release(at, payload, Bits(value, 24, 24) == 0);
      case 4:
        return Acquire(at, payload, host::kAcquireCircular, false);
      case 8:
        return Acquire(at, payload, host::kAcquireAnd, false);
      default:
        return Reduce(at, Bits(value, 30, 27), payload, Bits(value, 31, 31) == 0);
    }
  }

  Outcome Acquire(uint64_t at, uint64_t payload, uint32_t operation, bool wide) {
    uint64_t has = 0;
    const auto bytes = std::as_writable_bytes(std::span{&has, 1});
    if (!space().Read(at, bytes.first(wide ? 8 : 4))) return Outcome::kFault;
    const uint64_t mask = wide ? ~uint64_t{0} : 0xffff'ffff;
    const uint64_t ahead = (has - payload) & mask;
    bool there = false;
    switch (operation) {
      case host::kAcquire:
        there = ahead == 0;
        break;
      case host::kAcquireStrict:
        there = has >= (payload & mask);
        break;
      case host::kAcquireCircular:
        there = ahead <= mask >> 1;
        break;
      case host::kAcquireAnd:
        there = (has & payload) != 0;
        break;
      default:
        there = ((~has | payload) & mask) != mask;
    }
    return there ? Outcome::kDone : Outcome::kWait;
  }
};

}  // namespace

std::unique_ptr<Engine> MakeHostEngine(Surroundings& surroundings) {
  return std::make_unique<HostEngine>(surroundings);
}

}  // namespace vgpud::kernel_side
