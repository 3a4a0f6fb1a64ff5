// SPDX-License-Identifier: Apache-2.0
// Columns for people. Not a stable interface: programs read -o json.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace vgpud::tools {

class Table {
 public:
  explicit Table(std::vector<std::string> headings) : rows_{std::move(headings)} {}
  void Row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // All rows, each column as wide as its widest cell, two spaces between, no trailing space.
  std::string Text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace vgpud::tools
