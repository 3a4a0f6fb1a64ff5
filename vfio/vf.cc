// SPDX-License-Identifier: Apache-2.0
#include "vfio/vf.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/slice_memory.h"

namespace vgpud::vfio {
namespace {

constexpr std::chrono::seconds kEventsEvery{1};
// However often a guest takes and gives back memory: vgpud reads a bounded number of messages.
constexpr std::chrono::milliseconds kUsageEvery{10};
constexpr int kConfigureWaitMs = 10'000;
constexpr std::chrono::milliseconds kEndGrace{300};
// A vgpud that does not read its link gets no more requests for executors.
constexpr size_t kMaxWaitingForVgpud = 256;

VfFigures FiguresOf(std::string name, const vf_link::Configure& configure) {
  VfFigures figures;
  figures.name = std::move(name);
  std::copy(std::begin(configure.uuid), std::end(configure.uuid), figures.uuid.begin());
  figures.vram_bytes = configure.vram_bytes;
  figures.slice_us = configure.slice_us;
  figures.weight = configure.weight;
  figures.gpu_name.assign(configure.gpu_name, strnlen(configure.gpu_name, sizeof configure.gpu_name));
  figures.capability = configure.capability;
  figures.cuda_version = configure.cuda_version;
  return figures;
}

}  // namespace

struct Vf::MessageSpec {
  vf_link::Kind kind;
  size_t bytes;
  size_t fds;
  void (Vf::*handle)(Message&);
};

const Vf::MessageSpec Vf::kMessages[] = {
    {vf_link::Kind::kExecutor, sizeof(vf_link::Executor), 2, &Vf::HandleExecutor},
    {vf_link::Kind::kExecutorFailed, sizeof(vf_link::Executor), 0, &Vf::HandleExecutorFailed},
    {vf_link::Kind::kInfo, vf_link::kInfoLeast, 0, &Vf::HandleInfo},
    {vf_link::Kind::kReset, sizeof(vf_link::Plain), 0, &Vf::HandleReset},
    {vf_link::Kind::kShutdown, sizeof(vf_link::Plain), 0, &Vf::HandleShutdown},
    {vf_link::Kind::kPing, sizeof(vf_link::Ping), 0, &Vf::HandlePing},
    {vf_link::Kind::kAdopt, sizeof(vf_link::Adopt), 0, &Vf::HandleAdopt},
    {vf_link::Kind::kQuotas, sizeof(vf_link::Quotas), 0, &Vf::HandleQuotas},
};

Result<std::unique_ptr<Vf>> Vf::Start(EventLoop& loop, std::string name, Sockets sockets, const EventBudgets& budgets,
                                      bool client_memory) {
  pollfd link{sockets.link.get(), POLLIN, 0};
  if (::poll(&link, 1, kConfigureWaitMs) != 1)
    return Fail(std::errc::timed_out, "vgpud did not configure this VF in time (is fd 3 the link to vgpud?)");
  Message message = TRY(ReceiveMessage(sockets.link.get()));
  Parts parts;
  parts.configure = TRY(message.As<vf_link::Configure>());
  if (parts.configure.kind != vf_link::Kind::kConfigure || message.fds.size() != 2)
    return Fail(std::errc::bad_message, "the first message on the link is not kConfigure with two fds");
  {
    const UniqueFd grant = message.fds[0].Trust(), slots = message.fds[1].Trust();
    parts.slices = TRY(MapSlices(grant.get(), slots.get()));
  }
  TRY(SendStruct(sockets.link.get(), vf_link::Hello{}));
  parts.name = std::move(name);
  parts.budgets = budgets;
  parts.client_memory = client_memory;
  parts.sockets = std::move(sockets);
  return std::unique_ptr<Vf>(new Vf(loop, std::move(parts)));
}

Vf::Vf(EventLoop& loop, Parts parts)
    : loop_(loop),
      figures_(FiguresOf(std::move(parts.name), parts.configure)),
      link_(std::move(parts.sockets.link)),
      to_vgpud_(loop, link_.get()),
      slices_(std::move(parts.slices)),
      guard_(parts.budgets, Now(), [this] { events_timer_->Arm(kEventsEvery); }),
      channel_guard_(parts.budgets, Now(), [this] { events_timer_->Arm(kEventsEvery); }),
      channels_(loop, ledgers_,
                {figures_.name, &slices_.slot_page(), guard_,
                 [this](const vf_link::Executor& message) { return ToVgpud(message); }, [this] { UsageChanged(); },
                 [this] { EndWhenIdle(); }, parts.configure.watched != 0}),
      function_(loop, channels_, figures_, guard_),
      vfio_(loop, std::move(parts.sockets.vfio), function_, channels_, figures_, guard_,
            [this](bool connected) { ClientChanged(connected); }),
      channel_server_(loop, std::move(parts.sockets.channels), channels_, figures_, channel_guard_),
      link_watch_(loop.OnReadable(link_.get(), [this] { OnLink(); })),
      end_timer_(loop.Timer([this] {
        vfio_.Disconnect("the VF ends");
        loop_.Stop();
      })),
      usage_timer_(loop.Timer([this] { ReportUsage(); })),
      events_timer_(loop.Timer([this] { ReportEvents(); })) {
  figures_.client_memory = parts.client_memory;
  figures_.grants = &slices_.grant_page();
  ledgers_.vram.SetQuota(figures_.vram_bytes);
  ledgers_.host.SetQuota(parts.configure.host_memory_bytes);
  watched_ = parts.configure.watched != 0;
}

void Vf::TellWatched(UniqueFd watch) {
  to_vgpud_.SendStruct(vf_link::Plain{vf_link::Kind::kWatched}, {std::make_shared<const UniqueFd>(std::move(watch))});
}

void Vf::OnLink() {
  auto message = ReceiveMessage(link_.get());
  if (message) return Handle(*message);
  if (message.error().code == std::errc::resource_unavailable_try_again) return;
  link_alive_ = false;
  link_watch_->Pause();
  End("vgpud is gone, and with it all time on the GPU");
}

void Vf::Handle(Message& message) {
  const auto kind = message.As<vf_link::Kind>();
  for (const MessageSpec& spec : kMessages)
    if (kind && *kind == spec.kind && message.bytes.size() >= spec.bytes && message.fds.size() == spec.fds)
      return (this->*spec.handle)(message);
  LOG_LIMITED(limiter_, kError, "vf={} message of vgpud not understood: kind={} bytes={} fds={}", figures_.name,
              kind ? static_cast<uint32_t>(*kind) : 0, message.bytes.size(), message.fds.size());
}

void Vf::HandleExecutor(Message& message) {
  channels_.ExecutorStarted(*message.As<vf_link::Executor>(), message.fds[0].Trust(), message.fds[1].Trust());
}

void Vf::HandleExecutorFailed(Message& message) { channels_.ExecutorFailed(*message.As<vf_link::Executor>()); }

void Vf::HandleInfo(Message& message) {
  vf_link::Info info;
  std::memcpy(static_cast<void*>(&info), message.bytes.data(), std::min(sizeof info, message.bytes.size()));
  figures_.slice_us = info.slice_us;
  figures_.weight = info.weight;
  figures_.vf_state = info.vf_state;
  figures_.gpu_percent = info.gpu_percent;
  figures_.told_ns = MonotonicNs();
}

void Vf::HandleReset(Message&) {
  LOG(kInfo, "vf={} reset by vgpud", figures_.name);
  function_.ResetByHost();
  channels_.CloseAll();
}

void Vf::HandleShutdown(Message&) { End("vgpud asked for it"); }

void Vf::HandlePing(Message& message) {
  auto ping = *message.As<vf_link::Ping>();
  ping.kind = vf_link::Kind::kPong;
  to_vgpud_.SendStruct(ping);
}

void Vf::HandleQuotas(Message& message) {
  const auto wanted = *message.As<vf_link::Quotas>();
  const bool fits = ledgers_.Resize(wanted.vram_bytes, wanted.host_memory_bytes);
  if (fits) figures_.vram_bytes = wanted.vram_bytes;
  to_vgpud_.SendStruct(vf_link::QuotasSet{.ok = fits,
                                          .sequence = wanted.sequence,
                                          .vram_used = ledgers_.vram.used(),
                                          .host_memory_used = ledgers_.host.used()});
  if (fits) channels_.QuotasChanged();
}

// What the vgpud before was told, and perhaps did not live to act on, as one picture of now.
void Vf::HandleAdopt(Message& message) {
  const uint32_t version = message.As<vf_link::Adopt>()->version;
  LOG(kInfo, "vf={} another vgpud goes on with it (link version {})", figures_.name, version);
  // The executors that it starts know no more than it does.
  if (version < vf_link::kQuotasSince) channels_.NewExecutorsTakeNoQuotas();
  to_vgpud_.SendStruct(vf_link::Client{vf_link::Kind::kClient, vfio_.connected()});
  to_vgpud_.SendStruct(
      vf_link::Usage{vf_link::Kind::kUsage, channels_.open_channels(), ledgers_.vram.used(), ledgers_.host.used()});
  to_vgpud_.SendStruct(CountEvents());
  for (const vf_link::Channel& channel : channels_.Describe()) to_vgpud_.SendStruct(channel);
  to_vgpud_.SendStruct(vf_link::Plain{vf_link::Kind::kInStep});
}

bool Vf::ToVgpud(const vf_link::Executor& message) {
  const bool opens = message.kind == vf_link::Kind::kNeedExecutor;
  if (!link_alive_ || (opens && to_vgpud_.waiting() >= kMaxWaitingForVgpud)) return false;
  return to_vgpud_.SendStruct(message);
}

// One message in a while, however often an executor changes the figures: what waits for vgpud would grow without end.
void Vf::UsageChanged() {
  if (std::exchange(usage_changed_, true)) return;
  usage_timer_->Arm(kUsageEvery);
}

void Vf::ReportUsage() {
  usage_changed_ = false;
  for (uint32_t channel = 0; channel < kMaxExecutors; ++channel)
    HeldMemoryIn(slices_.slots).vram_bytes[channel].store(ledgers_.vram.held(channel), std::memory_order_relaxed);
  if (!link_alive_) return;
  if (to_vgpud_.waiting() != 0) return UsageChanged();
  to_vgpud_.SendStruct(
      vf_link::Usage{vf_link::Kind::kUsage, channels_.open_channels(), ledgers_.vram.used(), ledgers_.host.used()});
}

vf_link::Events Vf::CountEvents() const {
  vf_link::Events events;
  for (uint32_t e = 0; e < kGuardedEvents; ++e) {
    const auto event = static_cast<GuardedEvent>(e);
    events.count[e] = guard_.count(event) + channel_guard_.count(event);
    events.throttled[e] = guard_.throttled(event) + channel_guard_.throttled(event);
  }
  events.throttled_ns = static_cast<uint64_t>((guard_.throttled_time() + channel_guard_.throttled_time()).count());
  return events;
}

void Vf::ReportEvents() {
  // While nobody reads the link these would be kept without end.
  if (link_alive_ && to_vgpud_.waiting() != 0) return events_timer_->Arm(kEventsEvery);
  const vf_link::Events events = CountEvents();
  std::string late;
  for (uint32_t e = 0; e < kGuardedEvents; ++e) {
    const auto event = static_cast<GuardedEvent>(e);
    if (events.throttled[e] != reported_.throttled[e])
      late += fmt::format(" {} (at most {} per second)", kEventNames[e], guard_.budget(event));
  }
  if (!late.empty())
    LOG(kWarning, "vf={} guest or clients slowed down by {} ms in the last second: too many{}", figures_.name,
        (events.throttled_ns - reported_.throttled_ns) / 1'000'000, late);
  reported_ = events;
  if (link_alive_) to_vgpud_.SendStruct(events);
  guard_.Rest();
  channel_guard_.Rest();
}

void Vf::ClientChanged(bool connected) {
  if (link_alive_) to_vgpud_.SendStruct(vf_link::Client{vf_link::Kind::kClient, connected});
  EndWhenIdle();
}

void Vf::End(const char* why) {
  if (std::exchange(ending_, true)) return;
  LOG(kInfo, "vf={} ends: {}", figures_.name, why);
  // The guest's programs hear of it now, by an interrupt. Its driver finds that the device has gone when it reads a
  // register.
  function_.ResetByHost();
  function_.Vanish();
  vfio_.Retire();
  channels_.CloseAll();
  end_timer_->Arm(kEndGrace);
  EndWhenIdle();
}

void Vf::EndWhenIdle() {
  if (ending_ && !vfio_.connected() && !channels_.any_executor()) loop_.Post([this] { loop_.Stop(); });
}

}  // namespace vgpud::vfio
