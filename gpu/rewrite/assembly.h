// SPDX-License-Identifier: Apache-2.0
// PTX written by the rewriter. In its templates `$` stands for a prefix that no name of the program contains.
#pragma once

#include <fmt/core.h>

#include <optional>
#include <string>
#include <string_view>

namespace vgpud::rewrite {

// A prefix for names that occurs nowhere in `text`; nothing if it takes too long to find one.
std::optional<std::string> FreshPrefix(std::string_view text);

class Assembly {
 public:
  explicit Assembly(std::string_view prefix) : prefix_(prefix) {}
  // A line, or several.
  Assembly& Put(std::string_view pattern) {
    text_ += Named(pattern);
    text_ += '\n';
    return *this;
  }
  // `args` are put in as they are: a program's names may have a `$`.
  template <class... Args>
  Assembly& Put(fmt::format_string<Args...> pattern, Args&&... args) {
    const fmt::string_view view = pattern;
    text_ += fmt::vformat(Named({view.data(), view.size()}), fmt::make_format_args(args...));
    text_ += '\n';
    return *this;
  }
  // As written by the program.
  Assembly& PutRaw(std::string_view text) {
    text_ += text;
    return *this;
  }
  size_t size() const { return text_.size(); }
  std::string Take() && { return std::move(text_); }

 private:
  std::string Named(std::string_view pattern) const;

  std::string_view prefix_;
  std::string text_;
};

}  // namespace vgpud::rewrite
