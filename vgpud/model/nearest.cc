// SPDX-License-Identifier: Apache-2.0
#include "vgpud/model/nearest.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace vgpud::control {
namespace {

// How many letters have to be put in, taken out or changed.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j)
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])}));
  }
  return row[b.size()];
}

}  // namespace

std::string DidYouMean(std::string_view wrong, const std::vector<std::string>& words) {
  const auto nearest = std::min_element(words.begin(), words.end(), [&](const auto& a, const auto& b) {
    return Distance(wrong, a) < Distance(wrong, b);
  });
  if (nearest != words.end() && Distance(wrong, *nearest) <= std::max<size_t>(2, wrong.size() / 3))
    return fmt::format("did you mean {}?", *nearest);
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
  return "there are " + all;
}

}  // namespace vgpud::control
