// SPDX-License-Identifier: Apache-2.0
// Answers of the daemon for people. For the sources of subcommands only: it brings the whole JSON library.
#pragma once

#include <string>

#include "tools/vgpuctl/ask.h"

namespace vgpud::tools {

// The value of a field of the API: in the unit of its knob, parts of the GPU in percent, "none" for null.
std::string Readable(const std::string& field, const CtlJson& value);
// One of the changes of an answer: "weight 100 -> 300".
std::string ChangeText(const CtlJson& change);
// The same in a line for people, where memory has a unit.
std::string ReadableChange(const std::string& field, const CtlJson& value);
// One field per line.
int PrintFields(const CtlJson& object);
// What a change did, or with dry_run would do. `name` is whose changes they are unless they say it themselves.
int PrintChange(const std::string& name, const CtlJson& answer);

}  // namespace vgpud::tools
