// SPDX-License-Identifier: Apache-2.0
// The word by which the kernels of a context hear that their turn is over (docs/preemption-rewrite.md), and the memory
// in which they say how far they are. Guests are not told where either lies; a kernel that finds and overwrites them
// harms its own program only.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "gpu/cuda/lanes.h"

namespace vgpud::driver {

// The GPU thread.
class Stops {
 public:
  explicit Stops(const Card& card) : card_(card) {}
  ~Stops();
  Stops(const Stops&) = delete;
  Stops& operator=(const Stops&) = delete;

  // Makes the word when it is first called. What it could not do then it can't do later.
  GpuResult<void> Prepare();
  // Where kernels find the word.
  DevicePtr word() const { return word_; }

  // A turn begins that hears of the next Raise. What the word is until then.
  uint32_t Begin();
  // Was a turn that began when the word was `expected` told to end?
  bool told_since(uint32_t expected) const { return value_ != expected; }
  // All turns that run are told to end. Nothing if there are none that have not been told.
  void Raise();

  // Device memory for the progress of one kernel: kControlBytes. Given back when no turn of the kernel runs.
  static constexpr uint64_t kControlBytes = 64;
  GpuResult<DevicePtr> TakeControl();
  void GiveBackControl(DevicePtr control) { controls_.push_back(control); }

 private:
  GpuResult<void> MapWord();
  GpuResult<void> MakeDeviceWord();

  const Card& card_;
  bool tried_ = false;
  std::string why_not_;
  void* host_ = nullptr;  // the word, where the processor has it; nullptr: it is written by a copy
  DevicePtr word_ = 0;
  Stream stream_ = nullptr;  // of these copies
  uint32_t value_ = 0;
  bool heard_ = true;  // nobody waits for the next Raise
  std::vector<DevicePtr> blocks_, controls_;
};

}  // namespace vgpud::driver
