// SPDX-License-Identifier: Apache-2.0
// Waiting for several answers that come in any order. One thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

namespace vgpud::daemon {

// Returns what each of `answers` calls once; `done` runs inside the last of these calls, at once if there are none.
[[nodiscard]] inline std::function<void()> WhenAll(size_t answers, std::function<void()> done) {
  if (answers == 0) done();
  return [left = std::make_shared<size_t>(answers), done = std::move(done)] {
    if (--*left == 0) done();
  };
}

}  // namespace vgpud::daemon
