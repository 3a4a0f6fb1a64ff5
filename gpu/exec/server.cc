#include "gpu/exec/server.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "base/clock.h"
#include "base/log.h"

namespace vgpud {
namespace {

constexpr unsigned kEntriesPerRound = 256;
constexpr uint64_t kSpinNs = 5'000;
// While the guest leaves its completion ring full: it does not ring when it makes room.
constexpr int kCompletionPollMs = 1;

void PollOne(int fd, short events) {
  pollfd entry{fd, events, 0};
  ::poll(&entry, 1, -1);
}

// Where it is the only one allowed, the thread stays on it.
void KeepOffCpu(uint32_t cpu) {
  cpu_set_t allowed;
  if (cpu >= CPU_SETSIZE || ::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  CPU_CLR(cpu, &allowed);
  if (CPU_COUNT(&allowed) != 0) ::sched_setaffinity(0, sizeof allowed, &allowed);
}

}  // namespace

Server::Server(UniqueFd link, MakeGpu make_gpu, std::unique_ptr<PreemptDrill> drill)
    : link_(std::move(link)), make_gpu_(std::move(make_gpu)), drill_(std::move(drill)) {}

// vgpud-vf has ended the channel: nothing that still runs matters.
void Server::End() const {
  if (drill_ != nullptr) LOG(kInfo, "{}", drill_->Report());
  ::_exit(0);
}

Error Server::Run() { return Loop().error(); }

Result<void> Server::Loop() {
  if (::fcntl(link_.get(), F_SETFL, O_NONBLOCK) != 0) return FailErrno("link to vgpud-vf");
  progress_ = TRY(MakeEventFd());
  for (;;) {
    TRY(DrainLink());
    Core::Ring ring = Core::Ring::kEmpty;
    if (executor_ != nullptr) {
      ring = executor_->Consume(kEntriesPerRound);
      const bool asked = TRY(ServeVramRequests());
      if (asked || ring == Core::Ring::kMore || ring == Core::Ring::kLink) continue;
    }
    TRY(Sleep(ring));
  }
}

bool Server::SpinForWork() {
  if (!IsGranted(*slice_page_.At<SlicePage>(0))) return false;
  for (const uint64_t end = MonotonicNs() + kSpinNs; MonotonicNs() < end;)
    if (executor_->RingChanged()) return true;
  return false;
}

Result<void> Server::Sleep(Core::Ring ring) {
  int timeout = -1;
  if (executor_ != nullptr) {
    if (ring == Core::Ring::kEmpty && (SpinForWork() || !executor_->PrepareSleep())) return {};
    if (executor_->CompletionsWaiting()) timeout = kCompletionPollMs;
  }
  pollfd fds[] = {{link_.get(), POLLIN, 0}, {progress_.get(), POLLIN, 0}, {kick_.get(), POLLIN, 0}};
  if (!unread_.empty()) timeout = 0;
  if (::poll(fds, std::size(fds), timeout) < 0 && errno != EINTR) return FailErrno("poll");
  DrainEventFd(progress_.get());
  if (kick_) DrainEventFd(kick_.get());
  if (executor_ != nullptr && ring == Core::Ring::kEmpty) executor_->EndSleep();
  return {};
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
    case exec_link::Kind::kAttach:
      return Attach(std::move(message));
    case exec_link::Kind::kMapArea:
      return MapArea(message);
    case exec_link::Kind::kUnmapArea:
      return UnmapArea(message);
    default:
      return Fail(std::errc::bad_message, "unexpected message from vgpud-vf");
  }
}

Result<void> Server::Attach(Message message) {
  if (slice_page_) return Fail(std::errc::bad_message, "second Attach from vgpud-vf");
  attach_ = TRY(message.As<exec_link::Attach>());
  if (message.fds.size() != 4 || attach_.channel >= kMaxExecutors)
    return Fail(std::errc::bad_message,
                fmt::format("Attach: channel {}, {} fds instead of 4", attach_.channel, message.fds.size()));
  slice_page_ = TRY(Mapping::Shared(message.fds[0].get(), 0, kSlicePageBytes));
  const auto* page = slice_page_.At<SlicePage>(0);
  if (page->magic != SlicePage::kMagic || page->version != 1)
    return Fail(std::errc::bad_message, "Attach: the slice page has another format; vgpud and vgpud-exec differ");
  sched_event_ = std::move(message.fds[1]);
  kick_ = std::move(message.fds[2]);
  call_ = std::move(message.fds[3]);
  return Start();
}

Result<void> Server::MapArea(const Message& message) {
  const auto header = TRY(message.As<exec_link::Area>());
  if (header.count == 0 || header.count > (message.bytes.size() - sizeof header) / sizeof(exec_link::Piece))
    return Fail(std::errc::bad_message,
                fmt::format("area {}: {} pieces in {} bytes", header.area, header.count, message.bytes.size()));
  std::vector<exec_link::Piece> pieces(header.count);
  std::memcpy(pieces.data(), message.bytes.data() + sizeof header, pieces.size() * sizeof(exec_link::Piece));
  auto it = areas_.find(header.area);
  if (it == areas_.end()) {
    auto area = TRY(GuestArea::Start(header));
    it = areas_.emplace(header.area, std::move(area)).first;
    if (executor_ != nullptr && header.area != 0) executor_->AddBuffer(header.area, it->second.get());
  }
  TRY(it->second->Add(header, pieces, message.fds));
  return header.area == 0 ? Start() : Result<void>{};
}

// Everything that a channel needs has arrived when Attach and the whole channel area have.
Result<void> Server::Start() {
  const auto it = areas_.find(0);
  if (!slice_page_ || it == areas_.end() || !it->second->complete()) return {};
  if (!it->second->writable()) return Fail(std::errc::permission_denied, "the channel area is read-only");
  ChannelMemory memory = TRY(ChannelMemory::Open(it->second->bytes()));
  const uint64_t quota = attach_.vram_quota;
  Turn turn(
      *slice_page_.At<SlicePage>(0), attach_.channel, [fd = sched_event_.get()] { SignalEventFd(fd); }, MonotonicNs);
  executor_ = std::make_unique<Executor>(memory, quota, std::move(turn),
                                         Executor::Host{.interrupt = [fd = call_.get()] { SignalEventFd(fd); },
                                                        .progress = [fd = progress_.get()] { SignalEventFd(fd); },
                                                        .make_gpu = [make = make_gpu_, quota] { return make(quota); },
                                                        .now_ns = MonotonicNs,
                                                        .drill = drill_.get()});
  for (const auto& [id, area] : areas_)
    if (id != 0) executor_->AddBuffer(id, area.get());
  std::thread([executor = executor_.get(), reserved = slice_page_.At<SlicePage>(0)->scheduler_cpu.load()] {
    ::prctl(PR_SET_NAME, exec_link::kGpuThreadName);
    if (reserved != 0) KeepOffCpu(reserved - 1);
    executor->RunGpuThread();
  }).detach();
  LOG(kInfo, "channel={} guest_pid={} serving", attach_.channel, attach_.guest_pid);
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

Result<bool> Server::ServeVramRequests() {
  bool asked = false;
  while (const auto delta = executor_->TakeVramRequest()) {
    const exec_link::Vram request{exec_link::Kind::kVramRequest, 0, *delta, 0};
    TRY(Send(std::as_bytes(std::span{&request, 1})));
    for (;;) {
      PollOne(link_.get(), POLLIN);
      auto message = ReceiveMessage(link_.get());
      if (!message) {
        if (message.error().code == std::errc::resource_unavailable_try_again) continue;
        End();
      }
      if (TRY(message->As<exec_link::Kind>()) != exec_link::Kind::kVramReply) {
        unread_.push_back(std::move(*message));
        continue;
      }
      const auto reply = TRY(message->As<exec_link::Vram>());
      executor_->OnVramReply(*delta, reply.ok != 0, reply.vf_used);
      break;
    }
    asked = true;
  }
  return asked;
}

Result<void> Server::Send(std::span<const std::byte> bytes) {
  for (;;) {
    auto sent = SendMessage(link_.get(), bytes);
    if (sent || sent.error().code != std::errc::resource_unavailable_try_again) return sent;
    PollOne(link_.get(), POLLOUT);
  }
}

}  // namespace vgpud
