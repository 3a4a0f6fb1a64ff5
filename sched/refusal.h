// SPDX-License-Identifier: Apache-2.0
// A setting that is refused, and which of the fields that made it could be changed to mend it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace vgpud {

struct Refusal : Error {
  std::vector<std::string_view> fields;  // as the control API names them, the likeliest first
};
using Checked = tl::expected<void, Refusal>;
inline tl::unexpected<Refusal> Refuse(std::string context, std::vector<std::string_view> fields) {
  return tl::unexpected(Refusal{{std::errc::invalid_argument, std::move(context)}, std::move(fields)});
}

}  // namespace vgpud
