// SPDX-License-Identifier: Apache-2.0
// The golden tests' forms, for tests of the soft GPU.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/golden/golden.h"

namespace vgpud::soft {

// Those of GROUP.golden.
inline std::vector<golden::Form> GoldenForms(const std::string& group) {
  std::ifstream stream(std::string(GOLDEN_DIR) + "/" + group + ".golden");
  std::stringstream text;
  text << stream.rdbuf();
  std::string error;
  auto forms = golden::Parse(text.str(), error);
  EXPECT_EQ(error, "") << group;
  EXPECT_FALSE(forms.empty()) << group;
  return forms;
}

}  // namespace vgpud::soft
