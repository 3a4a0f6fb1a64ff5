// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/toml_table.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <sstream>

#include "base/units.h"

namespace vgpud::tools {
namespace {

constexpr struct {
  std::string_view name;
  int64_t ns;
} kUnits[] = {{"d", 86'400'000'000'000},
              {"h", 3'600'000'000'000},
              {"m", 60'000'000'000},
              {"s", 1'000'000'000},
              {"ms", 1'000'000},
              {"us", 1'000},
              {"ns", 1}};

constexpr size_t kMostSamples = 1000;

constexpr std::string_view kLengthHelp = "a length of time like \"500us\", \"2ms\", \"10s\", \"8h\"";

std::optional<Ns> ParseTimeOfDay(std::string_view text) {
  if (text.size() != 5 || text[2] != ':') return std::nullopt;
  int parts[2] = {-1, -1};
  for (int i = 0; i < 2; ++i) {
    const char* from = text.data() + 3 * i;
    if (const auto r = std::from_chars(from, from + 2, parts[i]); r.ec != std::errc{} || r.ptr != from + 2)
      return std::nullopt;
  }
  if (parts[0] < 0 || parts[0] > 24 || parts[1] < 0 || parts[1] > 59 || parts[0] * 60 + parts[1] > 24 * 60)
    return std::nullopt;
  return std::chrono::hours{parts[0]} + std::chrono::minutes{parts[1]};
}

template <class Words>
std::string Listed(const Words& words) {
  std::string text;
  for (const auto& word : words) {
    if (!text.empty()) text += ", ";
    text += word;
  }
  return text;
}

}  // namespace

std::optional<Ns> ParseLength(std::string_view text) {
  double number = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), number);
  if (r.ec != std::errc{}) return std::nullopt;
  const std::string_view unit(r.ptr, static_cast<size_t>(text.data() + text.size() - r.ptr));
  for (const auto& known : kUnits) {
    if (known.name != unit) continue;
    const double ns = number * static_cast<double>(known.ns);
    if (!(ns >= 0 && ns <= static_cast<double>(Distribution::kLongest.count()))) return std::nullopt;
    return Ns{std::llround(ns)};
  }
  return std::nullopt;
}

std::string FormatLength(Ns length) {
  if (length == Ns{0}) return "0s";
  for (const auto& unit : kUnits)
    if (length.count() % unit.ns == 0) return fmt::format("{}{}", length.count() / unit.ns, unit.name);
  return {};
}

const toml::node* TomlTable::Find(std::string_view key) {
  read_.emplace(key);
  return !errors_.empty() ? nullptr : table_.get(key);
}

std::string TomlTable::TextOf(const toml::node& node) {
  std::ostringstream text;
  node.visit([&](const auto& n) {
    using Node = std::decay_t<decltype(n)>;
    if constexpr (std::is_same_v<Node, toml::table>)
      text << toml::default_formatter(n, toml::format_flags::none);
    else
      text << n;
  });
  return text.str();
}

void TomlTable::Wrong(std::string_view key, std::string_view value, std::string_view why) {
  if (!errors_.empty()) return;
  const toml::node* node = table_.get(key);
  errors_.Add((node != nullptr ? *node : static_cast<const toml::node&>(table_)).source(),
              fmt::format("{}{}{} = {}: {}", where_, where_.empty() ? "" : ": ", key, value, why));
}

bool TomlTable::Read(std::string_view key, std::string* out) {
  const toml::node* node = Find(key);
  if (node == nullptr) return false;
  if (const auto value = node->value_exact<std::string>(); value && !value->empty()) {
    *out = *value;
    return true;
  }
  Wrong(key, TextOf(*node), "must be text in quotes");
  return false;
}

bool TomlTable::Read(std::string_view key, int64_t min, int64_t max, int64_t* out) {
  const toml::node* node = Find(key);
  if (node == nullptr) return false;
  if (const auto value = node->value_exact<int64_t>(); value && *value >= min && *value <= max) {
    *out = *value;
    return true;
  }
  Wrong(key, TextOf(*node), fmt::format("must be a whole number from {} to {}", min, max));
  return false;
}

bool TomlTable::Read(std::string_view key, double min, double max, double* out) {
  const toml::node* node = Find(key);
  if (node == nullptr) return false;
  if (const auto value = node->value<double>(); node->is_number() && *value >= min && *value <= max) {
    *out = *value;
    return true;
  }
  Wrong(key, TextOf(*node), fmt::format("must be a number from {} to {}", min, max));
  return false;
}

bool TomlTable::Read(std::string_view key, Ns min, Ns max, Ns* out) {
  const toml::node* node = Find(key);
  if (node == nullptr) return false;
  const auto text = node->value_exact<std::string>();
  if (const auto length = text ? ParseLength(*text) : std::nullopt; length && *length >= min && *length <= max) {
    *out = *length;
    return true;
  }
  Wrong(key, TextOf(*node),
        fmt::format("must be {}, from {} to {}", kLengthHelp, FormatLength(min), FormatLength(max)));
  return false;
}

bool TomlTable::ReadSamples(Distribution* out) {
  const toml::node* node = Find("samples");
  if (node == nullptr) return false;
  const toml::array* array = node->as_array();
  if (array == nullptr || array->empty() || array->size() > kMostSamples) {
    Wrong("samples", array == nullptr ? TextOf(*node) : fmt::format("[{} of them]", array->size()),
          fmt::format("must be a list of 1 to {} lengths of time", kMostSamples));
    return false;
  }
  std::vector<Ns> lengths;
  for (const toml::node& element : *array) {
    const auto text = element.value_exact<std::string>();
    const auto length = text ? ParseLength(*text) : std::nullopt;
    if (!length) {
      Wrong("samples", TextOf(element), fmt::format("each must be {}", kLengthHelp));
      return false;
    }
    lengths.push_back(*length);
  }
  *out = Distribution::Samples(lengths);
  return true;
}

bool TomlTable::Read(std::string_view key, Distribution* out) {
  constexpr Ns kMost = Distribution::kLongest;
  const toml::node* node = Find(key);
  if (node == nullptr) return false;
  if (!node->is_table()) {
    Ns length{0};
    if (!Read(key, Ns{0}, kMost, &length)) return false;
    *out = Distribution::Fixed(length);
    return true;
  }
  TomlTable inner(*node->as_table(), fmt::format("{}{}{}", where_, where_.empty() ? "" : ": ", key), errors_);
  Ns a{0}, b{0};
  if (inner.Has("mean") && inner.Read("mean", Ns{1}, kMost, &a)) *out = Distribution::Exponential(a);
  if (inner.Has("min") && inner.Read("min", Ns{0}, kMost, &a) && inner.Read("max", a, kMost, &b))
    *out = Distribution::Uniform(a, b);
  if (inner.Has("median") && inner.Read("median", Ns{1}, kMost, &a) && inner.Read("p99", a, kMost, &b))
    *out = Distribution::LogNormal(a, b);
  if (inner.Has("samples")) inner.ReadSamples(out);
  inner.RefuseOthers();
  const bool alone = inner.Has("mean") || inner.Has("samples");
  const bool one = node->as_table()->size() == (alone ? 1u : 2u);
  const bool known = alone || (inner.Has("min") && inner.Has("max")) || (inner.Has("median") && inner.Has("p99"));
  if (!one || !known)
    Wrong(key, TextOf(*node), "must be a length of time, { mean }, { min, max }, { median, p99 } or { samples }");
  return errors_.empty();
}

bool TomlTable::ReadTimeOfDay(std::string_view key, Ns* out) {
  std::string text;
  if (!Read(key, &text)) return false;
  const auto time = ParseTimeOfDay(text);
  if (!time) {
    Wrong(key, "\"" + text + "\"", "must be a time of day from \"00:00\" to \"24:00\"");
    return false;
  }
  *out = *time;
  return true;
}

bool TomlTable::Read(std::string_view key, std::optional<Hours>* out) {
  std::string text;
  if (!Read(key, &text)) return false;
  const std::string_view view = text;
  const auto from = ParseTimeOfDay(view.substr(0, 5));
  const auto to = view.size() == 11 && view[5] == '-' ? ParseTimeOfDay(view.substr(6)) : std::nullopt;
  if (!from || !to || *from == *to) {
    Wrong(key, "\"" + text + "\"", "must be two times of day like \"09:00-18:00\" or \"20:00-08:00\"");
    return false;
  }
  *out = Hours{*from, *to};
  return true;
}

bool TomlTable::ReadBytes(std::string_view key, uint64_t* out) {
  std::string text;
  if (!Read(key, &text)) return false;
  const auto bytes = ParseBytes(text);
  if (!bytes || *bytes == 0) {
    Wrong(key, "\"" + text + "\"", "must be an amount of memory like \"4GiB\" or \"256MiB\"");
    return false;
  }
  *out = *bytes;
  return true;
}

bool TomlTable::ReadChoice(std::string_view key, std::initializer_list<std::string_view> choices, size_t* out) {
  std::string text;
  if (!Read(key, &text)) return false;
  size_t i = 0;
  for (const std::string_view choice : choices) {
    if (choice == text) {
      *out = i;
      return true;
    }
    ++i;
  }
  Wrong(key, "\"" + text + "\"", fmt::format("must be one of {}", Listed(choices)));
  return false;
}

void TomlTable::RefuseOthers(std::initializer_list<std::string_view> others) {
  for (const std::string_view other : others) read_.emplace(other);
  for (const auto& [key, node] : table_)
    if (!read_.contains(key.str()))
      Wrong(key.str(), TextOf(node), fmt::format("is no key here: there are {}", Listed(read_)));
}

}  // namespace vgpud::tools
