// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/server.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <malloc.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/signal_socket.h"

namespace vgpud::exec {
namespace {

constexpr unsigned kEntriesPerRound = 256;
constexpr uint64_t kSpinNs = 5'000;
// As long as a program needs to see that its kernel has ended and to launch the next one, on a host that wakes it soon.
constexpr uint64_t kLingerNs = 50'000;
// After a wake-up, which has to reach another processor first. Without looking, launch and wake-up would each be a
// chain of three wake-ups, and both would take each other for one that does not come back soon.
constexpr uint64_t kLingerWokenNs = 80'000;
// On a host that does not wake it soon: its processors have others to run first.
constexpr uint64_t kLingerMostNs = 200'000;
// While there is work without a sleep in between, vgpud-vf is heard after so many rounds of it.
constexpr uint32_t kLinkUnlooked = 16;
// While the guest leaves its completion ring full: it does not ring when it makes room.
constexpr Ns kMillisecond{1'000'000};
constexpr Ns kCompletionPoll = kMillisecond;
constexpr Ns kReportDoorbellsEvery = 1000 * kMillisecond;
constexpr Ns kCountWorkEvery = 10 * kMillisecond;

void PollOne(int fd, short events) {
  pollfd entry{fd, events, 0};
  ::poll(&entry, 1, -1);
}

}  // namespace

Server::Server(UniqueFd link, MakeGpu make_gpu, HostMemory& memory)
    : link_(std::move(link)), make_gpu_(std::move(make_gpu)), memory_(memory) {}

// vgpud-vf has ended the channel: nothing that still runs matters.
void Server::End() const {
  last_words_();
  ::_exit(0);
}

void Server::Run() {
  const auto ended = Loop();
  LOG(kError, "{}", ended.error().context);
  // The GPU thread still uses what is here.
  ::_exit(1);
}

Result<bool> Server::AwaitAttach() {
  if (::fcntl(link_.get(), F_SETFL, O_NONBLOCK) != 0) return FailErrno("link to vgpud-vf");
  PollOne(link_.get(), POLLIN);
  Message message = TRY(ReceiveMessage(link_.get()));
  if (TRY(message.As<exec_link::Kind>()) != exec_link::Kind::kAttach)
    return Fail(std::errc::bad_message, "the first message from vgpud-vf is not Attach");
  TRY(Attach(std::move(message)));
  return attach_.watched != 0;
}

Result<void> Server::TellWatched(UniqueFd own, UniqueFd workers) {
  const int fds[] = {own.get(), workers.get()};
  return SendStruct(link_.get(), exec_link::Plain{exec_link::Kind::kWatched},
                    own && workers ? std::span<const int>{fds} : std::span<const int>{});
}

Result<void> Server::Loop() {
  progress_ = TRY(MakeEventFd());
  memory_.OnWish([fd = progress_.get()] { SignalEventFd(fd); });
  for (uint32_t unlooked = 0;; ++unlooked) {
    if (link_told_ || !unread_.empty() || unlooked >= kLinkUnlooked) {
      TRY(DrainLink());
      link_told_ = false;
      unlooked = 0;
    }
    CountWork();
    ChannelEngine::Ring ring = ChannelEngine::Ring::kEmpty;
    if (executor_ != nullptr) {
      ring = executor_->Consume(kEntriesPerRound);
      link_told_ = link_told_ || ring == ChannelEngine::Ring::kLink;
      const bool asked = TRY(ServeMemoryRequests());
      TRY(AskForLoad());
      const bool again = ring == ChannelEngine::Ring::kMore || ring == ChannelEngine::Ring::kPart ||
                         ring == ChannelEngine::Ring::kLink;
      if (asked || again) continue;
    }
    TRY(Sleep(ring));
  }
}

void Server::CountWork() {
  const TimePoint now = Now();
  if (!work_ || now - work_counted_at_ < kCountWorkEvery) return;
  work_counted_at_ = now;
  work_->CountThread();
}

bool Server::SpinForWork() {
  if (!IsGranted(slices_.grant_page())) return false;
  for (const uint64_t end = MonotonicNs() + kSpinNs; MonotonicNs() < end;)
    if (executor_->RingChanged()) return true;
  return false;
}

Result<void> Server::Sleep(ChannelEngine::Ring ring) {
  int timeout = -1;
  const auto within = [&timeout](Ns wait) {
    const int ms = static_cast<int>((wait + kMillisecond - Ns{1}) / kMillisecond);
    timeout = timeout < 0 ? ms : std::min(timeout, ms);
  };
  const TimePoint now = Now();
  const Ns deaf = doorbells_ ? doorbells_->Wait(now) : Ns{0};
  if (deaf > Ns{0}) within(deaf);
  if (const auto wait = TRY(ReportDoorbells(now))) within(*wait);
  if (executor_ != nullptr) {
    if (ring == ChannelEngine::Ring::kEmpty && (SpinForWork() || !executor_->PrepareSleep())) return {};
    if (executor_->engine()->FlushCompletions()) within(kCompletionPoll);
    if (executor_->engine()->WaitsForValues()) within(kMillisecond);
  }
  pollfd fds[] = {{link_.get(), POLLIN, 0}, {progress_.get(), POLLIN, 0}, {deaf > Ns{0} ? -1 : kick_.get(), POLLIN, 0}};
  if (!unread_.empty()) timeout = 0;
  if (::poll(fds, std::size(fds), timeout) < 0 && errno != EINTR) return FailErrno("poll");
  link_told_ = fds[0].revents != 0;
  if (fds[1].revents != 0) DrainEventFd(progress_.get());
  if (fds[2].revents != 0) OnKick();
  if (executor_ != nullptr && ring == ChannelEngine::Ring::kEmpty) executor_->EndSleep();
  return {};
}

void Server::OnKick() {
  doorbells_->Take(1, Now());
  // The guest process has closed its end; vgpud-vf ends the channel when it hears of that.
  if (TakeSignals(kick_.get()) == Signals::kGone) kick_.Reset();
}

Result<std::optional<Ns>> Server::ReportDoorbells(TimePoint now) {
  if (!doorbells_ || attach_.doorbells_per_second == 0 || doorbells_->count() == doorbells_told_) return std::nullopt;
  if (now - doorbells_told_at_ < kReportDoorbellsEvery) return doorbells_told_at_ + kReportDoorbellsEvery - now;
  doorbells_told_ = doorbells_->count();
  doorbells_told_at_ = now;
  const exec_link::Doorbells report{.count = doorbells_->count(),
                                    .throttled = doorbells_->throttled(),
                                    .throttled_ns = static_cast<uint64_t>(doorbells_->throttled_time().count())};
  TRY(Send(std::as_bytes(std::span{&report, 1})));
  return std::nullopt;
}

Result<bool> Server::DrainLink() {
  bool any = false;
  for (;;) {
    if (!unread_.empty()) {
      Message message = std::move(unread_.front());
      unread_.pop_front();
      TRY(Handle(std::move(message)));
      any = true;
      continue;
    }
    auto message = ReceiveMessage(link_.get());
    if (!message && message.error().code == std::errc::resource_unavailable_try_again) return any;
    if (!message &&
        (message.error().code == std::errc::not_connected || message.error().code == std::errc::connection_reset))
      End();
    if (!message) return tl::unexpected(std::move(message).error());
    TRY(Handle(std::move(*message)));
    any = true;
  }
}

Result<void> Server::Handle(Message message) {
  switch (TRY(message.As<exec_link::Kind>())) {
    case exec_link::Kind::kMapArea:
      return MapArea(std::move(message));
    case exec_link::Kind::kUnmapArea:
      return UnmapArea(message);
    case exec_link::Kind::kQuotas:
      return SetQuotas(message);
    case exec_link::Kind::kLoadReply:
      if (executor_ != nullptr) executor_->engine()->loader().OnReply();
      return {};
    default:
      return Fail(std::errc::bad_message, "unexpected message from vgpud-vf");
  }
}

Result<void> Server::Attach(Message message) {
  attach_ = TRY(message.As<exec_link::Attach>());
  if (message.fds.size() != 2 || attach_.channel >= kMaxExecutors)
    return Fail(std::errc::bad_message,
                fmt::format("Attach: channel {}, {} fds instead of 2", attach_.channel, message.fds.size()));
  const UniqueFd grant{exec_link::kGrantPageFd}, slots{exec_link::kSlotPageFd};
  slices_ = TRY(MapSlices(grant.get(), slots.get()));
  kick_ = message.fds[0].Trust();
  call_ = message.fds[1].Trust();
  doorbells_.emplace(attach_.doorbells_per_second, attach_.doorbells_per_second, Now());
  return {};
}

Result<void> Server::MapArea(Message message) {
  const auto header = TRY(message.As<exec_link::Area>());
  if (header.count == 0 || header.count > (message.bytes.size() - sizeof header) / sizeof(exec_link::Piece))
    return Fail(std::errc::bad_message,
                fmt::format("area {}: {} pieces in {} bytes", header.area, header.count, message.bytes.size()));
  std::vector<exec_link::Piece> pieces(header.count);
  std::memcpy(pieces.data(), message.bytes.data() + sizeof header, pieces.size() * sizeof(exec_link::Piece));
  auto it = areas_.find(header.area);
  if (it == areas_.end()) {
    if (executor_ != nullptr) buffer_window_.BeginAt(executor_->engine()->buffers().part(), VGPU_BUFFER_PARTS);
    auto area =
        TRY(GuestArea::Start(header.area == 0 ? window_ : buffer_window_, header, keeps_files_ && header.area != 0));
    it = areas_.emplace(header.area, std::move(area)).first;
    if (executor_ != nullptr && header.area != 0) executor_->engine()->buffers().Add(header.area, it->second.get());
  }
  TRY(it->second->Add(header, pieces, message.fds));
  return header.area == 0 ? Start() : Result<void>{};
}

// The channel begins when its whole area has arrived.
Result<void> Server::Start() {
  const auto it = areas_.find(0);
  if (it != areas_.end() && it->second->failed())
    return Fail(std::errc::not_enough_memory, "there is no memory to map the channel area");
  if (executor_ != nullptr || it == areas_.end() || !it->second->complete()) return {};
  if (!it->second->writable()) return Fail(std::errc::permission_denied, "the channel area is read-only");
  ChannelMemory memory = TRY(ChannelMemory::Open(it->second->bytes()));
  const uint64_t quota = attach_.vram_quota;
  SlotPage& slots = slices_.slot_page();
  if (shares_card_)
    card_.emplace(slices_.grant_page(), slots.memory[attach_.channel], MonotonicNs, [&slots] { Ring(slots); });
  work_.emplace(slots.slots[attach_.channel]);
  Turn turn(
      slices_.grant_page(), slots.slots[attach_.channel], slots.clocks[attach_.channel], [&slots] { Ring(slots); },
      MonotonicNs, computes_elsewhere_ ? &MonotonicNs : &Turn::ThreadCpuNs);
  executor_ = std::make_unique<Executor>(memory, quota, std::move(turn),
                                         ChannelCallbacks{.interrupt = [fd = call_.get()] { SendSignal(fd); },
                                                          .progress = [fd = progress_.get()] { SignalEventFd(fd); },
                                                          .make_gpu = [this] { return make_gpu_(attach_.vram_quota); },
                                                          .now_ns = MonotonicNs,
                                                          .memory = &memory_,
                                                          .work = &*work_,
                                                          .card = card_ ? &*card_ : nullptr,
                                                          .await_room = [this] { card_->AwaitRoom(); },
                                                          .asks_before_loads = attach_.asks_before_loads != 0,
                                                          .linger_ns = kLingerNs,
                                                          .linger_woken_ns = kLingerWokenNs,
                                                          .linger_most_ns = kLingerMostNs});
  for (const auto& [id, area] : areas_)
    if (id != 0) executor_->engine()->buffers().Add(id, area.get());
  start_thread_([executor = executor_.get()] {
    ::prctl(PR_SET_NAME, exec_link::kGpuThreadName);
    executor->RunGpuThread();
  });
  start_thread_([executor = executor_.get()] {
    ::prctl(PR_SET_NAME, exec_link::kLoaderName);
    executor->RunLoader();
  });
  LOG(kInfo, "channel={} guest_pid={} serving", attach_.channel, attach_.guest_pid);
  return {};
}

// What the ledger grants counts; these only say what is worth asking for.
Result<void> Server::SetQuotas(const Message& message) {
  const auto quotas = TRY(message.As<exec_link::Quotas>());
  TRY(quotas_changed_((CheckedSize(quotas.vram_bytes) + quotas.host_memory_bytes).saturated()));
  attach_.vram_quota = quotas.vram_bytes;
  memory_.SetQuota(quotas.host_memory_bytes);
  if (executor_ != nullptr) executor_->engine()->SetVramQuota(quotas.vram_bytes);
  return {};
}

Result<void> Server::UnmapArea(const Message& message) {
  auto header = TRY(message.As<exec_link::Area>());
  const auto it = areas_.find(header.area);
  if (it != areas_.end()) {
    if (executor_ != nullptr && header.area != 0) executor_->DropBuffer(header.area);
    if (executor_ != nullptr && header.area == 0) executor_->Close();
    it->second->Drop();
    if (header.area != 0) areas_.erase(it);
  }
  header.kind = exec_link::Kind::kUnmapped;
  return Send(std::as_bytes(std::span{&header, 1}));
}

// The answer of vgpud-vf to one request; other messages that come before it are kept for later.
Result<exec_link::Vram> Server::AskLedger(exec_link::Kind kind, exec_link::Kind answer, int64_t delta) {
  const exec_link::Vram request{kind, 0, delta, 0};
  TRY(Send(std::as_bytes(std::span{&request, 1})));
  for (;;) {
    PollOne(link_.get(), POLLIN);
    auto message = ReceiveMessage(link_.get());
    if (!message) {
      if (message.error().code == std::errc::resource_unavailable_try_again) continue;
      End();
    }
    if (TRY(message->As<exec_link::Kind>()) == answer) return message->As<exec_link::Vram>();
    unread_.push_back(std::move(*message));
  }
}

Result<bool> Server::ServeMemoryRequests() {
  bool asked = false;
  while (const auto delta = executor_->engine()->vram().TakeRequest()) {
    const auto reply = TRY(AskLedger(exec_link::Kind::kVramRequest, exec_link::Kind::kVramReply, *delta));
    executor_->engine()->vram().OnReply(*delta, reply.ok != 0, reply.vf_used);
    asked = true;
  }
  HostMemory& memory = executor_->memory();
  while (const auto delta = memory.TakeRequest()) {
    // What is given back has to be the host's first.
    if (*delta < 0) ::malloc_trim(0);
    const auto reply = TRY(AskLedger(exec_link::Kind::kHostRequest, exec_link::Kind::kHostReply, *delta));
    memory.OnReply(*delta, reply.ok != 0);
    asked |= *delta > 0;
  }
  return asked;
}

Result<void> Server::AskForLoad() {
  if (const uint64_t bytes = executor_->engine()->loader().TakeCodeRead(); bytes != 0) {
    const exec_link::Loaded loaded{.code_bytes = bytes};
    TRY(Send(std::as_bytes(std::span{&loaded, 1})));
  }
  if (!executor_->engine()->loader().TakeRequest()) return {};
  const exec_link::Plain request{exec_link::Kind::kLoadRequest};
  return Send(std::as_bytes(std::span{&request, 1}));
}

Result<void> Server::Send(std::span<const std::byte> bytes) {
  for (;;) {
    auto sent = SendMessage(link_.get(), bytes);
    if (sent || sent.error().code != std::errc::resource_unavailable_try_again) return sent;
    PollOne(link_.get(), POLLOUT);
  }
}

}  // namespace vgpud::exec
