// SPDX-License-Identifier: Apache-2.0
// A channel to an executor: produces submissions, consumes completions, sleeps only when there is nothing to do.
// The ring protocol is that of uapi/vgpu_abi.h. All functions may be called from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/locks/mutex.h"
#include "guest-driver-shim/libcuda/channel/backlog.h"
#include "guest-driver-shim/libcuda/channel/function_ref.h"
#include "guest-driver-shim/libcuda/channel/lock_ranks.h"
#include "guest-driver-shim/libcuda/channel/payload_ring.h"
#include "guest-driver-shim/libcuda/channel/spin_time.h"
#include "guest-driver-shim/libcuda/channel/transport.h"
#include "guest-driver-shim/libcuda/channel/turns.h"
#include "guest-driver-shim/libcuda/generated/cuda_api.h"

namespace vgpud::cuda {

struct Command {
  uint32_t op = 0;
  uint32_t stream = 0;
  uint64_t args[4] = {};
};

struct Completion {
  CUresult status = CUDA_SUCCESS;
  uint64_t value[6] = {};
};

class Channel {
 public:
  explicit Channel(std::unique_ptr<Transport> transport);

  // False when the area is too small or speaks another ABI version.
  bool usable() const { return usable_; }
  Transport& transport() { return *transport_; }
  uint64_t max_span() const { return max_span_; }

  // Submits and does not wait. Blocks only while the ring or the payload area is full, or the stream has its share of
  // the host's room (backlog.h). Returns the sticky error, else success: how the operation itself ends is told by a
  // later call. The caller holds no mutex that anybody needs who makes room (lock_ranks.h); nothing is held here either
  // while there is none.
  CUresult Post(const Command& command, std::span<const std::byte> payload = {});
  // Submits a few of one stream without payload, and nothing of other threads between them. When there is room for all,
  // `submitting` is called, in the order of submission: it may fill in their arguments, and after it nothing fails. It
  // returns false for CUDA_ERROR_NOT_READY, and nothing is submitted. Not called with an error.
  CUresult PostTogether(std::span<const Command> commands, FunctionRef<bool()> submitting);

  // Submits and waits for the end of the operation. `payload` is sent; when `answer` is not empty, as many bytes are
  // copied back from the same span. Each at most max_span() bytes.
  Completion Call(const Command& command, std::span<const std::byte> payload = {}, std::span<std::byte> answer = {});

  // Writes what kernels have printed to this process' stdout and stderr. Cheap when there is nothing. Every Call ends
  // with it, as every synchronisation of CUDA does.
  void PrintOutput();
  // Has any kernel printed, since ForgetPrinted if that was called?
  bool HasPrinted() const;
  void ForgetPrinted() { has_printed_.store(false); }

  // Has `generation` been recorded in the event slot? And when (host clock, ns; 0 = not yet)?
  bool EventReached(uint32_t slot, uint64_t generation) const;
  uint64_t EventTime(uint32_t slot) const;
  // Waits until `ready`, which is asked when there is news of the device, by any thread that waits, and which takes no
  // mutex but those of lock_ranks.h below the channel's. Needs no room in the ring, and says nothing to the program:
  // the error that came first, if one did.
  CUresult Wait(FunctionRef<bool()> ready);

  Turns& turns() { return turns_; }

  // May work of some stream be waiting for more than work before it: a host function, an event, a word in memory?
  bool AnyHeld() const { return backlog_.AnyHeld(); }
  // Waits until what was to be freed while work was held is free. False: there was nothing.
  bool FreeDeferred();

  // Opens a gate up to `generation`: work behind a GATE_WAIT for it goes on.
  void OpenGate(uint32_t gate, uint64_t generation);

  // The error that poisons every later call, CUDA_SUCCESS if there is none. Cheap. The first to ask says it.
  CUresult Sticky();
  // The transport can't reach the device any more: the error that says so, from now on for every call.
  CUresult Broken();
  // A posted operation's error that no call has reported yet; reading it clears it.
  CUresult TakePostedError() { return posted_error_.exchange(CUDA_SUCCESS); }
  // An error of work that nobody waits for is told as that of a posted operation; the first one counts.
  void LeavePostedError(CUresult error) {
    CUresult none = CUDA_SUCCESS;
    posted_error_.compare_exchange_strong(none, error);
  }

  // How much has been submitted to streams whose number falls into the same class; equal answers mean: nothing since.
  uint64_t StreamWork(uint32_t stream) const { return stream_work_[stream % stream_work_.size()].load(); }

  // How much has been submitted to any stream.
  uint64_t AllWork() const { return all_work_.load(); }
  // A wait for the legacy stream, submitted when AllWork() was `before`, is over. Counts if nothing else was submitted.
  void LegacyStreamWasDone(uint64_t before) {
    if (AllWork() == before + 1) legacy_done_.store(before + 1);
  }
  // Nothing at all has been submitted since such a wait, so the legacy stream has nothing to wait for.
  bool LegacyStreamIsDone() const { return legacy_done_.load() == AllWork(); }

