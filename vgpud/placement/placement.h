// SPDX-License-Identifier: Apache-2.0
// Which GPU a new VF goes to. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vgpud::daemon {

enum class Placement : uint8_t {
  kSpread,        // where the fewest VFs are
  kPack,          // where the least is left, so that other GPUs stay empty
  kMostFreeVram,  // where the most memory is left
  kNuma,          // at the NUMA node of the virtual machine, there where the most memory is left
};
inline constexpr Placement kDefaultPlacement = Placement::kSpread;
std::string_view NameOf(Placement placement);
std::vector<std::string> PlacementNames();
// The error names what there is that is near.
[[nodiscard]] Result<Placement> FindPlacement(std::string_view name);

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
