#include "sched/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "sched/relaxed.h"
#include "sched/reserve.h"
#include "sched/strict.h"
#include "sched/wheel.h"

namespace vgpud {
namespace {

constexpr uint64_t kSecondUs = 1'000'000;

constexpr KnobRow kKnobRows[] = {
    {Knob::kWeight, "weight", true, 1, 10'000, false, ""},
    {Knob::kSlice, "slice_us", true, 100, kSecondUs, true, " us"},
    {Knob::kPriority, "priority", true, 0, kPriorities - 1, false, ""},
    {Knob::kGroup, "group", true, 0, kNoGroup, false, " (the last: no group)"},
    {Knob::kGuarantee, "guarantee", true, 1'000, kWhole, true, " millionths of the GPU"},
    {Knob::kLimit, "limit", true, 1'000, kWhole, false, " millionths of the GPU"},
    {Knob::kBurst, "burst_us", true, 0, kSecondUs, false, " us"},
    {Knob::kBaseSlice, "base_slice_us", false, 100, kSecondUs, false, " us"},
    {Knob::kMaxWait, "max_wait_us", false, 1'000, 10 * kSecondUs, true, " us"},
    {Knob::kMinSlice, "min_slice_us", false, 100, kSecondUs, false, " us"},
    {Knob::kMaxSlice, "max_slice_us", false, 100, kSecondUs, false, " us"},
    {Knob::kAveragingFactor, "averaging_factor", false, 1, 60, false, ""},
    {Knob::kFloorPercent, "floor_percent", false, 1, 25, false, " %"},
    {Knob::kGroupWeight, "group_weight", false, 1, 10'000, false, ""},
};
static_assert(std::size(kKnobRows) == kKnobs);
static_assert([] {
  for (size_t i = 0; i < kKnobs; ++i)
    if (kKnobRows[i].knob != static_cast<Knob>(i)) return false;
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
    {"strict", Make<StrictPolicy>, kAll & ~kOfReserve, "round robin with fixed slices, ended by force"},
    {"reserve", Make<ReservePolicy>, kAll, "guaranteed fraction and limit per VF, the rest by weight"},
    {"relaxed", Make<RelaxedPolicy>, kAll & ~kOfReserve, "as strict, but a running kernel may finish"},
};

uint64_t Us(Ns time) { return static_cast<uint64_t>(std::max<int64_t>(0, time.count()) / 1'000); }

struct Given {
  Knob knob;
  uint64_t value;
  uint64_t otherwise;  // the default
};

}  // namespace

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

Result<void> CheckKnob(Knob knob, uint64_t value) {
  const KnobRow& row = RowOf(knob);
  if ((value >= row.min && value <= row.max) || (value == 0 && row.zero_too)) return {};
  return Fail(std::errc::invalid_argument, fmt::format("{} {} is out of range: allowed is {}{} to {}{}", row.name,
                                                       value, row.zero_too ? "0 or " : "", row.min, row.max, row.unit));
}

Result<void> CheckOptions(const PolicyOptions& options) {
  const Given all[] = {
      {Knob::kBaseSlice, Us(options.base_slice), 0},         {Knob::kMaxWait, Us(options.max_wait), 0},
      {Knob::kMinSlice, Us(options.min_slice), 0},           {Knob::kMaxSlice, Us(options.max_slice), 0},
      {Knob::kAveragingFactor, options.averaging_factor, 0}, {Knob::kFloorPercent, options.floor_percent, 0},
  };
  for (const Given& given : all) TRY(CheckKnob(given.knob, given.value));
  for (const uint32_t weight : options.group_weights) TRY(CheckKnob(Knob::kGroupWeight, weight));
  if (options.min_slice > options.max_slice)
    return Fail(std::errc::invalid_argument, fmt::format("min_slice_us {} is more than max_slice_us {}",
                                                         Us(options.min_slice), Us(options.max_slice)));
  return {};
}

Result<void> CheckVf(const PolicyRow& policy, std::string_view name, const VfView& vf) {
  const Given all[] = {
      {Knob::kWeight, vf.weight, kDefaultWeight},
      {Knob::kSlice, Us(vf.slice), 0},
      {Knob::kPriority, vf.priority, kDefaultPriority},
      {Knob::kGroup, vf.group, kNoGroup},
      {Knob::kGuarantee, vf.guarantee, 0},
      {Knob::kLimit, vf.limit, kWhole},
      {Knob::kBurst, Us(vf.burst), 0},
  };
  for (const Given& given : all) {
    if (const auto ok = CheckKnob(given.knob, given.value); !ok)
      return Fail(ok.error().code, fmt::format("VF {}: {}", name, ok.error().context));
    if (given.value != given.otherwise && !policy.Understands(given.knob))
      return Fail(std::errc::invalid_argument,
                  fmt::format("VF {}: policy {} has no {}: use policy reserve, or leave it out", name, policy.name,
                              RowOf(given.knob).name));
  }
  if (vf.guarantee > vf.limit)
    return Fail(std::errc::invalid_argument, fmt::format("VF {}: guarantee {:.3f} is more than limit {:.3f}", name,
                                                         vf.guarantee / double{kWhole}, vf.limit / double{kWhole}));
  return {};
}

Result<void> CheckGuarantees(std::span<const VfView> vfs, const PolicyOptions& options, Ns switch_cost) {
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
  const double available = slice / (slice + cost);
  const double asked = static_cast<double>(sum) / kWhole;
  if (asked <= available) return {};
  return Fail(
      std::errc::invalid_argument,
      fmt::format("guarantees add up to {:.3f}, but {:.3f} is left when a switch of {} us follows each slice of "
                  "{} us: lower a guarantee or make slices longer",
                  asked, available, Us(switch_cost), Us(shortest)));
}

}  // namespace vgpud
