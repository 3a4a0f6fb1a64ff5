// SPDX-License-Identifier: Apache-2.0
// The log in systemd's journal, with fields: `journalctl VGPU_VF=guest-a`. Its native protocol is one datagram for each
// line, so no library is needed, and vgpud's children, which write to pipes, have no part in it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/log.h"

namespace vgpud::daemon {

inline constexpr const char* kJournalSocket = "/run/systemd/journal/socket";

// If stderr is the journal ($JOURNAL_STREAM), lines go there as fields from now on, and to stderr as ever when it takes
// none. Once, at start, before threads. Whether it is.
bool LogToJournal(const std::string& socket = kJournalSocket);

// A line of the log as the journal takes it. MESSAGE, PRIORITY, SYSLOG_IDENTIFIER, and VGPU_... for each of the words
// vf=, channel=, pid= and gpu= that it begins with. `level`: of a line of another process, whose `origin` then says
// which, it is not known.
std::string JournalFields(std::optional<LogLevel> level, std::string_view origin, std::string_view text);

}  // namespace vgpud::daemon
