// SPDX-License-Identifier: Apache-2.0
// Which GPU is shared, as --gpu and its companions say: what executors have to be told of it.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace vgpud::daemon {

struct GpuChoice {
  std::string gpu = "soft";         // "soft", "cuda", or "cuda:" and a PCI address or the name of a MIG instance
  std::string cuda_library;         // file; empty: the system's libcuda.so.1
  std::string cuda_channel;         // channel socket of another vgpud's VF, for a library that is our own; empty: none
  bool cuda_oversubscribe = false;  // VFs are promised more memory than the card has (docs/oversubscription.md)

  // Of a driver that has been asked: the address, or instance, that `gpu` turned out to be, and the CUDA version that
  // it brings, as cuDriverGetVersion counts.
  std::string found;
  uint32_t cuda_version = 0;

  std::string cuda_rung = "safepoints";  // the best way to take kernels away that is used (docs/cuda-backend.md)

  // "soft" or "cuda".
  std::string kind() const { return gpu.substr(0, gpu.find(':')); }
  // As it was said, else as it was found. Empty: the first one.
  std::string address() const;
  bool is_cuda() const { return kind() == "cuda"; }

  // Of vgpud-exec. `channel`: the number that ConnectChannel's connection has there.
  std::vector<std::string> ExecutorArguments(int channel) const;
  // A new connection to cuda_channel, one for each executor; an invalid one when there is none to be had.
  [[nodiscard]] Result<UniqueFd> ConnectChannel() const;
};

// Empty: it may be the value of --gpu. Else why not.
std::string WhyNotGpu(const std::string& gpu);

}  // namespace vgpud::daemon
