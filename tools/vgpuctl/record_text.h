// SPDX-License-Identifier: Apache-2.0
// Events and lines of logs, as vgpud answers them, for people.
#pragma once

#include <string>

#include "tools/vgpuctl/ask.h"

namespace vgpud::tools {

// One line of an event, without its end: time, kind, VF or GPU, and what happened.
std::string EventText(const CtlJson& event);
// The same of a line that a process of a VF logged: time, pid, and what it said.
std::string LogLineText(const CtlJson& line);

}  // namespace vgpud::tools
