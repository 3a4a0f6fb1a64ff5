// SPDX-License-Identifier: Apache-2.0
// Lists the system calls that a jail of kExecDriver has no row for: they are refused as without a watch, and their
// names kept.
#pragma once

#include <set>
#include <string>

#include "base/fd.h"

namespace vgpud {

class Refusals {
 public:
  // `watched`: from EnterJail(JailKind::kExecDriver, JailWatch::kAsk), in the process that watches.
  explicit Refusals(UniqueFd watched) : watched_(std::move(watched)) {}

  // Readable while a call waits; hung up when the last process in the jail has ended.
  int fd() const { return watched_.get(); }
  // Refuses the call that waits, if there is one.
  void Answer();
  const std::set<std::string>& names() const { return names_; }

 private:
  UniqueFd watched_;
  std::set<std::string> names_;
};

}  // namespace vgpud
