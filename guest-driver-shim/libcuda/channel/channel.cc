// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/channel/channel.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>

namespace vgpud::cuda {
namespace {

// The device raises no interrupt when it merely consumes: waiting for space looks again this often.
constexpr int kSpaceRecheckMs = 1;
constexpr int kRecheckMs = 1000;
// Whoever waits for a share asks some streams at a time for their ends.
constexpr int kAskAgainMs = 10;
constexpr CUresult kLostError = CUDA_ERROR_DEVICE_UNAVAILABLE;

// Those that wait for all work of the channel first, and keep the ring waiting (uapi/vgpu_abi.h).
bool NeedsIdleHost(uint32_t op) {
  return op == VGPU_OP_MEM_FREE || op == VGPU_OP_MODULE_UNLOAD || op == VGPU_OP_TEXTURE_DESTROY ||
         op == VGPU_OP_MEM_UNMAP;
}

template <class T>
T LoadAcquire(const T& place) {
  return std::atomic_ref<T>(const_cast<T&>(place)).load(std::memory_order_acquire);
}
template <class T>
void StoreRelease(T& place, T value) {
  std::atomic_ref<T>(place).store(value, std::memory_order_release);
}
template <class T>
T Take(T& place) {
  return std::atomic_ref<T>(place).exchange(0);
}
// Of what one thread at a time counts, and any may read.
void CountUp(std::atomic<uint64_t>& count) {
  count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}
void FullFence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

// Lists of what is on the stacks of those who wait: nothing is allocated while others hold locks, or in destructors.
template <class Node>
void PutIn(Node*& list, Node& node) {
  node.next = list;
  list = &node;
}
template <class Node>
void TakeOut(Node*& list, const Node& node) {
  Node** at = &list;
  while (*at != &node) at = &(*at)->next;
  *at = node.next;
}

// False: there is no memory.
template <class T>
bool MakeRoomFor(std::vector<T>& list, size_t more) {
  try {
    if (list.capacity() < list.size() + more) list.reserve(std::bit_ceil(list.size() + more));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

uint64_t UsablePayload(std::span<std::byte> area) {
  if (area.size() < VGPU_CHANNEL_MIN_BYTES) return 0x10000;
  const auto* header = reinterpret_cast<const vgpu_channel_header*>(area.data());
  return std::min<uint64_t>(header->payload_bytes, area.size() - VGPU_CHANNEL_PAYLOAD_OFFSET) & ~uint64_t{4095};
}

}  // namespace

Channel::Channel(std::unique_ptr<Transport> transport)
    : transport_(std::move(transport)),
      payload_bytes_(UsablePayload(transport_->area())),
      payload_(std::max<uint64_t>(payload_bytes_, 4096)),
      spin_(transport_->spin_range()),
      max_span_(PayloadRing(std::max<uint64_t>(payload_bytes_, 4096)).max_span()) {
  usable_ = transport_->area().size() >= VGPU_CHANNEL_MIN_BYTES && payload_bytes_ >= 0x10000 &&
            header().magic == VGPU_MAGIC && header().abi_version >= VGPU_ABI_OLDEST &&
            header().abi_version <= VGPU_ABI_VERSION;
}

vgpu_event_slot& Channel::slot(uint32_t index) const {
  return reinterpret_cast<vgpu_event_slot*>(transport_->area().data() + VGPU_CHANNEL_EVENTS_OFFSET)[index];
}

std::byte* Channel::PayloadAt(uint64_t position) const {
  return transport_->area().data() + VGPU_CHANNEL_PAYLOAD_OFFSET + position % payload_bytes_;
}

bool Channel::SpaceInRing(uint32_t entries) const {
  return sq_tail_.load(std::memory_order_relaxed) - LoadAcquire(header().sq_head) <= VGPU_SQ_ENTRIES - entries;
}

CUresult Channel::Sticky() {
  if (lost_.load(std::memory_order_relaxed)) return kLostError;
  if (LoadAcquire(header().state) == VGPU_CHANNEL_LOST) {
    SayLost();
    return kLostError;
  }
  const CUresult error = LostOrPoisoned();
  if (error != CUDA_SUCCESS && !told_.exchange(true)) {
    PrintOutput();
    // A failed assertion has said so in the output of its kernel.
    if (error != CUDA_ERROR_ASSERT) fprintf(stderr, "vgpud: %s\n", ErrorText().c_str());
  }
  if (error == CUDA_SUCCESS && told_.load(std::memory_order_relaxed)) told_.store(false, std::memory_order_relaxed);
  return error;
}

CUresult Channel::LostOrPoisoned() const {
  return lost_.load() ? kLostError : static_cast<CUresult>(LoadAcquire(header().sticky_error));
}

CUresult Channel::Broken() {
  if (const CUresult error = Sticky()) return error;
  SayLost();
  return kLostError;
}

void Channel::SayLost() {
  if (lost_.exchange(true)) return;
  const std::string text = ErrorText();
  fprintf(stderr, "vgpud: %s\n", text.empty() ? transport_->why_lost() : text.c_str());
}

std::string Channel::ErrorText() const {
  char text[sizeof header().error_text];
  memcpy(text, header().error_text, sizeof text);
  return std::string(text, strnlen(text, sizeof text));
}

CUresult Channel::Post(const Command& command, std::span<const std::byte> payload) {
  if (const CUresult error = Sticky()) return error;
  return Submit(command, {.payload = payload, .span = static_cast<uint32_t>(payload.size())}).status;
}

CUresult Channel::PostTogether(std::span<const Command> commands, FunctionRef<bool()> submitting) {
  lock_check::BeforeWait();
  const auto entries = static_cast<uint32_t>(commands.size());
  for (Wanted wanted;; wanted.congested = true) {
    if (const CUresult error = Sticky()) return error;
    if (!Turns::Exempt::Now()) AwaitShare(commands.front().stream, entries);
    if (MutexLock lock(submit_mutex_); SpaceInRing(entries)) {
      if (!submitting()) return CUDA_ERROR_NOT_READY;
      for (const Command& command : commands) Enter(command, 0, wanted);
      return CUDA_SUCCESS;
    }
    WaitUntil([this, entries] { return SpaceInRing(entries) || lost_.load(); }, kSpaceRecheckMs);
  }
}

Completion Channel::Call(const Command& command, std::span<const std::byte> payload, std::span<std::byte> answer) {
  Completion completion = Exchange(command, payload, answer);
  if (completion.status == CUDA_SUCCESS) completion.status = TakePostedError();
  PrintOutput();
  return completion;
}

Completion Channel::Exchange(const Command& command, std::span<const std::byte> payload, std::span<std::byte> answer) {
  // Where the host waits for all its work with the next entry of the ring, nothing would come to those who wait for it.
  if (NeedsIdleHost(command.op) && AnyHeld()) Exchange({.op = VGPU_OP_CONTEXT_SYNC}, {}, {});
  const auto span = static_cast<uint32_t>(std::max(payload.size(), answer.size()));
  Answer mine;
  const Submitted submitted =
      Submit(command, {.payload = payload, .span = span, .answer = &mine, .hold = !answer.empty()});
  Completion completion;
  completion.status = submitted.status;
  if (submitted.status != CUDA_SUCCESS) return completion;

  WaitUntil([this, &mine] { return mine.arrived || lost_.load(); }, kRecheckMs);
  {
    MutexLock lock(mutex_);
    TakeOut(answers_, mine);
  }
  if (mine.arrived) {
    completion = mine.completion;
  } else {
    completion.status = kLostError;
  }
  if (!answer.empty()) {
    if (completion.status == CUDA_SUCCESS) memcpy(answer.data(), PayloadAt(submitted.payload_pos), answer.size());
    MutexLock lock(payload_mutex_);
    payload_.Release(submitted.payload_pos);
  }
  return completion;
}

void Channel::PrintOutput() {
  // Who serves a turn has no time for it, and the next who waits does it.
  if ((LoadAcquire(header().printed) == 0 && !writes_.load()) || Turns::Exempt::Now()) return;
  has_printed_.store(true);
  for (;;) {
    FILE* busy;
    {
      MutexLock lock(print_mutex_);
      writes_.store(true);
      busy = WritePrinted();
      writes_.store(busy != nullptr);
    }
    if (busy == nullptr) return;
    flockfile(busy);  // the thread that has it may come here itself, and must not find print_mutex_ taken
    funlockfile(busy);
  }
}

FILE* Channel::WritePrinted() {
  constexpr uint64_t kPiece = 64 << 10;
  for (;;) {
    if (printed_.bytes != 0) {
      if (ftrylockfile(printed_.to) != 0) return printed_.to;
      fwrite(printed_.piece.get(), 1, std::exchange(printed_.bytes, 0), printed_.to);
      funlockfile(printed_.to);
    }
    if (LoadAcquire(header().printed) == 0) return nullptr;
    const size_t room = std::min(kPiece, max_span());
    if (printed_.piece == nullptr) printed_.piece.reset(new (std::nothrow) std::byte[room]);
    if (printed_.piece == nullptr) return nullptr;  // whoever waits next may have memory for it
    Command command;
    command.op = VGPU_OP_PRINT_READ;
    const Completion completion = Exchange(command, {}, {printed_.piece.get(), room});
    if (completion.status != CUDA_SUCCESS || completion.value[0] == 0) return nullptr;
    printed_.bytes = std::min<uint64_t>(completion.value[0], room);
    printed_.to = completion.value[1] == VGPU_PRINT_STDERR ? stderr : stdout;
  }
}

bool Channel::HasPrinted() const { return has_printed_.load() || LoadAcquire(header().printed) != 0; }

Channel::Submitted Channel::Submit(const Command& command, const Wanted& wanted) {
  lock_check::BeforeWait();  // there may be room just now
  if (any_deferred_.load(std::memory_order_relaxed) && !Turns::Exempt::Now()) PostDeferred();
  if (command.op == VGPU_OP_STREAM_DESTROY && backlog_.IsSilent(static_cast<uint32_t>(command.args[0])))
    AskForEnd(static_cast<uint32_t>(command.args[0]));
  if (!NeedsIdleHost(command.op)) {
    if (wanted.answer == nullptr && !Turns::Exempt::Now())
      AwaitShare(command.stream, Backlog::Units(command.op, wanted.payload.size()));
    return SubmitAdmitted(command, wanted);
  }
  if (wanted.answer == nullptr && (AnyHeld() || (Turns::Exempt::Now() && turns_.others()))) {
    {
      MutexLock lock(mutex_);
      deferred_.push_back(command);
      any_deferred_ = true;
    }
    for (const uint32_t each : backlog_.SilentHeld()) AskForEnd(each);
    return {};
  }
  const Turns::Idle idle(turns_);
  return SubmitAdmitted(command, wanted);
}

void Channel::PostDeferred() {
  if (turns_.any() || AnyHeld()) return;
  std::vector<Command> deferred;
  {
    MutexLock lock(mutex_);
    deferred.swap(deferred_);
    any_deferred_ = false;
  }
  for (const Command& command : deferred) Post(command);
}

bool Channel::FreeDeferred() {
  if (!any_deferred_.load()) return false;
  Exchange({.op = VGPU_OP_CONTEXT_SYNC}, {}, {});
  PostDeferred();
  return true;
}

// Waits until the stream may have so much more of the host's room. Of a context that has failed it may have all.
void Channel::AwaitShare(uint32_t stream, uint64_t units) {
  while (!backlog_.HasRoom(stream, units) && LostOrPoisoned() == CUDA_SUCCESS) {
    for (const uint32_t each : backlog_.Silent(stream)) AskForEnd(each);
    const auto news = [&] {
      return backlog_.HasRoom(stream, units) || backlog_.IsSilent(stream) || LostOrPoisoned() != CUDA_SUCCESS;
    };
    WaitUntil(news, kAskAgainMs);
  }
}

// A completion comes when all is done that the stream has now.
void Channel::AskForEnd(uint32_t stream) {
  Wanted wanted;
  wanted.congested = true;
  SubmitAdmitted({.op = VGPU_OP_STREAM_SYNC, .stream = stream}, wanted);
}

Channel::Submitted Channel::SubmitAdmitted(const Command& command, Wanted wanted) {
  if (wanted.span > max_span()) return {CUDA_ERROR_INVALID_VALUE, 0, 0};
  for (;; wanted.congested = true) {
    Submitted submitted;
    if (MutexLock lock(submit_mutex_); TrySubmit(command, wanted, &submitted)) return submitted;
    // Who comes meanwhile may be before us. Of a program's threads it is not said which is first.
    const auto room = [this, &wanted] { return (SpaceInRing() && SpanFits(wanted.span)) || lost_.load(); };
    WaitUntil(room, kSpaceRecheckMs);
  }
}

// False: there is no room.
bool Channel::TrySubmit(const Command& command, const Wanted& wanted, Submitted* out) {
  if (lost_.load()) {
    out->status = kLostError;
    return true;
  }
  if (!SpaceInRing() || !TakeSpan(wanted, &out->payload_pos)) return false;
  if (!wanted.payload.empty()) memcpy(PayloadAt(out->payload_pos), wanted.payload.data(), wanted.payload.size());
  Enter(command, out->payload_pos, wanted);
  return true;
}

// An entry, for which there is room; nothing fails. Some of those that are posted ask for a completion, so that errors
// and progress come back.
void Channel::Enter(const Command& command, uint64_t position, const Wanted& wanted) {
  const bool answers = wanted.answer != nullptr;
  bool asks = !answers && (wanted.congested || backlog_.IsDue(command.stream));
  if (asks) {
    MutexLock lock(mutex_);
    Drain();
    asks = MakeRoomFor(asked_, 1);
  }
  const Backlog::Place place = backlog_.Add({command.stream, 0, next_seqno_, command.op},
                                            Backlog::Units(command.op, wanted.payload.size()), answers || asks);
  if (answers || asks) {
    MutexLock lock(mutex_);
    if (answers) {
      wanted.answer->place = place;
      PutIn(answers_, *wanted.answer);
    } else {
      asked_.push_back(place);
    }
  }
  Publish(command, position, wanted.span, answers || asks ? VGPU_SQE_WANT_COMPLETION : 0);
}

bool Channel::TakeSpan(const Wanted& wanted, uint64_t* position) {
  if (wanted.span == 0) return true;
  MutexLock lock(payload_mutex_);
  const auto at = payload_.Allocate(wanted.span, LoadAcquire(header().payload_released));
  if (!at) return false;
  *position = *at;
  if (wanted.hold) payload_.Hold(*position);
  return true;
}

bool Channel::SpanFits(uint32_t span) {
  if (span == 0) return true;
  MutexLock lock(payload_mutex_);
  return payload_.Fits(span, LoadAcquire(header().payload_released));
}

void Channel::Publish(const Command& command, uint64_t position, uint32_t span, uint32_t flags) {
  auto* ring = reinterpret_cast<vgpu_sqe*>(transport_->area().data() + VGPU_CHANNEL_SQ_OFFSET);
  const uint32_t tail = sq_tail_.load(std::memory_order_relaxed);
  vgpu_sqe& entry = ring[tail & (VGPU_SQ_ENTRIES - 1)];
  CountUp(stream_work_[command.stream % stream_work_.size()]);
  CountUp(all_work_);
  entry.op = command.op;
  entry.flags = flags;
  entry.seqno = next_seqno_++;
  entry.payload_pos = span > 0 ? position : 0;
  entry.payload_len = span;
  entry.stream = command.stream;
  memcpy(entry.args, command.args, sizeof entry.args);
  sq_tail_.store(tail + 1, std::memory_order_relaxed);
  StoreRelease(header().sq_tail, tail + 1);
  FullFence();
  if (LoadAcquire(header().sq_need_wakeup) != 0 && Take(header().sq_need_wakeup) != 0) transport_->Kick();
}

void Channel::Drain() {
  const auto* ring = reinterpret_cast<const vgpu_cqe*>(transport_->area().data() + VGPU_CHANNEL_CQ_OFFSET);
  const uint32_t tail = LoadAcquire(header().cq_tail);
  uint32_t head = cq_head_.load();
  if (tail == head) return;
  for (; head != tail; ++head) {
    const vgpu_cqe& entry = ring[head & (VGPU_CQ_ENTRIES - 1)];
    Answer* answer = answers_;
    while (answer != nullptr && answer->place.seqno != entry.seqno) answer = answer->next;
    const bool failed = entry.status != CUDA_SUCCESS;
    if (answer != nullptr) {
      backlog_.Done(answer->place, failed);
      answer->arrived = true;
      answer->completion.status = static_cast<CUresult>(entry.status);
      memcpy(answer->completion.value, entry.value, sizeof entry.value);
    } else {
      const auto asked = std::find_if(asked_.begin(), asked_.end(),
                                      [&](const Backlog::Place& place) { return place.seqno == entry.seqno; });
      if (asked != asked_.end()) {
        backlog_.Done(*asked, failed);
        asked_.erase(asked);
      }
      if (failed) LeavePostedError(static_cast<CUresult>(entry.status));
    }
  }
  cq_head_.store(head);
  StoreRelease(header().cq_head, head);
}

void Channel::WaitUntil(FunctionRef<bool()> ready, int recheck_ms) {
  lock_check::BeforeWait();
  Waiting waiting(ready);
  MutexLock lock(mutex_);
  PutIn(waits_, waiting);
  for (;;) {
    Drain();
    if (LoadAcquire(header().state) == VGPU_CHANNEL_LOST) SayLost();
    if (ready()) break;
    if (someone_sleeps_) {
      waiting.news.WaitFor(mutex_, std::chrono::milliseconds(recheck_ms));
      continue;
    }
    someone_sleeps_ = true;
    WakeOthers();
    mutex_.unlock();
    SleepUntilNews(ready, recheck_ms);
    mutex_.lock();
    someone_sleeps_ = false;
  }
  TakeOut(waits_, waiting);
  WakeOthers();
}

// Wakes those that may go on, and one more that sleeps until there is news, if none does. To wake all that wait with
// each that goes on would be quadratic in their number.
void Channel::WakeOthers() {
  bool someone_sleeps = someone_sleeps_;
  for (Waiting* waiting = waits_; waiting != nullptr; waiting = waiting->next) {
    const bool goes_on = waiting->ready();
    if (goes_on || !someone_sleeps) waiting->news.NotifyOne();
    someone_sleeps = someone_sleeps || !goes_on;
  }
}

void Channel::SleepUntilNews(FunctionRef<bool()> ready, int recheck_ms) {
  const auto arrived = [this] { return LoadAcquire(header().cq_tail) != cq_head_.load(); };
  const auto begun = std::chrono::steady_clock::now();
  const auto waited = [&] { spin_.Waited(std::chrono::steady_clock::now() - begun); };
  do {
    if (arrived()) return waited();
    __builtin_ia32_pause();
  } while (std::chrono::steady_clock::now() < begun + spin_.limit());

  StoreRelease(header().cq_need_wakeup, 1u);
  FullFence();
  bool news = arrived();
  {
    MutexLock lock(mutex_);
    WakeOthers();  // what has come before the host knew of the sleep
    news = news || ready();
  }
  if (!news && LoadAcquire(header().state) != VGPU_CHANNEL_LOST) {
    if (transport_->Sleep(recheck_ms) == Transport::Wake::kLost) SayLost();
  }
  StoreRelease(header().cq_need_wakeup, 0u);
  waited();
}

bool Channel::EventReached(uint32_t index, uint64_t generation) const {
  return LoadAcquire(slot(index).generation) >= generation;
}

uint64_t Channel::EventTime(uint32_t index) const { return LoadAcquire(slot(index).timestamp_ns); }

CUresult Channel::Wait(FunctionRef<bool()> ready) {
  WaitUntil([this, &ready] { return ready() || LostOrPoisoned() != CUDA_SUCCESS; }, kRecheckMs);
  return LostOrPoisoned();
}

void Channel::OpenGate(uint32_t gate, uint64_t generation) {
  StoreRelease(gate < VGPU_GATES ? header().gate[gate] : slot(gate - VGPU_GATES).generation, __u64{generation});
  FullFence();
  transport_->Kick();
}

}  // namespace vgpud::cuda
