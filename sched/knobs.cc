// SPDX-License-Identifier: Apache-2.0
#include "sched/knobs.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/check.h"
#include "base/text/numbers.h"

namespace vgpud {
namespace {

using std::chrono::microseconds;

template <class S>
struct Field {
  Knob knob;
  uint64_t (*get)(const S&);
  void (*set)(S&, uint64_t);
};

template <class S, auto kMember>
constexpr Field<S> Of(Knob knob) {
  using T = std::remove_cvref_t<decltype(std::declval<S&>().*kMember)>;
  if constexpr (std::is_same_v<T, Ns>)
    return {knob, [](const S& s) { return static_cast<uint64_t>(std::max(Ns{0}, s.*kMember) / microseconds{1}); },
            [](S& s, uint64_t us) { s.*kMember = microseconds{us}; }};
  else
    return {knob, [](const S& s) { return uint64_t{s.*kMember}; },
            [](S& s, uint64_t value) { s.*kMember = static_cast<T>(value); }};
}

constexpr Field<VfView> kOfVf[] = {
    Of<VfView, &VfView::weight>(Knob::kWeight),       Of<VfView, &VfView::slice>(Knob::kSlice),
    Of<VfView, &VfView::priority>(Knob::kPriority),   Of<VfView, &VfView::group>(Knob::kGroup),
    Of<VfView, &VfView::guarantee>(Knob::kGuarantee), Of<VfView, &VfView::limit>(Knob::kLimit),
    Of<VfView, &VfView::burst>(Knob::kBurst),         Of<VfView, &VfView::wake_first>(Knob::kWakeFirst),
};
constexpr Field<PolicyOptions> kOfGpu[] = {
    Of<PolicyOptions, &PolicyOptions::base_slice>(Knob::kBaseSlice),
    Of<PolicyOptions, &PolicyOptions::max_wait>(Knob::kMaxWait),
    Of<PolicyOptions, &PolicyOptions::min_slice>(Knob::kMinSlice),
    Of<PolicyOptions, &PolicyOptions::max_slice>(Knob::kMaxSlice),
    Of<PolicyOptions, &PolicyOptions::averaging_factor>(Knob::kAveragingFactor),
    Of<PolicyOptions, &PolicyOptions::floor_percent>(Knob::kFloorPercent),
    Of<PolicyOptions, &PolicyOptions::idle_grace>(Knob::kIdleGrace),
    Of<PolicyOptions, &PolicyOptions::anticipate_percent>(Knob::kAnticipatePercent),
    Of<PolicyOptions, &PolicyOptions::anticipate_most>(Knob::kAnticipate),
};
static_assert(std::size(kOfVf) + std::size(kOfGpu) + 1 == kKnobs);  // + kGroupWeight

template <class S, size_t kCount>
const Field<S>& Find(const Field<S> (&fields)[kCount], Knob knob) {
  const auto* field = std::find_if(fields, fields + kCount, [&](const Field<S>& f) { return f.knob == knob; });
  CHECK(field != fields + kCount);
  return *field;
}

}  // namespace

uint64_t KnobOf(const VfView& vf, Knob knob) { return Find(kOfVf, knob).get(vf); }
void SetKnob(VfView& vf, Knob knob, uint64_t value) { Find(kOfVf, knob).set(vf, value); }
uint64_t KnobOf(const PolicyOptions& options, Knob knob) { return Find(kOfGpu, knob).get(options); }
void SetKnob(PolicyOptions& options, Knob knob, uint64_t value) { Find(kOfGpu, knob).set(options, value); }

Result<uint64_t> ParsePartText(std::string_view name, std::string_view text, double most) {
  const auto part = ParseFraction(text);
  // Up to this, the caller's own range has a better message.
  const double sane = text.ends_with('%') ? most : 100 * most;
  if (!part || *part < 0 || *part > sane)
    return Fail(std::errc::invalid_argument,
                fmt::format("{} \"{}\" is not a part of the GPU, like 0.25 or \"25%\"", name, text));
  return static_cast<uint64_t>(std::round(*part * kWhole));
}

const KnobRow* FindKnobRow(std::string_view name, bool per_vf) {
  for (const KnobRow& row : Knobs())
    if (row.name == name && row.per_vf == per_vf && row.knob != Knob::kGroupWeight) return &row;
  return nullptr;
}

Result<uint64_t> ParseKnobText(const KnobRow& row, std::string_view text) {
  uint64_t value = 0;
  if (row.unit == KnobUnit::kPart) {
    value = TRY(ParsePartText(row.name, text));
  } else if (const auto number = ParseInteger<uint64_t>(text)) {
    value = *number;
  } else {
    return Fail(std::errc::invalid_argument, fmt::format("{} \"{}\" is not a number", row.name, text));
  }
  if (const auto checked = CheckKnob(row.knob, value); !checked)
    return Fail(std::errc::invalid_argument, checked.error().context);
  return value;
}

}  // namespace vgpud
