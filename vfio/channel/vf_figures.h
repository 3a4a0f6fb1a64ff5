// SPDX-License-Identifier: Apache-2.0
// What vgpud has told us about this VF and what guests are shown.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/slice_page.h"
#include "guest-driver-shim/include/uapi/vgpu_abi.h"

namespace vgpud::vfio {

struct VfFigures {
  std::string name;
  std::array<uint8_t, 16> uuid{};
  uint64_t vram_bytes = 0;
  uint32_t slice_us = 0;
  uint32_t weight = 0;
  uint32_t vf_state = VGPU_VF_READY;
  uint32_t gpu_percent = 0;           // part of the last second in which it had the GPU, as vgpud has said ...
  uint64_t told_ns = 0;               // ... at this time (CLOCK_MONOTONIC)
  const GrantPage* grants = nullptr;  // vgpud's; says when it has gone; null: it stays
  std::string gpu_name;               // model; empty: vgpud has not said
  uint32_t capability = 0;            // times 10; 0: the same
  uint32_t cuda_version = 0;          // of the GPU's own driver; 0: it has none
  bool client_memory = false;         // clients of the channel socket may bring memory of their own
};

}  // namespace vgpud::vfio
