// SPDX-License-Identifier: Apache-2.0
// The world switch of one GPU: the states, the events, and one table with every transition that exists.
//
//   kOff --kNext--> kLoad --kLoaded--> kRun --kSliceEnd|kYield|kRevoke--> kDrain --kDrained--> kSave
//    ^               ^                                                                          |
//    |               +------------------------------ kNext --------------------------------------+
//    +---------------------------------------------- kNobody -----------------------------------+
//
//   kRun --kSoftEnd--> kFinish --kFinished|kAckTimeout|kRevoke--> kDrain        instead of kSliceEnd, without force
//   kLoad, kDrain, kSave --kAckTimeout--> kFlr --kFlrDone--> kSave        the VF lives on without what hung
//                                         kFlr --kHangLimit|kAckTimeout--> kParked --kNext|kNobody--> kLoad | kOff
//
// An event that has no row in the present state is kImpossible: the VF on the GPU is reset, nothing is guessed.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "base/clock.h"

namespace vgpud {

enum class WsState : uint8_t { kOff, kLoad, kRun, kFinish, kDrain, kSave, kFlr, kParked };
inline constexpr size_t kWsStates = 8;

enum class WsEvent : uint8_t {
  kNext,        // the old world is put away and a next one is chosen
  kNobody,      // the old world is put away and nobody wants the GPU
  kLoaded,      // the chosen world may be let run
  kSliceEnd,    // its time is over
  kSoftEnd,     // its time is over, its running kernel may finish
  kFinished,    // it has
  kYield,       // it has no work left
  kRevoke,      // the operator wants the GPU back (VF removed, shutdown)
  kDrained,     // nothing of it runs any more
  kAckTimeout,  // the state's deadline passed
  kFlrDone,     // what hung is gone
  kHangLimit,   // what hung is gone, once too often
  kImpossible,
};

// Deadline for leaving state `to`; 0 = none.
struct WsRow {
  WsState from;
  WsEvent on;
  WsState to;
  Ns deadline;
};

inline constexpr Ns kWsDrainDeadline{10'000'000};  // default of preempt_timeout
inline constexpr Ns kWsFinishDeadline{10'000'000'000};
inline constexpr Ns kWsSaveDeadline{5'000'000};
inline constexpr Ns kWsLoadDeadline{5'000'000};
inline constexpr Ns kWsFlrDeadline{1'000'000'000};

inline constexpr WsRow kWorldSwitch[] = {
    {WsState::kOff, WsEvent::kNext, WsState::kLoad, kWsLoadDeadline},
    {WsState::kLoad, WsEvent::kLoaded, WsState::kRun, Ns{0}},
    {WsState::kRun, WsEvent::kSliceEnd, WsState::kDrain, kWsDrainDeadline},
    {WsState::kRun, WsEvent::kSoftEnd, WsState::kFinish, kWsFinishDeadline},
    {WsState::kFinish, WsEvent::kFinished, WsState::kDrain, kWsDrainDeadline},
    {WsState::kFinish, WsEvent::kAckTimeout, WsState::kDrain, kWsDrainDeadline},
    {WsState::kFinish, WsEvent::kRevoke, WsState::kDrain, kWsDrainDeadline},
    {WsState::kRun, WsEvent::kYield, WsState::kDrain, kWsDrainDeadline},
    {WsState::kRun, WsEvent::kRevoke, WsState::kDrain, kWsDrainDeadline},
    {WsState::kDrain, WsEvent::kDrained, WsState::kSave, kWsSaveDeadline},
    {WsState::kSave, WsEvent::kNext, WsState::kLoad, kWsLoadDeadline},
    {WsState::kSave, WsEvent::kNobody, WsState::kOff, Ns{0}},
    {WsState::kLoad, WsEvent::kAckTimeout, WsState::kFlr, kWsFlrDeadline},
    {WsState::kDrain, WsEvent::kAckTimeout, WsState::kFlr, kWsFlrDeadline},
    {WsState::kSave, WsEvent::kAckTimeout, WsState::kFlr, kWsFlrDeadline},
    {WsState::kFlr, WsEvent::kFlrDone, WsState::kSave, kWsSaveDeadline},
    {WsState::kFlr, WsEvent::kHangLimit, WsState::kParked, Ns{0}},
    {WsState::kFlr, WsEvent::kAckTimeout, WsState::kParked, Ns{0}},
    {WsState::kParked, WsEvent::kNext, WsState::kLoad, kWsLoadDeadline},
    {WsState::kParked, WsEvent::kNobody, WsState::kOff, Ns{0}},
    {WsState::kOff, WsEvent::kImpossible, WsState::kOff, Ns{0}},
    {WsState::kLoad, WsEvent::kImpossible, WsState::kFlr, kWsFlrDeadline},
    {WsState::kRun, WsEvent::kImpossible, WsState::kFlr, kWsFlrDeadline},
    {WsState::kFinish, WsEvent::kImpossible, WsState::kFlr, kWsFlrDeadline},
    {WsState::kDrain, WsEvent::kImpossible, WsState::kFlr, kWsFlrDeadline},
    {WsState::kSave, WsEvent::kImpossible, WsState::kFlr, kWsFlrDeadline},
    {WsState::kFlr, WsEvent::kImpossible, WsState::kParked, Ns{0}},
    {WsState::kParked, WsEvent::kImpossible, WsState::kParked, Ns{0}},
};

inline constexpr size_t kNoWsRow = std::size(kWorldSwitch);

// Where kWorldSwitch has (`from`, `on`); kNoWsRow if the event is impossible there. (An index, because g++ 12 with
// -fsanitize=undefined takes no comparison of such a pointer for a constant.)
constexpr size_t FindWsRow(WsState from, WsEvent on) {
  for (size_t i = 0; i < kNoWsRow; ++i)
    if (kWorldSwitch[i].from == from && kWorldSwitch[i].on == on) return i;
  return kNoWsRow;
}
constexpr bool HasWsRow(WsState from, WsEvent on) { return FindWsRow(from, on) != kNoWsRow; }

std::string_view WsStateName(WsState state);
std::string_view WsEventName(WsEvent event);

namespace ws_proof {

constexpr bool EveryRowIsUnique() {
  for (size_t i = 0; i < kNoWsRow; ++i)
    if (FindWsRow(kWorldSwitch[i].from, kWorldSwitch[i].on) != i) return false;
  return true;
}
constexpr bool EveryDeadlineHasATimeoutRow() {
  for (const WsRow& row : kWorldSwitch)
    if (row.deadline != Ns{0} && !HasWsRow(row.to, WsEvent::kAckTimeout)) return false;
  return true;
}
constexpr bool EveryStateSurvivesTheImpossible() {
  for (size_t s = 0; s < kWsStates; ++s)
    if (!HasWsRow(static_cast<WsState>(s), WsEvent::kImpossible)) return false;
  return true;
}
constexpr bool Reaches(WsState from, WsState to) {
  std::array<bool, kWsStates> seen{};
  seen[static_cast<size_t>(from)] = true;
  for (size_t pass = 0; pass < kWsStates; ++pass)
    for (const WsRow& row : kWorldSwitch)
      if (seen[static_cast<size_t>(row.from)]) seen[static_cast<size_t>(row.to)] = true;
  return seen[static_cast<size_t>(to)];
}
constexpr bool EveryStateReachesEveryState() {
  for (size_t from = 0; from < kWsStates; ++from)
    for (size_t to = 0; to < kWsStates; ++to)
      if (!Reaches(static_cast<WsState>(from), static_cast<WsState>(to))) return false;
  return true;
}
// A world runs only after the one before it was drained (or what hung in it was killed) and put away.
constexpr bool OnlyLoadLeadsToRun() {
  for (const WsRow& row : kWorldSwitch) {
    if (row.to == WsState::kRun && row.from != WsState::kLoad) return false;
    const bool off_the_gpu = row.to == WsState::kDrain || row.to == WsState::kFlr;
    if (row.from == WsState::kRun && !off_the_gpu && row.to != WsState::kFinish) return false;
    if (row.from == WsState::kFinish && !off_the_gpu) return false;
  }
  return true;
}

static_assert(EveryRowIsUnique());
static_assert(EveryDeadlineHasATimeoutRow());
static_assert(EveryStateSurvivesTheImpossible());
static_assert(EveryStateReachesEveryState());
static_assert(OnlyLoadLeadsToRun());
static_assert(!HasWsRow(WsState::kRun, WsEvent::kNext));
static_assert(!HasWsRow(WsState::kDrain, WsEvent::kNext));

}  // namespace ws_proof
}  // namespace vgpud
