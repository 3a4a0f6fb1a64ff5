// SPDX-License-Identifier: Apache-2.0
#include "vgpud/model/named_setting.h"

#include <fmt/core.h>

#include "vgpud/model/api.h"

namespace vgpud::daemon {

Result<NamedSetting> ParseNamedSetting(std::string_view kind, std::string_view text, std::string_view example) {
  const size_t dot = text.find('.');
  const size_t equals = text.find('=', dot == std::string_view::npos ? 0 : dot);
  if (dot == std::string_view::npos || equals == std::string_view::npos)
    return Fail(std::errc::invalid_argument,
                fmt::format("\"{}\" is not NAME.KEY=VALUE (write it like {})", text, example));
  NamedSetting setting{std::string(text.substr(0, dot)), text.substr(dot + 1, equals - dot - 1),
                       text.substr(equals + 1)};
  if (!control::IsValidName(setting.name))
    return Fail(std::errc::invalid_argument,
                fmt::format("{} name \"{}\" is not usable: 1 to {} characters a-z, 0-9 and -, the first not -", kind,
                            setting.name, control::kMaxNameBytes));
  return setting;
}

}  // namespace vgpud::daemon
