// SPDX-License-Identifier: Apache-2.0
#include "vgpud/placement/placement.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/units.h"

namespace vgpud::daemon {
namespace {

// What is compared first, second and third; the least wins.
using Key = std::array<uint64_t, 3>;

// The more is left, the less it is; where all can have what they want it is what is promised that counts.
uint64_t Taken(const GpuRoom& room) {
  return room.vram_bytes == 0 ? room.promised_bytes : ~uint64_t{0} - room.free_bytes();
}

uint64_t Elsewhere(const GpuRoom& room, std::optional<int> node) { return node && room.node != node ? 1 : 0; }

struct Row {
  Placement placement;
  Key (*key)(const GpuRoom&, std::optional<int> node);
  std::string (*why)(const GpuRoom&, std::optional<int> node);
};

std::string Vram(const GpuRoom& room) {
  return room.vram_bytes == 0 ? fmt::format("{} promised, no limit", FormatBytes(room.promised_bytes))
                              : fmt::format("{} of {}", FormatBytes(room.free_bytes()), FormatBytes(room.vram_bytes));
}

std::string MostFree(const GpuRoom& room, std::optional<int>) { return fmt::format("most free VRAM ({})", Vram(room)); }

std::string AtNode(const GpuRoom& room, std::optional<int> node) {
  if (!node) return MostFree(room, node);
  if (room.node == node) return fmt::format("at NUMA node {}, {}", *node, MostFree(room, node));
  const std::string where = room.node ? fmt::format("at node {}", *room.node) : std::string("at no known node");
  return fmt::format("no GPU at NUMA node {} has room, this one is {}: {}", *node, where, MostFree(room, node));
}

constexpr Row kRows[] = {
    {Placement::kSpread,
     [](const GpuRoom& room, std::optional<int>) {
       return Key{room.vfs, Taken(room), 0};
     },
     [](const GpuRoom& room, std::optional<int>) { return fmt::format("fewest VFs ({})", room.vfs); }},
    {Placement::kPack,
     [](const GpuRoom& room, std::optional<int>) {
       return Key{room.vfs == 0 ? uint64_t{1} : 0, ~Taken(room), ~uint64_t{room.vfs}};
     },
     [](const GpuRoom& room, std::optional<int>) {
       return fmt::format("the fullest with room ({} VFs, VRAM {})", room.vfs, Vram(room));
     }},
    {Placement::kMostFreeVram,
     [](const GpuRoom& room, std::optional<int>) {
       return Key{Taken(room), room.vfs, 0};
     },
     &MostFree},
    {Placement::kNuma,
     [](const GpuRoom& room, std::optional<int> node) {
       return Key{Elsewhere(room, node), Taken(room), room.vfs};
     },
     &AtNode},
};

const Row& RowOf(Placement placement) {
  return *std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& row) { return row.placement == placement; });
}

}  // namespace

std::string Figures(const GpuRoom& room) {
  const std::string vram = room.vram_bytes == 0 ? Vram(room) : Vram(room) + " free";
  return fmt::format("{}, {} VFs, {:.0f}% guaranteed", vram, room.vfs, room.guaranteed * 100);
}

Result<Placed> Place(Placement how, std::optional<int> node, std::span<const GpuRoom> rooms) {
  const Row& row = RowOf(how);
  std::optional<size_t> best;
  std::string refusals;
  for (size_t i = 0; i < rooms.size(); ++i) {
    if (!rooms[i].takes())
      refusals += fmt::format("{}{} ({}): {}", refusals.empty() ? "" : "; ", rooms[i].name, Figures(rooms[i]),
                              rooms[i].refusal);
    else if (!best || row.key(rooms[i], node) < row.key(rooms[*best], node))
      best = i;
  }
  if (!best) return Fail(std::errc::no_space_on_device, fmt::format("no GPU has room: {}", refusals));
  return Placed{*best, rooms.size() == 1 ? "the only GPU" : row.why(rooms[*best], node)};
}

}  // namespace vgpud::daemon
