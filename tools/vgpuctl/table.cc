// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/table.h"

#include <algorithm>

namespace vgpud::tools {

std::string Table::Text() const {
  std::vector<size_t> widths(rows_[0].size());
  for (const auto& row : rows_)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace vgpud::tools
