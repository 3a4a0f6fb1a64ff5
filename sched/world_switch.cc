// SPDX-License-Identifier: Apache-2.0
#include "sched/world_switch.h"

namespace vgpud {
namespace {

constexpr std::string_view kStateNames[] = {"off", "load", "run", "finish", "drain", "save", "flr", "parked"};
constexpr std::string_view kEventNames[] = {"next",     "nobody",     "loaded",    "slice-end", "soft-end",
                                            "finished", "yield",      "revoke",    "drained",   "ack-timeout",
                                            "flr-done", "hang-limit", "impossible"};
static_assert(std::size(kStateNames) == kWsStates);
static_assert(std::size(kEventNames) == static_cast<size_t>(WsEvent::kImpossible) + 1);

}  // namespace

std::string_view WsStateName(WsState state) { return kStateNames[static_cast<size_t>(state)]; }
std::string_view WsEventName(WsEvent event) { return kEventNames[static_cast<size_t>(event)]; }

}  // namespace vgpud
