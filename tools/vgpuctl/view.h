// SPDX-License-Identifier: Apache-2.0
// How answers are printed, as it was typed.
#pragma once

#include <string>
#include <vector>

namespace vgpud::tools {

enum class Format { kTable, kWide, kName, kCsv, kJson, kYaml };

struct View {
  Format format = Format::kTable;
  bool headings = true;
  std::vector<std::string> filters;  // "state=ready", "name!=guest-*"
  std::string sort;                  // a column
  bool reverse = false;
  // The answer of vgpud itself, for programs.
  bool is_data() const { return format == Format::kJson || format == Format::kYaml; }
};

}  // namespace vgpud::tools
