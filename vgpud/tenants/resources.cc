// SPDX-License-Identifier: Apache-2.0
#include "vgpud/tenants/resources.h"

#include <fmt/core.h>

#include <charconv>

#include "base/units.h"
#include "sched/knobs.h"

namespace vgpud::daemon {
namespace {

constexpr const char* kNone = "none";

// A group's number is one more, as 0 stands for none.
uint64_t AmountOf(Knob knob, uint64_t value) {
  if (knob != Knob::kGroup) return value;
  return value == kNoGroup ? 0 : value + 1;
}

Result<uint64_t> ParseCount(const ResourceRow& row, std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value > row.most)
    return Fail(std::errc::invalid_argument, fmt::format("\"{}\" is not a number from 0 to {}", text, row.most));
  return value;
}

Result<uint64_t> ParseMost(const ResourceRow& row, std::string_view text, Result<uint64_t> value) {
  if (!value) return Fail(std::errc::invalid_argument, fmt::format("{} {}", row.key, value.error().context));
  if (*value > row.most)
    return Fail(std::errc::invalid_argument,
                fmt::format("{} {} is more than {}", row.key, text, ShowAmount(row, row.most)));
  return value;
}

}  // namespace

Amounts KnobAmounts(const VfView& vf) {
  Amounts amounts;
  for (const ResourceRow& row : kResourceRows)
    if (row.knob) amounts[row.resource] = AmountOf(*row.knob, KnobOf(vf, *row.knob));
  return amounts;
}

Result<uint64_t> ParseAmount(const ResourceRow& row, bool each, std::string_view text) {
  if (row.knob && (each || !row.together)) {
    if (text == kNone && *row.knob != Knob::kWeight && *row.knob != Knob::kLimit) return 0;
    return AmountOf(*row.knob, TRY(ParseKnobText(RowOf(*row.knob), text)));
  }
  if (row.unit == ResourceUnit::kBytes) return ParseMost(row, text, ParseBytes(text));
  if (row.unit == ResourceUnit::kPart) {
    const auto gpus = static_cast<double>(row.most / kWhole);
    return ParseMost(row, text, ParsePartText(row.key, text, gpus));
  }
  return ParseCount(row, text);
}

std::string ShowAmount(const ResourceRow& row, uint64_t amount) {
  if (row.knob == Knob::kGroup) return amount == 0 ? kNone : fmt::format("{}", amount - 1);
  switch (row.unit) {
    case ResourceUnit::kBytes:
      return FormatBytes(amount);
    case ResourceUnit::kPart:
      return fmt::format("{:.6g}%", static_cast<double>(amount) * 100 / kWhole);
    case ResourceUnit::kMicroseconds:
      return amount == 0 ? kNone : FormatMicroseconds(amount);
    case ResourceUnit::kNumber:
      break;
  }
  return fmt::format("{}", amount);
}

}  // namespace vgpud::daemon
