// SPDX-License-Identifier: Apache-2.0
// Which GPU a new VF goes to. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "vgpud/model/placement.h"

namespace vgpud::daemon {

// A GPU as a new VF finds it.
struct GpuRoom {
  std::string name;
  uint64_t vram_bytes = 0;      // in all; 0: VFs may have what they want
  uint64_t promised_bytes = 0;  // to the VFs that are there
  uint32_t vfs = 0;
  double guaranteed = 0;    // part of the GPU that is promised to them
  std::optional<int> node;  // of NUMA, where it is known
  std::string refusal;      // why it does not take the VF; empty: it does

  bool takes() const { return refusal.empty(); }
  uint64_t free_bytes() const { return vram_bytes > promised_bytes ? vram_bytes - promised_bytes : 0; }
};
// "12 GiB of 16 GiB free, 3 VFs, 25% guaranteed".
std::string Figures(const GpuRoom& room);

struct Placed {
  size_t gpu = 0;   // index into the rooms
  std::string why;  // "most free VRAM (12 GiB of 16 GiB)"
};
// `node`: of the virtual machine, if it is known; kNuma prefers the GPUs of that node and takes another one where none
// of these has room. Of two that are as good the first. The error has the figures and the refusal of each GPU.
[[nodiscard]] Result<Placed> Place(Placement how, std::optional<int> node, std::span<const GpuRoom> rooms);

}  // namespace vgpud::daemon
