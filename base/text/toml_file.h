// SPDX-License-Identifier: Apache-2.0
// TOML files that people write: every program says in the same words where such a file is wrong. For sources that read
// one only.
#pragma once

#include <fmt/core.h>
#include <toml++/toml.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/result.h"

namespace vgpud {

// Collects the errors of one file, a line for each: "FILE:LINE:COLUMN: WHAT".
class TomlErrors {
 public:
  explicit TomlErrors(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }
  bool empty() const { return text_.empty(); }

  // `what` may quote the file: its control characters become '?', so that an error has one line and draws nothing.
  void Add(const toml::source_region& where, std::string_view what) {
    std::string line = fmt::format("{}:{}:{}: {}", path_, where.begin.line, where.begin.column, what);
    std::replace_if(
        line.begin(), line.end(), [](unsigned char c) { return c < ' ' || c == 127; }, '?');
    text_ += (text_.empty() ? "" : "\n") + line;
  }
  // All of it as one error. Not while empty().
  tl::unexpected<Error> Refuse() const { return Fail(std::errc::invalid_argument, text_); }

 private:
  const std::string path_;
  std::string text_;
};

// Calls `read` with the file's table. A file that is not TOML is added to `errors` instead.
template <class Read>
void ReadToml(std::string_view text, TomlErrors& errors, Read read) {
  try {
    read(toml::parse(text, errors.path()));
  } catch (const toml::parse_error& error) {
    errors.Add(error.source(), error.description());
  }
}

}  // namespace vgpud
