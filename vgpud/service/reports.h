// SPDX-License-Identifier: Apache-2.0
// Tells the service manager again and again that this process works, and in a line what it does. It works as long as
// its main loop runs and every scheduler thread answers: one that hangs is noticed, though all else goes on. Main
// thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/event_loop.h"

namespace vgpud::daemon {

class ServiceReports {
 public:
  struct Source {
    std::function<std::string()> status;
    // Calls its argument, on the main thread, when all scheduler threads have done something.
    std::function<void(std::function<void()>)> ask_schedulers;
  };
  // Null: there is no service manager that wants to know. `loop` outlives this.
  static std::unique_ptr<ServiceReports> Start(EventLoop& loop, Source source);

 private:
  ServiceReports(EventLoop& loop, Source source);
  void Tick();

  const Source source_;
  const bool watched_;
  const std::chrono::nanoseconds every_;
  std::string status_;            // as it was told last
  std::shared_ptr<bool> asking_;  // an answer is still to come
  const EventLoop::WatchPtr timer_;
};

}  // namespace vgpud::daemon
