// SPDX-License-Identifier: Apache-2.0
// Rows of the soft GPU's table of instructions that no golden test can run, and why. docs/ptx-coverage.md has this
// list; soft_golden_rows_test holds that it is complete and that nothing in it is needless.
#pragma once

#include <utility>

namespace vgpud::golden {

inline constexpr std::pair<const char*, const char*> kRowsWithout[] = {
    {"brkpt", "ends the context with an error: `tests/unit/soft/run/fault_test.cc`"},
    {"trap", "ends the context with an error: `tests/unit/soft/run/fault_test.cc`"},
    {"mov.f16", "the PTX ISA has no such form, so other drivers refuse it: `tests/unit/soft/ops/rare_test.cc`"},
    {"mov.f16x2", "the PTX ISA has no such form, so other drivers refuse it: `tests/unit/soft/ops/rare_test.cc`"},
    {"selp.pred", "the PTX ISA has no such form, so other drivers refuse it: `tests/unit/soft/ops/rare_test.cc`"},
};

}  // namespace vgpud::golden
