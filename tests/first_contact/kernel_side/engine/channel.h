// SPDX-License-Identifier: Apache-2.0
// A channel: its program puts pieces of pushbuffers into a FIFO in memory, and it does them in this order.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "tests/first_contact/kernel_side/abi/methods.h"
#include "tests/first_contact/kernel_side/engine/engine.h"
#include "tests/first_contact/kernel_side/memory/address_space.h"

namespace vgpud::kernel_side {

// Why a channel stopped for good, by the numbers of NVIDIA's Xid errors.
enum class Xid : uint32_t { kIllegalMethod = 13, kMmuFault = 31, kStoppedByProgram = 43, kOffTheBus = 79 };

class Channel : public Surroundings {
 public:
  struct Setup {
    std::shared_ptr<AddressSpace> space;
    std::shared_ptr<Memory> userd;
    uint64_t userd_offset = 0;
    uint64_t fifo = 0;  // an address in `space`
    uint32_t entries = 0;
    std::shared_ptr<Memory> notifier;  // where the program reads the error; none: it does not
    std::function<void(bool of_work)> interrupt;
    std::function<void()> launched;
    std::function<bool()> holds_kernels;
  };
  explicit Channel(Setup setup);

  // Does what there is to do. False: there was nothing, or it waits.
  bool Run();
  void Schedule(bool enabled) { scheduled_ = enabled; }
  void Enable(bool enabled) { enabled_ = enabled; }
  // It does nothing any more, and its program hears why.
  void Fail(Xid why);
  std::optional<Xid> failure() const { return failure_; }

  AddressSpace& space() override { return *setup_.space; }
  void Interrupt() override { setup_.interrupt(true); }
  void KernelLaunched() override { setup_.launched(); }
  bool HoldsKernels() override { return setup_.holds_kernels(); }

 private:
  struct Method {
    uint32_t subchannel, method, value;
  };

  bool FetchNext();
  bool Decode(const std::vector<uint32_t>& words);
  Outcome Do(const Method& method);

  const Setup setup_;
  uint32_t get_ = 0;
  bool fetched_ = false;  // the entry at get_
  bool scheduled_ = false, enabled_ = true;
  std::deque<Method> methods_;  // of it that are still to be done
  std::unique_ptr<Engine> host_;
  std::array<std::unique_ptr<Engine>, kSubchannels> engines_;
  std::optional<Xid> failure_;
};

}  // namespace vgpud::kernel_side
