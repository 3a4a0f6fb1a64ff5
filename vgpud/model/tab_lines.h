// SPDX-License-Identifier: Apache-2.0
// How settings that outlive vgpud are written: a line each, its fields with tabs between them. Fields have no tab and
// no newline of their own. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace vgpud::daemon {

template <size_t kFields>
using TabLine = std::array<std::string, kFields>;

// With the newline that ends it.
template <size_t kFields>
std::string WriteTabLine(const TabLine<kFields>& fields) {
  std::string line;
  for (const std::string& field : fields) line += (&field == fields.data() ? "" : "\t") + field;
  return line + "\n";
}

// The lines of `text` that have `kFields` fields. Others are left out, and a last line without a newline: it was cut
// off.
template <size_t kFields>
std::vector<TabLine<kFields>> ReadTabLines(std::string_view text) {
  std::vector<TabLine<kFields>> lines;
  for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    std::string_view line = text.substr(0, end);
    if (static_cast<size_t>(std::count(line.begin(), line.end(), '\t')) + 1 != kFields) continue;
    for (std::string& field : lines.emplace_back()) {
      const size_t tab = std::min(line.find('\t'), line.size());
      field = line.substr(0, tab);
      line.remove_prefix(std::min(tab + 1, line.size()));
    }
  }
  return lines;
}

}  // namespace vgpud::daemon
