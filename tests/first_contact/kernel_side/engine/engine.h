// SPDX-License-Identifier: Apache-2.0
// What does the methods of a channel: the host engine, a copy engine, compute.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "tests/first_contact/kernel_side/memory/address_space.h"

namespace vgpud::kernel_side {

enum class Outcome {
  kDone,
  kWait,   // the same method again, later
  kFault,  // an address where nothing is mapped
};

// Where a channel works, and whom it tells.
class Surroundings {
 public:
  virtual ~Surroundings() = default;
  virtual AddressSpace& space() = 0;
  // Programs that wait for an interrupt look again.
  virtual void Interrupt() = 0;
  virtual void KernelLaunched() = 0;
  // True while a test wants launched kernels to run on without an end.
  virtual bool HoldsKernels() = 0;
};

class Engine {
 public:
  explicit Engine(Surroundings& surroundings) : surroundings_(surroundings) {}
  virtual ~Engine() = default;
  Engine(const Engine&) = delete;

  // Takes `value` for a method's register and does what is done then.
  Outcome Take(uint32_t method, uint32_t value);

 protected:
  virtual Outcome Do(uint32_t method, uint32_t value) = 0;

  uint32_t Register(uint32_t method) const;
  uint64_t WideRegister(uint32_t high, uint32_t low) const;
  Surroundings& surroundings() const { return surroundings_; }
  AddressSpace& space() const { return surroundings_.space(); }
  // Writes a semaphore of one word, or of four: the payload and the time.
  Outcome Release(uint64_t at, uint64_t payload, bool with_time, bool wide = false);
  // *at = what the reduction makes of it and `operand`.
  Outcome Reduce(uint64_t at, uint32_t reduction, uint32_t operand, bool is_signed);

 private:
  Surroundings& surroundings_;
  std::map<uint32_t, uint32_t> registers_;
};

std::unique_ptr<Engine> MakeHostEngine(Surroundings& surroundings);
// nullptr: no engine of ours has this class.
std::unique_ptr<Engine> MakeEngine(uint32_t object_class, Surroundings& surroundings);

}  // namespace vgpud::kernel_side
