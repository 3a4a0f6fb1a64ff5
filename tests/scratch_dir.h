// SPDX-License-Identifier: Apache-2.0
// A directory for one test, below /tmp, so that paths of sockets in it are short enough.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace vgpud {

class ScratchDir {
 public:
  ScratchDir() {
    if (::mkdtemp(path_.data()) != nullptr) return;
    std::perror("mkdtemp /tmp/vgpud-XXXXXX");
    std::abort();
  }
  // With all that is in it.
  ~ScratchDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDir(const ScratchDir&) = delete;
  ScratchDir& operator=(const ScratchDir&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/vgpud-XXXXXX";
};

}  // namespace vgpud
