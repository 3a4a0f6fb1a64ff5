// SPDX-License-Identifier: Apache-2.0
// The thread that switches executors' channels off and on for the scheduler thread, which must not wait for a driver.
// It is told what is wanted and says what is; there is no queue, so nothing of what was wanted before is done late.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mapping.h"
#include "gpu/channels/channel_turn.h"

namespace vgpud::daemon {

// Control files and board of one executor (gpu/channels/channel_teller.h).
struct ChannelSource {
  std::vector<UniqueFd> files;
  Mapping board;
  std::string name;      // for the log
  bool resumed = false;  // an earlier vgpud may have left it switched off
};

class ChannelWorker {
 public:
  // Of one executor, since it is known. Grow only.
  struct Counts {
    uint64_t offs = 0;
    uint64_t newcomers = 0;
    uint64_t refusals = 0;
  };
  // One executor's, for the scheduler thread. The files are closed soon after it is gone.
  class Hold {
   public:
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    // Wanted from now on. `off`: true as soon as IsOff().
    void Want(bool off);
    // It is off the GPU, and stays so until it is wanted on.
    bool IsOff() const;
    // Neither wanted off nor off, nor on its way there or back.
    bool IsOn() const;
    rm::ChannelTurn::State state() const;
    Counts counts() const;
    // How long the last switch off took, since it was wanted.
    Ns took() const;

   private:
    friend class ChannelWorker;
    struct Shared;
    Hold(ChannelWorker& worker, std::shared_ptr<Shared> shared) : worker_(worker), shared_(std::move(shared)) {}
    ChannelWorker& worker_;
    const std::shared_ptr<Shared> shared_;
  };

  // `done`: something that was wanted has been done, or will not be; on the worker's thread.
  ChannelWorker(uint32_t driver_major, std::function<void()> done);
  ~ChannelWorker();
  ChannelWorker(const ChannelWorker&) = delete;
  ChannelWorker& operator=(const ChannelWorker&) = delete;

  // Any thread; the worker outlives what it returns.
  std::unique_ptr<Hold> Add(ChannelSource source);
  // The same, with files of any kind.
  std::unique_ptr<Hold> Add(std::unique_ptr<rm::ChannelTurn> turn, const std::string& name, Mapping board = {});

  // How long channels that are made while their executor is off can run at most before somebody looks.
  static constexpr Ns kLookEvery = std::chrono::milliseconds{1};

 private:
  using Shared = Hold::Shared;
  void Main();
  // True: there is more to do at once.
  bool Serve(Shared& shared);
  void WakeUp();

  const uint32_t driver_major_;
  const std::function<void()> done_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool woken_ = false, stop_ = false;
  std::vector<std::shared_ptr<Shared>> all_;
  std::thread thread_;
};

}  // namespace vgpud::daemon
