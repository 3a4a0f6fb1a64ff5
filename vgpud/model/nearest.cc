// SPDX-License-Identifier: Apache-2.0
#include "vgpud/model/nearest.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <numeric>

namespace vgpud::control {
namespace {

constexpr size_t kMostSuggested = 3;
constexpr size_t kFewestOfBeginning = 3;  // letters

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

// How many letters have to be put in, taken out, changed, or swapped with the next one.
size_t Edits(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> rows(a.size() + 1, std::vector<size_t>(b.size() + 1));
  std::iota(rows[0].begin(), rows[0].end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    rows[i][0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[a.size()][b.size()];
}

size_t Distance(const std::string& wrong, const std::string& word) {
  const bool begins = wrong.size() >= kFewestOfBeginning && word.starts_with(wrong);
  return begins ? std::min<size_t>(1, word.size() - wrong.size()) : Edits(wrong, word);
}

}  // namespace

std::vector<std::string> Nearest(std::string_view wrong, const std::vector<std::string>& words) {
  // Longer words than this are nobody's slip of the finger, and would cost much to compare.
  constexpr size_t kLongest = 64;
  if (wrong.size() < 2 || wrong.size() > kLongest) return {};
  const std::string lower = Lower(wrong);
  std::vector<std::string> nearest;
  size_t least = std::max<size_t>(1, wrong.size() / 3);
  for (const std::string& word : words) {
    if (word.size() > kLongest) continue;
    const size_t distance = Distance(lower, Lower(word));
    if (distance > least) continue;
    if (distance < least) nearest.clear();
    least = distance;
    nearest.push_back(word);
  }
  if (nearest.size() > kMostSuggested) nearest.clear();
  return nearest;
}

std::string DidYouMeanOneOf(const std::vector<std::string>& words) {
  std::string text = "did you mean ";
  for (size_t i = 0; i < words.size(); ++i) text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return text + "?";
}

std::string DidYouMean(std::string_view wrong, const std::vector<std::string>& words) {
  if (const auto nearest = Nearest(wrong, words); !nearest.empty()) return DidYouMeanOneOf(nearest);
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
  return "there are " + all;
}

}  // namespace vgpud::control
