// SPDX-License-Identifier: Apache-2.0
// JSON as YAML 1.2, in blocks. For the sources of subcommands only: it brings the whole JSON library.
#pragma once

#include <string>

#include "tools/vgpuctl/knobs.h"
#include "tools/vgpuctl/view.h"

namespace vgpud::tools {

// Each member in a line of its own. Strings are in quotes wherever YAML 1.1 or 1.2 could take them for something else.
std::string ToYaml(const CtlJson& value);
// As JSON, or as YAML.
std::string DataText(Format format, const CtlJson& value);

}  // namespace vgpud::tools