  // The device's last sentence about an error.
  std::string ErrorText() const;

 private:
  struct Submitted {
    CUresult status = CUDA_SUCCESS;
    uint64_t seqno = 0;
    uint64_t payload_pos = 0;
  };

  vgpu_channel_header& header() const { return *reinterpret_cast<vgpu_channel_header*>(transport_->area().data()); }
  vgpu_event_slot& slot(uint32_t index) const;
  std::byte* PayloadAt(uint64_t position) const;
  bool SpaceInRing(uint32_t entries = 1) const;
  // Of a Call that waits, on its stack.
  struct Answer {
    Backlog::Place place;
    bool arrived = false;
    Completion completion;
    Answer* next = nullptr;
  };
  // Of a thread that waits, on its stack.
  struct Waiting {
    explicit Waiting(FunctionRef<bool()> until) : ready(until) {}
    const FunctionRef<bool()> ready;
    CondVar news;  // it may go on, or has to sleep for the others
    Waiting* next = nullptr;
  };
  // What an entry needs beside itself.
  struct Wanted {
    std::span<const std::byte> payload;
    uint32_t span = 0;
    Answer* answer = nullptr;  // its completion is waited for
    bool hold = false;         // its payload, until the answer has been copied
    bool congested = false;    // it has waited for room
  };
  Submitted Submit(const Command& command, const Wanted& wanted);
  Submitted SubmitAdmitted(const Command& command, Wanted wanted);
  void PostDeferred();
  bool TrySubmit(const Command& command, const Wanted& wanted, Submitted* out) REQUIRES(submit_mutex_);
  bool TakeSpan(const Wanted& wanted, uint64_t* position);
  bool SpanFits(uint32_t span);
  CUresult LostOrPoisoned() const;
  Completion Exchange(const Command& command, std::span<const std::byte> payload, std::span<std::byte> answer);
  void Publish(const Command& command, uint64_t position, uint32_t span, uint32_t flags) REQUIRES(submit_mutex_);
  void Enter(const Command& command, uint64_t position, const Wanted& wanted) REQUIRES(submit_mutex_);
  void AwaitShare(uint32_t stream, uint64_t units);
  void AskForEnd(uint32_t stream);
  void WaitUntil(FunctionRef<bool()> ready, int recheck_ms) EXCLUDES(mutex_);
  void SleepUntilNews(FunctionRef<bool()> ready, int recheck_ms) EXCLUDES(mutex_);
  void WakeOthers() REQUIRES(mutex_);
  void Drain() REQUIRES(mutex_);
  void SayLost();

  std::unique_ptr<Transport> transport_;
  bool usable_ = false;
  uint64_t payload_bytes_ = 0;

  Mutex submit_mutex_{lock_rank::kSubmit};
  std::atomic<uint32_t> sq_tail_{0};
  uint64_t next_seqno_ GUARDED_BY(submit_mutex_) = 1;
  std::array<std::atomic<uint64_t>, 64> stream_work_{};
  std::atomic<uint64_t> all_work_{0};
  std::atomic<uint64_t> legacy_done_{0};
  Mutex payload_mutex_{lock_rank::kPayload};
  PayloadRing payload_ GUARDED_BY(payload_mutex_);

  Mutex mutex_{lock_rank::kChannel};
  bool someone_sleeps_ GUARDED_BY(mutex_) = false;
  SpinTime spin_;  // of that one
  std::atomic<uint32_t> cq_head_{0};
  Answer* answers_ GUARDED_BY(mutex_) = nullptr;
  std::vector<Backlog::Place> asked_ GUARDED_BY(mutex_);  // posts whose completion is to come, in their order
  Backlog backlog_;
  Waiting* waits_ GUARDED_BY(mutex_) = nullptr;

  // Output of kernels that this process has read and not yet written.
  struct Printed {
    std::unique_ptr<std::byte[]> piece;  // as large as one may be, from the first output on
    size_t bytes = 0;
    FILE* to = nullptr;
  };
  // Reads and writes all output, in order. Returns the stream that another thread of the program has locked, if that
  // stopped it; nullptr: nothing is left.
  FILE* WritePrinted() REQUIRES(print_mutex_);

  Mutex print_mutex_{lock_rank::kPrint};
  Printed printed_ GUARDED_BY(print_mutex_);
  std::atomic<bool> writes_{false};  // a thread has read output that is not written yet, or is about to
  std::atomic<bool> has_printed_{false};

  std::atomic<bool> lost_{false};
  std::atomic<bool> told_{false};
  std::atomic<CUresult> posted_error_{CUDA_SUCCESS};

  const uint64_t max_span_;
  std::vector<Command> deferred_ GUARDED_BY(mutex_);  // they need an idle host
  std::atomic<bool> any_deferred_{false};
  Turns turns_;
};

}  // namespace vgpud::cuda
