// SPDX-License-Identifier: Apache-2.0
#include "sched/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "sched/knobs.h"
#include "sched/relaxed.h"
#include "sched/reserve.h"
#include "sched/strict.h"
#include "sched/wheel.h"

namespace vgpud {
namespace {

constexpr uint64_t kSecondUs = 1'000'000;

constexpr KnobRow kKnobRows[] = {
    {Knob::kWeight, "weight", true, 1, 10'000, false, KnobUnit::kNumber, "share relative to the others, usually 100"},
    {Knob::kSlice, "slice_us", true, 100, kSecondUs, false, KnobUnit::kMicroseconds,
     "fixed length of its turn, whatever its weight; default: by weight"},
    {Knob::kPriority, "priority", true, 0, kPriorities - 1, false, KnobUnit::kNumber,
     "class: a higher one goes first, lower ones keep their floor; usually 1"},
    {Knob::kGroup, "group", true, 0, kMaxGroups - 1, false, KnobUnit::kNumber,
     "tenant that it belongs to, by number; default: none"},
    {Knob::kGuarantee, "guarantee", true, 1'000, kWhole, true, KnobUnit::kPart,
     "part of the GPU that it gets when it has work"},
    {Knob::kLimit, "limit", true, 1'000, kWhole, false, KnobUnit::kPart, "part of the GPU that it never exceeds"},
    {Knob::kBurst, "burst_us", true, 0, kSecondUs, false, KnobUnit::kMicroseconds,
     "how much more than one slice it may save up under its limit"},
    {Knob::kWakeFirst, "wake_first", true, 0, 1, false, KnobUnit::kNumber,
     "yes (1): has its slice at the next turn boundary when it wakes up, and so much less at its place"},
    {Knob::kBaseSlice, "base_slice_us", false, 100, kSecondUs, false, KnobUnit::kMicroseconds,
     "slice of a VF of weight 100"},
    {Knob::kMaxWait, "max_wait_us", false, 1'000, 10 * kSecondUs, true, KnobUnit::kMicroseconds,
     "goal for the longest wait, which then sets the base slice; 0: none"},
    {Knob::kMinSlice, "min_slice_us", false, 100, kSecondUs, false, KnobUnit::kMicroseconds,
     "shortest base slice that a goal for the wait may lead to"},
    {Knob::kMaxSlice, "max_slice_us", false, 100, kSecondUs, false, KnobUnit::kMicroseconds,
     "longest base slice that a goal for the wait may lead to"},
    {Knob::kAveragingFactor, "averaging_factor", false, 1, 60, false, KnobUnit::kNumber,
     "a turn repays debt / factor; 1 repays at once"},
    {Knob::kFloorPercent, "floor_percent", false, 1, 25, false, KnobUnit::kPercent,
     "what each lower priority class gets at least"},
    {Knob::kIdleGrace, "idle_grace_us", false, 0, 10'000, false, KnobUnit::kMicroseconds,
     "idle yield: how long a VF without work keeps its turn in any case"},
    {Knob::kAnticipatePercent, "anticipate_percent", false, 0, 100, false, KnobUnit::kPercent,
     "idle yield: part of its turns for which it may be waited for longer, if its program came back soon; 0: never"},
    {Knob::kAnticipate, "anticipate_us", false, 10, 10'000, false, KnobUnit::kMicroseconds,
     "idle yield: the longest such wait"},
    {Knob::kGroupWeight, "group_weight", false, 1, 10'000, false, KnobUnit::kNumber,
     "weight of a group against other groups and VFs without one"},
};
static_assert(std::size(kKnobRows) == kKnobs);
static_assert([] {
  for (size_t i = 0; i < kKnobs; ++i)
    if (kKnobRows[i].knob != static_cast<Knob>(i) || kKnobRows[i].per_vf != (i < static_cast<size_t>(Knob::kBaseSlice)))
      return false;
  return true;
}());

constexpr uint32_t Bit(Knob knob) { return 1u << static_cast<unsigned>(knob); }
constexpr uint32_t kOfReserve = Bit(Knob::kGuarantee) | Bit(Knob::kLimit) | Bit(Knob::kBurst);
constexpr uint32_t kAll = (1u << kKnobs) - 1;

template <class P>
std::unique_ptr<Policy> Make(const PolicyOptions& options) {
  return std::make_unique<P>(options);
}

constexpr PolicyRow kPolicyRows[] = {
    {"strict", Make<StrictPolicy>, kAll & ~kOfReserve, true, "round robin with fixed slices, ended by force"},
    {"reserve", Make<ReservePolicy>, kAll, false, "guaranteed fraction and limit per VF, the rest by weight"},
    {"relaxed", Make<RelaxedPolicy>, kAll & ~kOfReserve, true, "as strict, but a running kernel may finish"},
};

uint64_t Us(Ns time) { return static_cast<uint64_t>(std::max<int64_t>(0, time.count()) / 1'000); }

constexpr std::string_view kUnitTexts[] = {"", " us", " of the GPU", " %"};

std::string Text(KnobUnit unit, uint64_t value) {
  return unit == KnobUnit::kPart ? fmt::format("{:.6g}", static_cast<double>(value) / kWhole)
                                 : fmt::format("{}", value);
}

}  // namespace

std::span<const KnobRow> Knobs() { return kKnobRows; }
const KnobRow& RowOf(Knob knob) { return kKnobRows[static_cast<size_t>(knob)]; }
std::span<const PolicyRow> Policies() { return kPolicyRows; }

Result<const PolicyRow*> FindPolicy(std::string_view name) {
  std::string known;
  for (const PolicyRow& row : kPolicyRows) {
    if (row.name == name) return &row;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  }
  return Fail(std::errc::invalid_argument, fmt::format("policy \"{}\" does not exist: there are {}", name, known));
}

Result<std::unique_ptr<Policy>> MakePolicy(std::string_view name, const PolicyOptions& options) {
  const PolicyRow* row = TRY(FindPolicy(name));
  TRY(CheckOptions(options));
  return row->make(options);
}

std::string AllowedRange(const KnobRow& row) {
  return fmt::format("{}{} to {}{}", row.zero_too ? "0 or " : "", Text(row.unit, row.min), Text(row.unit, row.max),
                     kUnitTexts[static_cast<size_t>(row.unit)]);
}

Checked CheckKnob(Knob knob, uint64_t value) {
  const KnobRow& row = RowOf(knob);
  if ((value >= row.min && value <= row.max) || (value == 0 && row.zero_too)) return {};
  return Refuse(fmt::format("{} {} is out of range: allowed is {}", row.name, Text(row.unit, value), AllowedRange(row)),
                {row.name});
}

Checked CheckOptions(const PolicyOptions& options) {
  const PolicyOptions defaults;
  for (const KnobRow& row : kKnobRows) {
    if (row.per_vf || row.knob == Knob::kGroupWeight) continue;
    const uint64_t value = KnobOf(options, row.knob);
    if (value != KnobOf(defaults, row.knob)) TRY(CheckKnob(row.knob, value));
  }
  for (const uint32_t weight : options.group_weights) TRY(CheckKnob(Knob::kGroupWeight, weight));
  if (options.min_slice > options.max_slice)
    return Refuse(
        fmt::format("min_slice_us {} is more than max_slice_us {}", Us(options.min_slice), Us(options.max_slice)),
        {RowOf(Knob::kMinSlice).name, RowOf(Knob::kMaxSlice).name});
  return {};
}

Checked CheckVf(const PolicyRow& policy, std::string_view name, const VfView& vf) {
  const VfView defaults;
  for (const KnobRow& row : kKnobRows) {
    if (!row.per_vf) continue;
    const uint64_t value = KnobOf(vf, row.knob);
    if (value == KnobOf(defaults, row.knob)) continue;
    if (const auto ok = CheckKnob(row.knob, value); !ok)
      return Refuse(fmt::format("VF {}: {}", name, ok.error().context), ok.error().fields);
    if (!policy.Understands(row.knob))
      return Refuse(
          fmt::format("VF {}: policy {} has no {}: use policy reserve, or leave it out", name, policy.name, row.name),
          {row.name, kPolicyField});
  }
  if (vf.guarantee > vf.limit)
    return Refuse(fmt::format("VF {}: guarantee {:.3f} is more than limit {:.3f}", name, vf.guarantee / double{kWhole},
                              vf.limit / double{kWhole}),
                  {RowOf(Knob::kGuarantee).name, RowOf(Knob::kLimit).name});
  return {};
}

Checked CheckSlice(std::string_view name, const VfView& vf, const PolicyOptions& options) {
  const KnobRow& range = RowOf(Knob::kSlice);
  const auto check = [&](Knob base, Knob of, std::string_view what, uint32_t weight) -> Checked {
    const uint64_t base_us = KnobOf(options, base);
    const Ns slice = Wheel::Slice(weight, Ns{0}, std::chrono::microseconds{base_us});
    if (Us(slice) >= range.min && slice <= std::chrono::microseconds{range.max}) return {};
    return Refuse(fmt::format("VF {}: {} {} with {} {} makes {} us: allowed is {}; change one of the two", name, what,
                              weight, RowOf(base).name, base_us, Us(slice), AllowedRange(range)),
                  {RowOf(of).name, RowOf(base).name, RowOf(Knob::kGroup).name, RowOf(Knob::kMaxWait).name});
  };
  const bool by_goal = options.max_wait != Ns{0};
  for (const Knob base : {by_goal ? Knob::kMinSlice : Knob::kBaseSlice, by_goal ? Knob::kMaxSlice : Knob::kBaseSlice}) {
    if (vf.slice == Ns{0}) TRY(check(base, Knob::kWeight, "weight", vf.weight));
    if (vf.group != kNoGroup)
      TRY(check(base, Knob::kGroupWeight, fmt::format("group_weight {}:", vf.group), options.group_weights[vf.group]));
  }
  return {};
}

GuaranteeRoom RoomForGuarantees(std::span<const VfView> vfs, const PolicyOptions& options, Ns switch_cost) {
  uint64_t sum = 0;
  Ns shortest = Ns::max();
  for (const VfView& vf : vfs) {
    if (vf.guarantee == 0) continue;
    sum += vf.guarantee;
    const Ns base = options.max_wait > Ns{0} ? options.min_slice : options.base_slice;
    shortest = std::min(shortest, Wheel::Slice(vf.weight, vf.slice, base));
  }
  if (sum == 0) return {};
  const auto slice = static_cast<double>(shortest.count());
  const auto cost = static_cast<double>(switch_cost.count());
  return {static_cast<double>(sum) / kWhole, slice / (slice + cost), shortest};
}

Checked CheckGuarantees(std::span<const VfView> vfs, const PolicyOptions& options, Ns switch_cost) {
  const GuaranteeRoom room = RoomForGuarantees(vfs, options, switch_cost);
  if (room.Fits()) return {};
  return Refuse(
      fmt::format("guarantees add up to {:.3f}, but {:.3f} is left when a switch of {} us follows each slice of "
                  "{} us: lower a guarantee or make slices longer",
                  room.asked, room.available, Us(switch_cost), Us(room.slice)),
      {RowOf(Knob::kGuarantee).name, RowOf(Knob::kSlice).name, RowOf(Knob::kWeight).name, RowOf(Knob::kBaseSlice).name,
       RowOf(Knob::kMinSlice).name, RowOf(Knob::kMaxWait).name});
}

}  // namespace vgpud
