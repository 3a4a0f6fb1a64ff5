// SPDX-License-Identifier: Apache-2.0
#include "gpu/rewrite/bound.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/checked.h"

namespace vgpud::rewrite {
namespace {

// Counters beyond are not looked at, so that nothing wraps.
constexpr int64_t kMostValue = 1 << 30;

std::optional<std::vector<uint32_t>> ValuesOf(const std::vector<Term>& terms, std::span<const std::byte> params,
                                              const uint32_t (&block)[3]) {
  constexpr uint32_t kMostShift = 31;
  std::vector<uint32_t> values;
  for (const Term& term : terms) {
    const uint32_t a = term.a < values.size() ? values[term.a] : 0, b = term.b < values.size() ? values[term.b] : 0;
    uint32_t value = term.value;
    switch (term.op) {
      case Term::Op::kConstant:
        break;
      case Term::Op::kParam:
        if (term.value > params.size() || params.size() - term.value < sizeof value) return std::nullopt;
        std::memcpy(&value, params.data() + term.value, sizeof value);
        break;
      case Term::Op::kThreads:
        value = block[std::min<uint32_t>(term.value, 2)];
        break;
      case Term::Op::kAdd:
        value = a + b;
        break;
      case Term::Op::kSub:
        value = a - b;
        break;
      case Term::Op::kMul:
        value = a * b;
        break;
      case Term::Op::kAnd:
        value = a & b;
        break;
      case Term::Op::kShl:
        value = b > kMostShift ? 0 : a << b;
        break;
      case Term::Op::kShr:
        value = b > kMostShift ? 0 : a >> b;
        break;
      case Term::Op::kShrSigned:
        value = static_cast<uint32_t>(static_cast<int32_t>(a) >> std::min(b, kMostShift));
        break;
    }
    values.push_back(value);
  }
  return values;
}

// One more than needed, because the test may be in front of the step.
std::optional<uint64_t> RoundsFrom(const Rounds& rounds, uint32_t begin_bits, uint32_t end_bits) {
  const int64_t begin = static_cast<int32_t>(begin_bits), end = static_cast<int32_t>(end_bits), by = rounds.by;
  const auto fits = [](int64_t value) { return value >= -kMostValue && value <= kMostValue; };
  const int64_t distance = by > 0 ? end - begin : begin - end, each = by > 0 ? by : -by;
  if (each == 0 || !fits(begin) || !fits(end) || !fits(by) || (!rounds.is_signed && end < 0)) return std::nullopt;
  if (rounds.skips_end && begin == end) return 1;
  const bool up = rounds.test == Test::kLess || rounds.test == Test::kLessEqual;
  const bool down = rounds.test == Test::kGreater || rounds.test == Test::kGreaterEqual;
  if (rounds.test == Test::kNotEqual ? distance % each != 0 || distance < each : by > 0 ? !up : !down)
    return std::nullopt;
  // Below zero one without a sign is a large one.
  if (by < 0 && !rounds.is_signed && down && (end < each || begin < 0)) return std::nullopt;
  return static_cast<uint64_t>(std::max<int64_t>(distance, 0) / each) + 2;
}

std::optional<uint64_t> RoundsOf(const Rounds& rounds, const std::vector<uint32_t>& values) {
  if (rounds.fixed != 0) return rounds.fixed;
  uint64_t most = 0;
  for (const uint32_t begin : rounds.begins) {
    if (begin >= values.size() || rounds.end >= values.size()) return std::nullopt;
    const auto from = RoundsFrom(rounds, values[begin], values[rounds.end]);
    if (!from) return std::nullopt;
    most = std::max(most, *from);
  }
  return most == 0 ? std::nullopt : std::optional(most);
}

}  // namespace

bool Bound::needs_launch() const {
  return std::any_of(terms.begin(), terms.end(),
                     [](const Term& term) { return term.op == Term::Op::kParam || term.op == Term::Op::kThreads; });
}

uint32_t Evaluate(const Bound& bound, std::span<const std::byte> params, const uint32_t (&block)[3]) {
  const auto values = ValuesOf(bound.terms, params, block);
  if (!values) return 0;
  std::vector<uint64_t> rounds;
  for (const Rounds& loop : bound.loops) {
    const auto of_loop = RoundsOf(loop, *values);
    // A loop that is not entered has no matter with its counter; but nobody knows that here.
    if (!of_loop) return 0;
    rounds.push_back(*of_loop);
  }
  CheckedSize sum;
  for (const Bound::Part& part : bound.parts) {
    CheckedSize each(part.instructions);
    for (const uint32_t loop : part.loops) each = each * rounds[loop];
    sum = sum + each;
  }
  return sum.Fits(UINT32_MAX) ? static_cast<uint32_t>(sum.saturated()) : 0;
}

}  // namespace vgpud::rewrite
