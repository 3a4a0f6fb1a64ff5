// SPDX-License-Identifier: Apache-2.0
// Small files that must not be lost or half there: each is replaced as a whole, and is on the disk before a call
// returns. After a kill or a power cut at any moment each holds what the last finished call wrote, or what the
// interrupted one was to write. Waits for the disk; one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"

namespace vgpud::daemon {

class StateFiles {
 public:
  static constexpr size_t kMostBytes = 64 * 1024;
  static constexpr size_t kMostFiles = 4096;

  // Takes the directory for this process alone, and makes it if it is not there. It and the way to it must be safe
  // (private_dir.h). `what` and `option` ("--state-dir") are for errors.
  [[nodiscard]] static Result<std::unique_ptr<StateFiles>> Open(const std::string& directory, const std::string& what,
                                                                const std::string& option);
  struct File {
    std::string name;
    Result<std::string> text;  // or why it is not believed: not ours, others may write it, too long, unreadable
  };
  // Those that end in `suffix`, in the order of their names. What an interrupted Replace left behind is removed.
  [[nodiscard]] Result<std::vector<File>> ReadAll(const std::string& suffix);
  // One of them. `name`: no '/', not hidden.
  [[nodiscard]] Result<std::string> Read(const std::string& name) const;
  // `name`: no '/', not hidden.
  [[nodiscard]] Result<void> Replace(const std::string& name, const std::string& text);
  // One that is not there is no error.
  [[nodiscard]] Result<void> Remove(const std::string& name);
  const std::string& directory() const { return path_; }

 private:
  StateFiles(std::string path, UniqueFd directory) : path_(std::move(path)), directory_(std::move(directory)) {}
  Result<void> Sync() const;

  const std::string path_;
  const UniqueFd directory_;
};

}  // namespace vgpud::daemon
