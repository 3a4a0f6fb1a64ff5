// SPDX-License-Identifier: Apache-2.0
// Reads one table of a TOML file key by key. The first thing that is wrong is kept, with file and line; after it all
// reads do nothing, so that callers ask once at the end.
#pragma once

#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/text/toml_file.h"
#include "tools/sim/workload.h"

namespace vgpud::tools {

class TomlTable {
 public:
  // `where` names the table in errors: "gpu", "vf dev". All must outlive this.
  TomlTable(const toml::table& table, std::string where, TomlErrors& errors)
      : table_(table), where_(std::move(where)), errors_(errors) {}

  // Each reads `key` into `out` if it is there; `out` keeps its value otherwise. True if it was there and right.
  bool Read(std::string_view key, std::string* out);
  bool Read(std::string_view key, int64_t min, int64_t max, int64_t* out);
  bool Read(std::string_view key, double min, double max, double* out);
  // Like "2ms", "1.5us", "8h"; from `min` to `max`.
  bool Read(std::string_view key, Ns min, Ns max, Ns* out);
  // A length, or one of { min, max }, { mean }, { median, p99 }, { samples }.
  bool Read(std::string_view key, Distribution* out);
  // Like "09:00-18:00".
  bool Read(std::string_view key, std::optional<Hours>* out);
  // Like "08:30".
  bool ReadTimeOfDay(std::string_view key, Ns* out);
  // Like "4GiB".
  bool ReadBytes(std::string_view key, uint64_t* out);
  // The place in `choices` of the word given.
  bool ReadChoice(std::string_view key, std::initializer_list<std::string_view> choices, size_t* out);

  bool Has(std::string_view key) const { return table_.contains(key); }
  // A key that nobody read is an error: it names those that there are. `others`: keys read elsewhere.
  void RefuseOthers(std::initializer_list<std::string_view> others = {});
  // `key` has value `value`; `why` says what is allowed. The line is that of the key, or of the table without it.
  void Wrong(std::string_view key, std::string_view value, std::string_view why);

 private:
  bool ReadSamples(Distribution* out);
  const toml::node* Find(std::string_view key);
  static std::string TextOf(const toml::node& node);

  const toml::table& table_;
  const std::string where_;
  TomlErrors& errors_;
  std::set<std::string, std::less<>> read_;
};

// "1.5ms"; units ns, us, ms, s, m, h, d. nullopt: not a length of time.
std::optional<Ns> ParseLength(std::string_view text);
// The largest unit that shows it exactly: "1500us".
std::string FormatLength(Ns length);

}  // namespace vgpud::tools
