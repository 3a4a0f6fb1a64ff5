// SPDX-License-Identifier: Apache-2.0
// Another place for the log than stderr.
#pragma once

#include <optional>
#include <string_view>

#include "base/log.h"

namespace vgpud {

// Gets each line before stderr is tried. `text` is escaped. `level`: empty for a line that another process wrote, and
// `origin` then says which. False: it is not taken. Any thread; it logs nothing itself.
using LogSink = bool (*)(std::optional<LogLevel> level, std::string_view origin, std::string_view text);
// Once at start, before threads exist.
void SetLogSink(LogSink sink);

}  // namespace vgpud
