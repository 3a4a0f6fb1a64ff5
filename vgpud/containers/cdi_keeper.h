// SPDX-License-Identifier: Apache-2.0
// Keeps a file of the Container Device Interface (cdi.h) as the VFs are, for as long as it lives. Main thread; the file
// itself is written on a thread of its own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "vgpud/containers/cdi.h"
#include "vgpud/host/worker.h"

namespace vgpud::daemon {

class CdiKeeper {
 public:
  using Vfs = std::function<std::vector<CdiDevice::Vf>()>;
  // The directory of `file` is made if it is missing. Error: it is not one that only this user may write to. `loop`,
  // `replies` and what `vfs` needs outlive this.
  [[nodiscard]] static Result<std::unique_ptr<CdiKeeper>> Open(EventLoop& loop, TaskQueue& replies, std::string file,
                                                               Vfs vfs);
  // The file is gone afterwards, unless the disk does not answer within a second.
  ~CdiKeeper();
  CdiKeeper(const CdiKeeper&) = delete;
  CdiKeeper& operator=(const CdiKeeper&) = delete;

  // VFs may have come or gone. The file follows when the loop has done what it does now; an error is logged, once until
  // it is another one, and the next change tries again.
  void Changed();

 private:
  CdiKeeper(EventLoop& loop, TaskQueue& replies, std::string file, Vfs vfs);
  void Write();
  void Finish(const std::string& text, const std::string& problem);

  EventLoop& loop_;
  const std::string file_;
  const Vfs vfs_;
  Worker writer_;
  EventLoop::WatchPtr soon_;
  bool writing_ = false;
  bool again_ = false;                  // VFs have changed since the text that is being written
  std::optional<std::string> written_;  // nothing: what an earlier vgpud has left there is not known
  std::string problem_;
};

}  // namespace vgpud::daemon
