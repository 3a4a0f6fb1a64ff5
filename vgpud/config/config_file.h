// SPDX-License-Identifier: Apache-2.0
// Configuration files (TOML): every flag that outlives a start is a key, with '_' for '-', in the table of its group:
//
//   [gpu]
//   soft_gpu_threads = 2
//   [event_budget]
//   opens = 20
//   [profile.small]
//   vram = "1GiB"
//
// Nothing else may stand there. Main thread, before anything is served.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "vgpud/config/flags.h"

namespace vgpud::daemon {

// The files that count, in order: `file`, then those of FILE.d that end in .toml, by name. `needed`: an error when
// there is no `file`.
[[nodiscard]] Result<std::vector<std::string>> FindConfigFiles(const std::string& file, bool needed);

struct FileValue {
  FlagValue value;
  std::string key;    // "gpu.base_slice_us"
  std::string where;  // FILE:LINE
};
// The values in `path`, in its order; each is one that its flag may have. The error has a line for each thing that is
// wrong: file, line, column, what it is and what may stand there. `known`: an app that AddFlags has filled.
[[nodiscard]] Result<std::vector<FileValue>> ReadConfigFile(const std::string& path, const CLI::App& known);

}  // namespace vgpud::daemon
