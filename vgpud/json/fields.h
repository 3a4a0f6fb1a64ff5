// SPDX-License-Identifier: Apache-2.0
// JSON that somebody else wrote, as checked fields: an error names the field, and what it may be. For sources that
// parse requests or files only.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "vgpud/model/api_error.h"

namespace vgpud::daemon {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;  // what is written keeps its order

// As errors show it: its text, cut after 40 characters.
std::string Quoted(const Json& value);
// A JSON object without duplicate keys, in it or in the objects within it. `what` is parsed, for errors.
ApiResult<Json> ParseObject(std::string_view body, const char* what = "the request body");
// The same of a request without unknown keys.
ApiResult<Json> ParseObject(std::string_view body, const std::set<std::string>& known);
ApiResult<void> CheckKnown(const Json& object, const std::set<std::string>& known);
// `usual`, where `object` does not have it.
ApiResult<bool> ParseFlag(const Json& object, const char* field, bool usual);
// Only where `object` has it.
ApiResult<std::string> ParseText(const Json& object, const char* field);

}  // namespace vgpud::daemon
