// SPDX-License-Identifier: Apache-2.0
// Which vgpud is asked, and for how long.
#pragma once

#include <chrono>
#include <string>

namespace vgpud::tools {

struct Contact {
  std::string runtime_dir;  // empty = default
  std::chrono::milliseconds timeout{10'000};
  bool follow = false;           // the answer goes on for as long as vgpud and this program run
  bool wait_for_daemon = false;  // a daemon that does not serve yet is waited for, within timeout
};

}  // namespace vgpud::tools
