// SPDX-License-Identifier: Apache-2.0
// Forms of instructions: which are taken, and why the others are not.
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <string_view>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {

inline constexpr const char* kUnknown = "no such instruction";
inline constexpr const char* kMissingOrMany = "operands are missing or too many";
inline constexpr const char* kWrongKind = "destination of the wrong kind";
inline constexpr const char* kElements = "the vector has the wrong number of elements";

struct FormCase {
  const char* text;
  const char* why;  // "": it is taken
};
// What stands around the instruction, all of it before the instruction's own line, which is the 14th.
struct Around {
  const char* parameters = "";
  const char* declared = "";  // within the kernel
  const char* before = "";    // the kernel
  std::vector<std::byte> arguments = {};
};

// A kernel of this one instruction loads in any case; it can be launched only if it is taken, and another one always.
inline void Expect(const FormCase& c, const Around& around = {}) {
  SoftMachine m;
  const Outcome loaded = m.LoadBody(around.parameters, std::string(around.declared) + "\n" + c.text,
                                    std::string(around.before) + ".entry other() { ret; }");
  ASSERT_EQ(loaded.status, CuStatus::kSuccess) << c.text << "\n" << loaded.text;
  const auto grid = m.gpu.Launch(*m.module->Function("k"), {{1, 1, 1}, {1, 1, 1}, 0}, around.arguments, 0);
  EXPECT_EQ(grid.has_value(), c.why[0] == '\0') << c.text << "\n" << (grid ? "" : grid.error().text);
  if (grid || c.why[0] == '\0') return;
  EXPECT_THAT(grid.error().text, testing::HasSubstr(c.why)) << c.text;
  EXPECT_THAT(grid.error().text, testing::HasSubstr("PTX line 14: ")) << c.text;
}

}  // namespace vgpud::soft
