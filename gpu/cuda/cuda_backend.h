// SPDX-License-Identifier: Apache-2.0
// The CUDA backend of one process: the card, and what is printed there.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gpu/cuda/card.h"
#include "gpu/cuda/cuda_gpu.h"
#include "gpu/cuda/printed.h"

namespace vgpud::driver {

class CudaBackend {
 public:
  // Before the jail, and before other threads. `channel_fd`: a connection to the channel socket of another vgpud's VF,
  // for a driver that is our own libcuda (docs/cuda-backend.md, "Nested"); -1: none.
  [[nodiscard]] static Result<std::unique_ptr<CudaBackend>> Open(const Card::Choice& choice, int channel_fd);

  // One at a time: a program's context.
  std::unique_ptr<CudaGpu> MakeGpu() const;
  // For a thread of its own: Printed::Drain.
  [[noreturn]] void DrainPrinted() { printed_.Drain(); }
  const Card& card() const { return *card_; }

 private:
  CudaBackend() = default;
  // A context ends before what it prints to.
  mutable Printed printed_;
  std::unique_ptr<Card> card_;
};

// The card's device files on this host (driver/card_files.h).
std::vector<std::string> DeviceFiles(const Card& card);

// What vgpud has to know of the GPU at start, as "key=value" lines (docs/cuda-backend.md, "What vgpud asks").
std::string DescribeCard(const Card& card);

}  // namespace vgpud::driver
