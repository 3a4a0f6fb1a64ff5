// SPDX-License-Identifier: Apache-2.0
// A channel to an executor: produces submissions, consumes completions, sleeps only when there is nothing to do.
// The ring protocol is that of uapi/vgpu_abi.h. All functions may be called from any thread.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "guest-driver-shim/libcuda/channel/payload_ring.h"
#include "guest-driver-shim/libcuda/channel/spin_time.h"
#include "guest-driver-shim/libcuda/channel/transport.h"
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
  uint64_t max_span() const { return payload_.max_span(); }

  // Submits and does not wait. Blocks only while the ring or the payload area is full. Returns the sticky error, else
  // success: how the operation itself ends is told by a later call.
  CUresult Post(const Command& command, std::span<const std::byte> payload = {});

  // Submits and waits for the end of the operation. `payload` is sent; when `answer` is not empty, as many bytes are
  // copied back from the same span. Each at most max_span() bytes.
  Completion Call(const Command& command, std::span<const std::byte> payload = {}, std::span<std::byte> answer = {});

  // Writes what kernels have printed to this process' stdout and stderr. Cheap when there is nothing. Every Call and
  // WaitEvent ends with it, as every synchronisation of CUDA does.
  void PrintOutput();
  // Has any kernel printed, since ForgetPrinted if that was called?
  bool HasPrinted() const;
  void ForgetPrinted() { has_printed_.store(false); }

  // Has `generation` been recorded in the event slot? And when (host clock, ns; 0 = not yet)?
  bool EventReached(uint32_t slot, uint64_t generation) const;
  uint64_t EventTime(uint32_t slot) const;
  // Waits for it. The sticky error if that comes first.
  CUresult WaitEvent(uint32_t slot, uint64_t generation);

  // Opens a gate up to `generation`: work behind a GATE_WAIT for it goes on.
  void OpenGate(uint32_t gate, uint64_t generation);

  // The error that poisons every later call, CUDA_SUCCESS if there is none. Cheap.
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
  const vgpu_event_slot& slot(uint32_t index) const;
  std::byte* PayloadAt(uint64_t position) const;
  bool SpaceInRing() const;
  Submitted Submit(const Command& command, std::span<const std::byte> payload, uint32_t span, bool wait, bool hold);
  Completion Exchange(const Command& command, std::span<const std::byte> payload, std::span<std::byte> answer);
  CUresult Poisoned() const;
  void Publish(const Command& command, uint64_t position, uint32_t span, uint32_t flags);
  void WaitUntil(const std::function<bool()>& ready, int recheck_ms);
  void SleepUntilNews(const std::function<bool()>& ready, int recheck_ms);
  void Drain();
  void SayLost();

  std::unique_ptr<Transport> transport_;
  bool usable_ = false;
  uint64_t payload_bytes_ = 0;

  std::mutex submit_mutex_;  // order of submissions
  uint32_t sq_tail_ = 0;
  uint64_t next_seqno_ = 1;
  uint32_t posted_in_a_row_ = 0;
  std::array<std::atomic<uint64_t>, 64> stream_work_{};
  std::atomic<uint64_t> all_work_{0};
  std::atomic<uint64_t> legacy_done_{0};
  std::mutex payload_mutex_;
  PayloadRing payload_;

  std::mutex mutex_;  // everything below
  std::condition_variable news_;
  bool someone_sleeps_ = false;
  SpinTime spin_;  // of that one
  std::atomic<uint32_t> cq_head_{0};
  struct Answer {
    bool arrived = false;
    Completion completion;
  };
  std::unordered_map<uint64_t, Answer> answers_;  // by seqno, one per waiting Call
  std::vector<const std::function<bool()>*> waits_;

  std::mutex print_mutex_;
  std::atomic<bool> has_printed_{false};

  std::atomic<bool> lost_{false};
  std::atomic<bool> told_{false};
  std::atomic<CUresult> posted_error_{CUDA_SUCCESS};
};

}  // namespace vgpud::cuda
