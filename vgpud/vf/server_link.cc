// SPDX-License-Identifier: Apache-2.0
#include "vgpud/vf/server_link.h"

#include <fmt/core.h>
#include <poll.h>

#include <utility>

namespace vgpud::daemon {
namespace {

constexpr int kMessagesPerTurn = 8;

struct MessageSpec {
  vf_link::Kind kind;
  size_t bytes;
  size_t fds;
};
constexpr MessageSpec kMessages[] = {
    {vf_link::Kind::kHello, sizeof(vf_link::Hello), 0},
    {vf_link::Kind::kWatched, sizeof(vf_link::Plain), 1},
    {vf_link::Kind::kNeedExecutor, sizeof(vf_link::Executor), 0},
    {vf_link::Kind::kChannelClosed, sizeof(vf_link::Executor), 0},
    {vf_link::Kind::kKillExecutor, sizeof(vf_link::Executor), 0},
    {vf_link::Kind::kClient, sizeof(vf_link::Client), 0},
    {vf_link::Kind::kUsage, sizeof(vf_link::Usage), 0},
    {vf_link::Kind::kEvents, sizeof(vf_link::Events), 0},
    {vf_link::Kind::kPong, sizeof(vf_link::Ping), 0},
    {vf_link::Kind::kChannel, sizeof(vf_link::Channel), 0},
    {vf_link::Kind::kInStep, sizeof(vf_link::Plain), 0},
    {vf_link::Kind::kQuotasSet, sizeof(vf_link::QuotasSet), 0},
};

bool HasUnread(int socket) {
  pollfd waiting{socket, POLLIN, 0};
  return ::poll(&waiting, 1, 0) > 0 && (waiting.revents & POLLIN) != 0;
}

bool IsOpen(const Message& message) {
  const auto kind = message.As<vf_link::Kind>();
  return kind && *kind == vf_link::Kind::kNeedExecutor;
}

double Seconds(Ns time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

ServerLink::ServerLink(EventLoop& loop, std::string vf, UniqueFd socket, pid_t server, const EventBudgets& budgets,
                       Events events, uint64_t asked)
    : vf_(std::move(vf)),
      socket_(ForeignFd{std::move(socket)}),
      events_(std::move(events)),
      budget_(budgets, Now()),
      watchdog_(asked),
      pulse_(server),
      readable_(loop.OnReadable(socket_.get(), [this] { OnReadable(); })),
      resume_(loop.Timer([this] {
        paused_ = false;
        watchdog_.Excuse(Now());
        if (!stopped_) readable_->Resume();
      })),
      look_(loop.Timer([this] { Look(); })) {}

ServerLink::~ServerLink() = default;

void ServerLink::OnReadable() {
  // What is left comes with the next turn of the loop: others wait for theirs.
  for (int served = 0; served < kMessagesPerTurn && !stopped_; ++served) {
    const TimePoint now = Now();
    if (const Ns wait = budget_.Wait(now); wait > Ns{0}) return SlowDown(wait);
    const auto message = ReceiveMessage(socket_.get());
    if (!message && message.error().code == std::errc::resource_unavailable_try_again) return;
    // A mere hang-up: the end of the process says more.
    if (!message && message.error().code != std::errc::message_size) return Stop();
    budget_.CountMessage(now);
    const auto handled = message ? OnMessage(*message) : Result<void>(tl::unexpected(message.error()));
    if (!handled) return Lose(fmt::format("vgpud-vf broke the link protocol: {}", handled.error().context));
    if (IsOpen(*message)) return;  // to start a process is much work: one for each turn of the loop
  }
}

Result<void> ServerLink::OnMessage(const Message& message) {
  const auto kind = TRY(message.As<vf_link::Kind>());
  for (const MessageSpec& spec : kMessages) {
    if (spec.kind != kind) continue;
    if (message.bytes.size() != spec.bytes || message.fds.size() != spec.fds)
      return Fail(
          std::errc::bad_message,
          fmt::format("message of kind {} has {} bytes and {} descriptors instead of {} and {}",
                      static_cast<uint32_t>(kind), message.bytes.size(), message.fds.size(), spec.bytes, spec.fds));
    if (kind == vf_link::Kind::kNeedExecutor) budget_.CountOpen(Now());
    return kind == vf_link::Kind::kPong ? OnPong(message) : events_.on_message(kind, message);
  }
  return Fail(std::errc::bad_message, fmt::format("message of unknown kind {}", static_cast<uint32_t>(kind)));
}

Result<void> ServerLink::OnPong(const Message& message) {
  const uint64_t sequence = TRY(message.As<vf_link::Ping>()).sequence;
  if (watchdog_.IsOld(sequence) || watchdog_.Answered(sequence)) return {};
  return Fail(std::errc::bad_message, "answer to a question that was not asked");
}

void ServerLink::Lose(const std::string& why) {
  Stop();
  events_.on_lost(why);
}

void ServerLink::Stop() {
  if (std::exchange(stopped_, true)) return;
  readable_->Pause();
  look_->Pause();
}

void ServerLink::SlowDown(Ns wait) {
  ++report_.throttled;
  report_.throttled_ns += static_cast<uint64_t>(wait.count());
  paused_ = true;
  readable_->Pause();
  resume_->Arm(wait);
  LOG_LIMITED(limiter_, kWarning, "vf={} vgpud-vf asks for more than its guest may cause: not read for {:.3f} s", vf_,
              Seconds(wait));
}

void ServerLink::Watch() { look_->Arm(Ns{0}); }

void ServerLink::Look() {
  if (stopped_) return;
  const TimePoint now = Now();
  // Its answer may be behind what this process has not read yet.
  const bool excused = paused_ || HasUnread(socket_.get());
  if (excused) watchdog_.Excuse(now);
  const auto verdict = excused ? Watchdog::Verdict::kWait : watchdog_.Tick(now, pulse_.Read());
  look_->Arm(watchdog_.NextLookIn(now));
  switch (verdict) {
    case Watchdog::Verdict::kWait:
      return;
    case Watchdog::Verdict::kAsk:
      // One that does not read its link is found out like one that does not answer.
      (void)Send(vf_link::Ping{vf_link::Kind::kPing, 0, watchdog_.sequence()});
      return;
    case Watchdog::Verdict::kDead:
      ++report_.hangs;
      return Lose(fmt::format("vgpud-vf does not answer (for {:.1f} s now)", Seconds(watchdog_.unanswered(now))));
  }
}

ServerReport ServerLink::report() const {
  ServerReport report = report_;
  report.unanswered_ns = stopped_ ? 0 : static_cast<uint64_t>(watchdog_.unanswered(Now()).count());
  return report;
}

}  // namespace vgpud::daemon
