// SPDX-License-Identifier: Apache-2.0
// Sizes, offsets and counts that somebody else chose: an image, a launch, a ring. Arithmetic on them neither wraps nor
// narrows in silence.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "base/check.h"

namespace vgpud {

// A count of bytes or things. What does not fit 64 bits is "too big", and so is everything that is computed from it.
// Compare it with a limit (Fits) before it becomes a plain number.
class CheckedSize {
 public:
  constexpr CheckedSize() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): every unsigned number is one.
  constexpr CheckedSize(std::unsigned_integral auto value) : value_(value) {}
  static constexpr CheckedSize TooBig() { return CheckedSize(kTooBig); }

  constexpr bool too_big() const { return value_ == kTooBig; }
  // Is it at most `limit`?
  constexpr bool Fits(uint64_t limit) const { return !too_big() && value_ <= limit; }
  // As a T; nullopt: it is too big for one.
  template <std::unsigned_integral T>
  constexpr std::optional<T> To() const {
    if (too_big() || value_ > std::numeric_limits<T>::max()) return std::nullopt;
    return static_cast<T>(value_);
  }
  // For messages and for comparisons: 2^64 - 1 if it is too big.
  constexpr uint64_t saturated() const { return value_; }

  friend constexpr CheckedSize operator+(CheckedSize a, CheckedSize b) {
    uint64_t sum = 0;
    return a.too_big() || b.too_big() || __builtin_add_overflow(a.value_, b.value_, &sum) ? TooBig() : CheckedSize(sum);
  }
  // Too big times zero is too big.
  friend constexpr CheckedSize operator*(CheckedSize a, CheckedSize b) {
    uint64_t product = 0;
    return a.too_big() || b.too_big() || __builtin_mul_overflow(a.value_, b.value_, &product) ? TooBig()
                                                                                              : CheckedSize(product);
  }
  constexpr CheckedSize& operator+=(CheckedSize b) { return *this = *this + b; }
  constexpr CheckedSize& operator*=(CheckedSize b) { return *this = *this * b; }
  // The next multiple of `to`, of any size; 0 is taken for 1.
  constexpr CheckedSize AlignedUp(uint64_t to) const {
    if (to <= 1 || too_big()) return *this;
    const uint64_t over = value_ % to;
    return over == 0 ? *this : *this + CheckedSize(to - over);
  }
  constexpr bool operator==(const CheckedSize&) const = default;

 private:
  static constexpr uint64_t kTooBig = std::numeric_limits<uint64_t>::max();
  uint64_t value_ = 0;
};

// Does [offset, offset + bytes) lie inside of [0, size)?
constexpr bool Inside(uint64_t offset, uint64_t bytes, uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

// `value` as a To. That it fits has been checked before, or follows from a limit: a CHECK, never an answer to a guest.
template <std::integral To, std::integral From>
constexpr To MustFit(From value) {
  CHECK(std::in_range<To>(value));
  return static_cast<To>(value);
}
// For a CheckedSize that passed Fits().
template <std::unsigned_integral To>
constexpr To MustFit(CheckedSize value) {
  const std::optional<To> fits = value.To<To>();
  CHECK(fits.has_value());
  return *fits;
}

}  // namespace vgpud
