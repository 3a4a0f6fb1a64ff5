// SPDX-License-Identifier: Apache-2.0
#include "vgpud/model/placement.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "vgpud/model/nearest.h"

namespace vgpud::daemon {
namespace {

constexpr std::string_view kNames[] = {"spread", "pack", "most-free-vram", "numa"};  // in the order of Placement
static_assert(std::size(kNames) == static_cast<size_t>(Placement::kNuma) + 1);

}  // namespace

std::string_view NameOf(Placement placement) { return kNames[static_cast<size_t>(placement)]; }

std::vector<std::string> PlacementNames() { return {std::begin(kNames), std::end(kNames)}; }

Result<Placement> FindPlacement(std::string_view name) {
  const auto found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found != std::end(kNames)) return static_cast<Placement>(found - std::begin(kNames));
  return Fail(std::errc::invalid_argument,
              fmt::format("there is no placement \"{}\": {}", name, control::DidYouMean(name, PlacementNames())));
}

}  // namespace vgpud::daemon
