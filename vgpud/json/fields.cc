// SPDX-License-Identifier: Apache-2.0
#include "vgpud/json/fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "vgpud/model/api.h"

namespace vgpud::daemon {
namespace {

constexpr int kMaxDepth = 16;  // a request has 3

// How deep objects and arrays lie within each other in `body`, which need not be JSON. Looked at before it is parsed:
// what is parsed is compared, printed and freed by functions that call themselves once for each level.
int DepthOf(std::string_view body) {
  int depth = 0, deepest = 0;
  bool in_text = false;
  for (size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (in_text && c == '\\') ++i;
    if (c == '"') in_text = !in_text;
    if (in_text) continue;
    if (c == '{' || c == '[') deepest = std::max(deepest, ++depth);
    if (c == '}' || c == ']') --depth;
  }
  return deepest;
}

}  // namespace

std::string Quoted(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

ApiResult<Json> ParseObject(std::string_view body, const char* what) {
  std::vector<std::set<std::string>> seen;  // keys of the object that is open at each depth
  std::string duplicate;
  const auto on_event = [&](int depth, Json::parse_event_t event, Json& parsed) {
    const auto level = static_cast<size_t>(depth);
    if (event == Json::parse_event_t::object_start) seen.resize(level);
    if (event != Json::parse_event_t::key) return true;
    seen.resize(level);
    if (!seen.back().insert(parsed.get<std::string>()).second) duplicate = parsed.get<std::string>();
    return true;
  };
  if (body.size() > control::kMaxBodyBytes)
    return ApiFail(ErrorKind::kTooLarge,
                   fmt::format("{} has {} bytes, more than {}", what, body.size(), control::kMaxBodyBytes));
  if (const int depth = DepthOf(body); depth > kMaxDepth)
    return ApiFail(ErrorKind::kInvalid, fmt::format("{} nests {} levels deep, more than {}", what, depth, kMaxDepth));
  Json object;
  try {
    object = Json::parse(body, on_event);
  } catch (const Json::exception& e) {
    return ApiFail(ErrorKind::kInvalid,
                   fmt::format("{} is not JSON: {}", what, std::string_view(e.what()).substr(0, 200)));
  }
  if (!object.is_object()) return ApiFail(ErrorKind::kInvalid, fmt::format("{} must be a JSON object", what));
  if (!duplicate.empty())
    return ApiFail(ErrorKind::kInvalid, fmt::format("{} is given twice", Quoted(duplicate)), duplicate);
  return object;
}

ApiResult<void> CheckKnown(const Json& object, const std::set<std::string>& known) {
  for (const auto& item : object.items())
    if (known.count(item.key()) == 0) {
      std::string names;
      for (const auto& name : known) names += (names.empty() ? "" : ", ") + name;
      return ApiFail(ErrorKind::kInvalid, fmt::format("unknown field {} (known: {})", Quoted(item.key()), names),
                     item.key());
    }
  return {};
}

ApiResult<Json> ParseObject(std::string_view body, const std::set<std::string>& known) {
  auto object = ParseObject(body);
  if (!object) return object;
  if (const auto ok = CheckKnown(*object, known); !ok) return tl::unexpected(ok.error());
  return object;
}

ApiResult<bool> ParseFlag(const Json& object, const char* field, bool usual) {
  const auto it = object.find(field);
  if (it == object.end()) return usual;
  if (!it->is_boolean())
    return ApiFail(ErrorKind::kInvalid, fmt::format("{} must be true or false, not {}", field, Quoted(*it)), field);
  return it->get<bool>();
}

ApiResult<std::string> ParseText(const Json& object, const char* field) {
  const Json& value = object[field];
  if (!value.is_string())
    return ApiFail(ErrorKind::kInvalid, fmt::format("{} must be text, not {}", field, Quoted(value)), field);
  return value.get<std::string>();
}

}  // namespace vgpud::daemon
