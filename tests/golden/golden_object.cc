// SPDX-License-Identifier: Apache-2.0
// Texture and surface objects of golden tests.
#include <algorithm>
#include <cstdlib>

#include "tests/golden/golden.h"

namespace vgpud::golden {
namespace {

constexpr std::string_view kShapes[] = {"1d", "2d", "3d", "cube", "linear", "pitched"};

struct NumberField {
  std::string_view name;
  uint32_t Object::*field;
};
constexpr NumberField kNumbers[] = {
    {"width", &Object::width},       {"height", &Object::height},   {"depth", &Object::depth},
    {"images", &Object::images},     {"levels", &Object::levels},   {"format", &Object::format},
    {"channels", &Object::channels}, {"address", &Object::address},
};
struct FlagField {
  std::string_view name;
  bool Object::*field;
};
constexpr FlagField kFlags[] = {
    {"layered", &Object::layered},       {"linear", &Object::linear},         {"mip_linear", &Object::mip_linear},
    {"normalized", &Object::normalized}, {"read_float", &Object::read_float}, {"srgb", &Object::srgb},
};
struct FloatField {
  std::string_view name;
  float Object::*field;
};
constexpr FloatField kFloats[] = {{"bias", &Object::bias}, {"lowest", &Object::lowest}, {"highest", &Object::highest}};

template <class Table>
auto FindField(const Table& table, std::string_view name) {
  const auto* row = std::find_if(std::begin(table), std::end(table), [&](const auto& r) { return r.name == name; });
  return row == std::end(table) ? nullptr : row;
}

bool Set(Object& o, const std::string& word) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos) return false;
  const std::string_view name = std::string_view(word).substr(0, equals);
  const std::string value = word.substr(equals + 1);
  char* end = nullptr;
  if (name == "shape") {
    const auto* shape = std::find(std::begin(kShapes), std::end(kShapes), value);
    o.shape = static_cast<Object::Shape>(shape - std::begin(kShapes));
    return shape != std::end(kShapes);
  }
  if (const auto* number = FindField(kNumbers, name)) {
    o.*number->field = static_cast<uint32_t>(std::strtoul(value.c_str(), &end, 10));
  } else if (const auto* flag = FindField(kFlags, name)) {
    o.*flag->field = std::strtoul(value.c_str(), &end, 10) != 0;
  } else if (const auto* real = FindField(kFloats, name)) {
    o.*real->field = std::strtof(value.c_str(), &end);
  } else if (name.size() == 7 && name.substr(0, 6) == "border" && name[6] >= '0' && name[6] <= '3') {
    o.border[name[6] - '0'] = std::strtof(value.c_str(), &end);
  }
  return end != nullptr && *end == 0;
}

bool ParseBytes(const std::string& text, std::vector<uint8_t>& bytes) {
  if (text.size() % 2 != 0) return false;
  for (size_t n = 0; n < text.size(); n += 2) {
    const std::string digits = text.substr(n, 2);
    char* end = nullptr;
    bytes.push_back(static_cast<uint8_t>(std::strtoul(digits.c_str(), &end, 16)));
    if (*end != 0) return false;
  }
  return true;
}

}  // namespace

uint32_t TexelBytes(const Object& o) {
  constexpr uint32_t kUnknown = 0;
  constexpr struct {
    uint32_t format, bytes;
  } kFormats[] = {{0x01, 1}, {0x02, 2}, {0x03, 4}, {0x08, 1}, {0x09, 2}, {0x0a, 4}, {0x10, 2}, {0x20, 4}};
  for (const auto& f : kFormats)
    if (f.format == o.format) return f.bytes * o.channels;
  return kUnknown;
}

Extent ExtentOf(const Object& o, uint32_t level) {
  Extent e{std::max(o.width >> level, 1u), std::max(o.height >> level, 1u), std::max(o.depth >> level, 1u), 0};
  e.bytes = size_t{e.width} * e.height * e.depth * o.images * TexelBytes(o);
  return e;
}

bool ParseObjectLine(const std::vector<std::string>& words, Form& form) {
  if (words[0] == "object") {
    Object& o = form.object.emplace();
    if (words.size() < 2 || (words[1] != "texture" && words[1] != "surface")) return false;
    o.surface = words[1] == "surface";
    return std::all_of(words.begin() + 2, words.end(), [&](const std::string& w) { return Set(o, w); }) &&
           TexelBytes(o) != 0;
  }
  if (!form.object || words.size() != 2) return false;
  Object& o = *form.object;
  size_t wanted = ExtentOf(o, 0).bytes;
  std::vector<uint8_t>& bytes = words[0] == "texels" ? o.texels : o.after;
  if (words[0] == "texels")
    for (uint32_t level = 1; level < o.levels; ++level) wanted += ExtentOf(o, level).bytes;
  return ParseBytes(words[1], bytes) && bytes.size() == wanted;
}

std::string CompareObject(const Form& f, const std::vector<uint8_t>& texels) {
  if (texels == f.object->after) return "";
  const auto [got, wanted] =
      std::mismatch(texels.begin(), texels.end(), f.object->after.begin(), f.object->after.end());
  if (got == texels.end() || wanted == f.object->after.end()) return "  " + f.name + ": another size of the object\n";
  return "  " + f.name + ": byte " + std::to_string(got - texels.begin()) + " of the object is " +
         std::to_string(*got) + " after the kernel, expected " + std::to_string(*wanted) + "\n";
}

}  // namespace vgpud::golden
