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

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
}

namespace vgpud::daemon {

// The files that count, in order: `file`, then those of FILE.d that end in .toml, by name. `needed`: an error when
// there is no `file`.
[[nodiscard]] Result<std::vector<std::string>> FindConfigFiles(const std::string& file, bool needed);

// What a flag like "--policy=strict" is refused with, if it is.
using RefusesFlag = std::function<std::optional<std::string>(const std::string& flag)>;

// The flags that `path` stands for, in its order. The error has a line for each thing that is wrong: file, line,
// column, what it is and what may stand there. `known`: an app that AddFlags has filled.
struct FileFlag {
  std::string flag;   // "--base-slice-us=4000"
  std::string key;    // "gpu.base_slice_us"
  std::string where;  // FILE:LINE
};
[[nodiscard]] Result<std::vector<FileFlag>> ReadConfigFile(const std::string& path, const CLI::App& known,
                                                           const RefusesFlag& refuses);

}  // namespace vgpud::daemon
