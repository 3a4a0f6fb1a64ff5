// SPDX-License-Identifier: Apache-2.0
// Keeps state files (state_files.h) from the main thread, which never waits for the disk: a thread of its own writes,
// and of several changes to one file that have come meanwhile only the last. Main thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vgpud/host/worker.h"
#include "vgpud/state/state_files.h"

namespace vgpud::daemon {

class StateKeeper {
 public:
  using Done = std::function<void(const Result<void>&)>;
  // `replies` is of this thread and outlives this.
  StateKeeper(std::string directory, std::string suffix, TaskQueue& replies);
  ~StateKeeper();
  StateKeeper(const StateKeeper&) = delete;
  StateKeeper& operator=(const StateKeeper&) = delete;

  // Takes the directory and reads its files, once. Waits for the disk, at most `limit`. When it cannot be used there
  // are none, and problem() says why.
  std::vector<StateFiles::File> Open(Ns limit, const std::string& what, const std::string& option);
  // Why nothing can be kept; empty: it can.
  const std::string& problem() const { return problem_; }

  // `done` when that, or something newer about the same file, is on the disk, or why it is not. At once if the disk has
  // it already, or with problem(), if there is one.
  void Put(const std::string& name, std::string text, Done done);
  void Remove(const std::string& name, Done done);
  // `done` with what the file has when all changes before are on the disk, or why it is not believed.
  void Read(const std::string& name, std::function<void(const Result<std::string>&)> done);
  // Files that it remembers: those that are there, however many have been.
  size_t remembered() const { return kept_.size(); }
  // `done` when nothing is left to write: at once, if so.
  void WhenIdle(std::function<void()> done);
  // Gives up what the disk has not taken within `limit`.
  void Leave(Ns limit) { (void)worker_.Leave(limit); }

 private:
  using Text = std::optional<std::string>;  // nullopt: to be removed
  struct Wanted {
    Text text;
    std::vector<Done> waiting;
  };
  void Want(const std::string& name, Text text, Done done);
  void WriteNext();

  const std::string directory_;
  const std::string suffix_;
  std::string problem_ = "it was not opened";
  std::shared_ptr<StateFiles> files_;        // of the worker's thread, once they are opened
  std::map<std::string, std::string> kept_;  // what the disk has, as far as it is known
  std::map<std::string, Wanted> next_;
  bool writing_ = false;
  std::vector<std::function<void()>> when_idle_;
  Worker worker_;
};

}  // namespace vgpud::daemon
