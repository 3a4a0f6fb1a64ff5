// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/line/values.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text/numbers.h"
#include "base/units.h"
#include "vgpud/model/nearest.h"

namespace vgpud::tools {

CLI::Validator OneOf(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : ",") + word;
  return {[words](const std::string& text) {
            if (std::find(words.begin(), words.end(), text) != words.end()) return std::string();
            return fmt::format("there is no \"{}\": {}", text, control::DidYouMean(text, words));
          },
          "{" + all + "}"};
}

std::vector<std::string> AllowedWords(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{'), end = type.rfind('}');
  std::vector<std::string> words;
  if (begin == std::string::npos || end == std::string::npos) return words;
  for (size_t at = begin; at < end;) {
    const size_t next = std::min(type.find(',', at + 1), end);
    words.push_back(type.substr(at + 1, next - at - 1));
    at = next;
  }
  return words;
}

CLI::Validator NumberUpTo(unsigned most) {
  return {[most](const std::string& text) {
            const auto number = ParseInteger<unsigned>(text);
            if (number && *number <= most) return std::string();
            return fmt::format("\"{}\" is not a number from 0 to {}", text, most);
          },
          ""};
}

CLI::Validator Patience() {
  return {[](const std::string& text) {
            const auto patience = ParsePatience(text);
            return patience ? std::string() : patience.error().context;
          },
          ""};
}

Result<std::chrono::milliseconds> ParsePatience(const std::string& text) {
  const bool bare = !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos;
  const auto us = ParseMicroseconds(bare ? text + "s" : text);
  constexpr uint64_t kLeast = 1'000, kMost = 3'600'000'000;
  if (!us || *us < kLeast || *us > kMost)
    return Fail(std::errc::invalid_argument,
                fmt::format("\"{}\" is not a time from 1ms to 3600s (write it like 2s or 500ms)", text));
  return std::chrono::milliseconds{*us / 1'000};
}

}  // namespace vgpud::tools
