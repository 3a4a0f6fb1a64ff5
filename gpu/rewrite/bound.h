// SPDX-License-Identifier: Apache-2.0
// How many instructions a thread of a kernel runs at most, as a rule that may need what a launch says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vgpud::rewrite {

enum class Test : uint8_t { kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kEqual };

// A number of 32 bits, the same in all threads. Its operands stand in front of it.
struct Term {
  enum class Op : uint8_t {
    kConstant,  // value
    kParam,     // at that offset in the parameter buffer
    kThreads,   // of a block, in that direction
    kAdd,
    kSub,
    kMul,
    kAnd,
    kShl,
    kShr,
    kShrSigned,
  };
  Op op = Op::kConstant;
  uint32_t a = 0, b = 0;  // operands: which terms
  uint32_t value = 0;
};

// How often the instructions of a loop run each time it is entered.
struct Rounds {
  uint64_t fixed = 0;            // so often; 0: as the rest says
  std::vector<uint32_t> begins;  // terms: what the counter can begin with
  uint32_t end = 0;              // the term that it is compared with
  int64_t by = 0;                // what is added to it each time
  Test test = Test::kNotEqual;   // it goes on as long as that is so
  bool is_signed = true;
  bool skips_end = false;  // it is not entered with a counter that is at its end
};

struct Bound {
  struct Part {
    uint64_t instructions = 0;
    std::vector<uint32_t> loops;  // that these are in
  };
  std::vector<Term> terms;
  std::vector<Rounds> loops;
  std::vector<Part> parts;  // none: there is no bound

  // Does it need what a launch says?
  bool needs_launch() const;
};

// Instructions of a thread; 0: more than UINT32_MAX, or not known, as where a counter misses its end. Any parameters
// are safe.
uint32_t Evaluate(const Bound& bound, std::span<const std::byte> params, const uint32_t (&block)[3]);

}  // namespace vgpud::rewrite
