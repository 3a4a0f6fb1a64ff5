// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/yaml.h"

#include <algorithm>
#include <string_view>

namespace vgpud::tools {
namespace {

// No YAML takes such a word for anything but a string: letters first, and none of those that stand for a value.
bool IsPlainWord(std::string_view text) {
  constexpr std::string_view kWords[] = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"};
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  const auto is_letter = [&](char c) { return lower(c) >= 'a' && lower(c) <= 'z'; };
  if (text.empty() || !(is_letter(text[0]) || text[0] == '/')) return false;
  const bool simple = std::all_of(text.begin(), text.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || std::string_view("-_./").find(c) != std::string_view::npos;
  });
  std::string word(text);
  std::transform(word.begin(), word.end(), word.begin(), lower);
  return simple && std::find(std::begin(kWords), std::end(kWords), word) == std::end(kWords);
}

// A string of JSON is one of YAML, too.
std::string Scalar(const CtlJson& value) {
  if (value.is_string() && IsPlainWord(value.get_ref<const std::string&>())) return value.get<std::string>();
  return value.dump(-1, ' ', true, CtlJson::error_handler_t::replace);
}

void Put(const CtlJson& value, size_t indent, std::string* out) {
  for (const auto& item : value.items()) {
    const CtlJson& child = item.value();
    out->append(indent, ' ');
    *out += value.is_array() ? "-" : Scalar(item.key()).append(":");
    if (!child.is_structured() || child.empty()) {
      *out += Scalar(child).insert(0, 1, ' ').append("\n");
      continue;
    }
    std::string block;
    Put(child, indent + 2, &block);
    // The first member of an item stands behind its dash.
    if (value.is_array())
      block.replace(0, indent + 2, 1, ' ');
    else
      block.insert(0, 1, '\n');
    *out += block;
  }
}

}  // namespace

std::string ToYaml(const CtlJson& value) {
  if (!value.is_structured() || value.empty()) return Scalar(value) + "\n";
  std::string out;
  Put(value, 0, &out);
  return out;
}

std::string DataText(Format format, const CtlJson& value) {
  if (format == Format::kYaml) return ToYaml(value);
  return value.dump(2, ' ', true, CtlJson::error_handler_t::replace) + "\n";
}

}  // namespace vgpud::tools
