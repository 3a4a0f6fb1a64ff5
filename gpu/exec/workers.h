// SPDX-License-Identifier: Apache-2.0
// The threads of an executor that do not map guest memory. They have a jail of their own (JailKind::kExecWorkers),
// which a thread can only have from its parent: one that does nothing else starts them all.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/fd.h"
#include "base/jail/jail.h"
#include "base/result.h"

namespace vgpud::exec {

class Workers {
 public:
  // Starts that first thread and waits until it is in its jail. It lives as long as the process. It and those that it
  // starts stay off processor `avoid`, where there is another; in the jail they can't choose. No `watch`: they enter no
  // jail of their own, because the caller enters one for all threads (JailKind::kExecDriver).
  // `nested`: as EnterJail.
  [[nodiscard]] static Result<Workers> Start(std::optional<JailWatch> watch, std::optional<uint32_t> avoid,
                                             bool nested = false);
  // The watch of their jail (EnterJail), once.
  [[nodiscard]] UniqueFd TakeWatch();
  // Runs `main` in a new thread of them.
  void Run(std::function<void()> main);

 private:
  struct Shared;
  explicit Workers(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  std::shared_ptr<Shared> shared_;
};

}  // namespace vgpud::exec
