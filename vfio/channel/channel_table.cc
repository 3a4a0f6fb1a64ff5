// SPDX-License-Identifier: Apache-2.0
#include "vfio/channel/channel_table.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/signal_socket.h"
#include "vfio/channel/channel_header.h"

namespace vgpud::vfio {
namespace {

constexpr std::chrono::milliseconds kDropGrace{100};
constexpr std::chrono::milliseconds kDropAfterKill{2000};

exec_link::Quotas QuotasOf(const MemoryLedgers& ledgers) {
  return {.vram_bytes = ledgers.vram.quota(), .host_memory_bytes = ledgers.host.quota()};
}

}  // namespace

ChannelTable::ChannelTable(EventLoop& loop, MemoryLedgers& ledgers, Config config)
    : loop_(loop), ledgers_(ledgers), config_(std::move(config)) {}

ChannelTable::~ChannelTable() = default;

Result<ChannelTable::Channel*> ChannelTable::Find(uint32_t index, const ChannelOwner* owner) {
  if (index >= channels_.size())
    return Fail(std::errc::invalid_argument, fmt::format("channel {} does not exist", index));
  Channel& channel = channels_[index];
  if (channel.state == VGPU_CHANNEL_FREE || channel.request.owner != owner)
    return Fail(std::errc::no_such_file_or_directory, fmt::format("channel {} is not open", index));
  return &channel;
}

Result<void> ChannelTable::Open(uint32_t index, ChannelRequest request) {
  if (index >= channels_.size())
    return Fail(std::errc::invalid_argument, fmt::format("channel {} does not exist", index));
  Channel& channel = channels_[index];
  if (channel.state != VGPU_CHANNEL_FREE)
    return Fail(std::errc::device_or_resource_busy, fmt::format("channel {} is in use", index));
  CHECK(request.guard != nullptr);
  request.guard->Count(GuardedEvent::kOpen);
  HeldArea area = TRY(HeldArea::Hold(pieces_, std::move(request.area)));
  const vf_link::Executor need{vf_link::Kind::kNeedExecutor, index, ++generations_, request.client_pid};
  if (!config_.to_vgpud(need))
    return Fail(std::errc::no_such_device, "vgpud does not take requests, nobody can start an executor");
  channel.state = VGPU_CHANNEL_OPEN;
  channel.generation = generations_;
  channel.told_vgpud_closed = false;
  channel.request = std::move(request);
  channel.area = std::move(area);
  LOG_LIMITED(limiter_, kInfo, "vf={} channel={} open pid={}", config_.vf_name, index, channel.request.client_pid);
  config_.usage_changed();
  return {};
}

Result<void> ChannelTable::Close(uint32_t index, const ChannelOwner* owner) {
  Channel& channel = *TRY(Find(index, owner));
  if (channel.state == VGPU_CHANNEL_CLOSING)
    return Fail(std::errc::connection_already_in_progress, fmt::format("channel {} is closing already", index));
  channel.state = VGPU_CHANNEL_CLOSING;
  if (channel.executor != nullptr) {
    TellClosed(channel, index);
    channel.executor->End();
    return {};
  }
  // No executor yet, or no more: nobody else holds the memory. The owner hears of it as of any other ending.
  loop_.Post([this, index, generation = channel.generation] {
    if (channels_[index].generation == generation && channels_[index].state == VGPU_CHANNEL_CLOSING) Free(index);
  });
  return {};
}

Result<void> ChannelTable::AddBuffer(uint32_t index, const ChannelOwner* owner, uint32_t buffer, Area area) {
  Channel& channel = *TRY(Find(index, owner));
  if (channel.state != VGPU_CHANNEL_OPEN)
    return Fail(std::errc::no_such_file_or_directory, fmt::format("channel {} takes no buffers: it ends", index));
  if (buffer == 0 || buffer > 0x7fffffff) return Fail(std::errc::invalid_argument, fmt::format("buffer id {}", buffer));
  if (channel.buffers.count(buffer) != 0)
    return Fail(std::errc::file_exists, fmt::format("channel {} buffer {} exists", index, buffer));
  if (channel.buffers.size() >= kMaxBuffersPerChannel)
    return Fail(std::errc::no_space_on_device,
                fmt::format("channel {}: {} buffers is the limit", index, kMaxBuffersPerChannel));
  HeldArea held = TRY(HeldArea::Hold(pieces_, std::move(area)));
  if (channel.executor != nullptr) channel.executor->MapArea(buffer, *held);
  channel.buffers.emplace(buffer, Buffer{std::move(held)});
  return {};
}

Result<void> ChannelTable::RemoveBuffer(uint32_t index, const ChannelOwner* owner, uint32_t buffer) {
  Channel& channel = *TRY(Find(index, owner));
  const auto found = channel.buffers.find(buffer);
  if (found == channel.buffers.end())
    return Fail(std::errc::no_such_file_or_directory, fmt::format("channel {} has no buffer {}", index, buffer));
  if (found->second.removing)
    return Fail(std::errc::connection_already_in_progress,
                fmt::format("channel {} buffer {} is being removed", index, buffer));
  found->second.removing = true;
  if (channel.executor == nullptr || (found->second.area->pieces.empty() && !found->second.dropping)) {
    channel.buffers.erase(found);
    channel.request.owner->BufferGone(index, buffer);
  } else if (!found->second.dropping) {
    found->second.dropping = true;
    channel.executor->UnmapArea(buffer);
  }
  return {};
}

void ChannelTable::Kick(uint32_t index) {
  config_.guard.Count(GuardedEvent::kDoorbell);
  if (index < channels_.size() && channels_[index].state == VGPU_CHANNEL_OPEN && channels_[index].request.kick)
    SendSignal(channels_[index].request.kick->get());
}

void ChannelTable::Abandon(const ChannelOwner* owner) {
  for (uint32_t i = 0; i < channels_.size(); ++i) {
    Channel& channel = channels_[i];
    if (channel.state == VGPU_CHANNEL_FREE || channel.request.owner != owner) continue;
    channel.request.owner = nullptr;
    if (channel.state != VGPU_CHANNEL_CLOSING) (void)Close(i, nullptr);
  }
}

void ChannelTable::CloseAll() {
  for (uint32_t i = 0; i < channels_.size(); ++i)
    if (const uint32_t state = channels_[i].state; state == VGPU_CHANNEL_OPEN || state == VGPU_CHANNEL_LOST)
      (void)Close(i, channels_[i].request.owner);
}

ChannelTable::Channel* ChannelTable::Current(const vf_link::Executor& message) {
  if (message.channel >= channels_.size()) return nullptr;
  Channel& channel = channels_[message.channel];
  const bool waits =
      channel.generation == message.generation && channel.executor == nullptr && channel.state == VGPU_CHANNEL_OPEN;
  return waits ? &channel : nullptr;
}

void ChannelTable::ExecutorStarted(const vf_link::Executor& message, UniqueFd socket, UniqueFd pidfd) {
  Channel* channel = Current(message);
  // The channel has gone meanwhile: this executor has never learned of any memory and is not needed.
  if (channel == nullptr) {
    if (!KillProcess(pidfd)) AskToKill(message);
    return;
  }
  const uint32_t index = message.channel;
  channel->executor = std::make_unique<ExecutorLink>(
      loop_, std::move(socket), std::move(pidfd),
      ExecutorLink::Events{[this, index](uint32_t area) { Unmapped(index, area); },
                           [this, index](const exec_link::Vram& request) { return ChangeMemory(index, request); },
                           [this, index](const exec_link::Doorbells& now) { CountDoorbells(index, now); },
                           [this, index] { return QueueLoad(index); },
                           [this, index](uint64_t code_bytes) { CountLoaded(index, code_bytes); },
                           [this, index] { ExecutorDead(index); },
                           [this, index](const std::string& name) { Offended(index, name); },
                           [this, message] { AskToKill(message); }});
  exec_link::Attach attach;
  attach.channel = index;
  attach.vram_quota = ledgers_.vram.quota();
  attach.guest_pid = channel->request.client_pid;
  attach.watched = config_.watch_executors;
  attach.asks_before_loads = 1;
  if (!channel->request.kick) attach.doorbells_per_second = config_.guard.budget(GuardedEvent::kDoorbell);
  config_.vf_name.copy(attach.vf_name, sizeof attach.vf_name - 1);
  channel->executor->Attach(attach, {std::exchange(channel->request.kick_ends, nullptr), channel->request.call});
  if (tells_new_ones_) channel->executor->TellQuotas(QuotasOf(ledgers_));
  channel->doorbells = {};
  channel->executor->MapArea(0, *channel->area);
  for (const auto& [id, buffer] : channel->buffers)
    if (!buffer.area->pieces.empty()) channel->executor->MapArea(id, *buffer.area);
}

void ChannelTable::QuotasChanged() {
  tells_new_ones_ = true;
  for (const Channel& channel : channels_)
    if (channel.executor != nullptr) channel.executor->TellQuotas(QuotasOf(ledgers_));
  config_.usage_changed();
}

void ChannelTable::AskToKill(vf_link::Executor executor) {
  executor.kind = vf_link::Kind::kKillExecutor;
  config_.to_vgpud(executor);
}

void ChannelTable::Offended(uint32_t index, const std::string& name) {
  LOG_LIMITED(limiter_, kError, "vf={} channel={} pid={}: the executor tried {}, which no executor has to: killed",
              config_.vf_name, index, channels_[index].request.client_pid, name);
}

void ChannelTable::ExecutorFailed(const vf_link::Executor& message) {
  if (Current(message) == nullptr) return;
  LOG(kError, "vf={} channel={} lost: vgpud could not start its executor", config_.vf_name, message.channel);
  Lose(message.channel);
}

std::vector<vf_link::Channel> ChannelTable::Describe() const {
  std::vector<vf_link::Channel> all;
  for (uint32_t i = 0; i < channels_.size(); ++i) {
    const Channel& channel = channels_[i];
    const bool open = channel.state == VGPU_CHANNEL_OPEN;
    if (channel.executor == nullptr && !open) continue;
    vf_link::Channel about{.channel = i, .generation = channel.generation, .client_pid = channel.request.client_pid};
    about.state = channel.executor == nullptr ? vf_link::ChannelState::kWaits
                  : open                      ? vf_link::ChannelState::kServed
                                              : vf_link::ChannelState::kClosing;
    all.push_back(about);
  }
  return all;
}

void ChannelTable::Unmapped(uint32_t index, uint32_t area) {
  Channel& channel = channels_[index];
  const auto found = channel.buffers.find(area);
  if (found == channel.buffers.end() || !found->second.dropping) return;
  found->second.dropping = false;
  if (found->second.removing) {
    channel.buffers.erase(found);
    if (channel.request.owner != nullptr) channel.request.owner->BufferGone(index, area);
  } else {
    // Taken away by DMA_UNMAP; the guest still has to remove it.
    (void)found->second.area.LetGo();
  }
  CheckDrop();
}

exec_link::Vram ChannelTable::ChangeMemory(uint32_t index, const exec_link::Vram& request) {
  const bool host = request.kind == exec_link::Kind::kHostRequest;
  MemoryLedger& ledger = host ? ledgers_.host : ledgers_.vram;
  const bool ok = ledger.Change(index, request.delta_bytes);
  if (ok && request.delta_bytes != 0) config_.usage_changed();
  return {host ? exec_link::Kind::kHostReply : exec_link::Kind::kVramReply, ok, request.delta_bytes, ledger.used()};
}

// Figures of a process that may be anybody's: they only grow, and by no more than could have been.
void ChannelTable::CountDoorbells(uint32_t index, const exec_link::Doorbells& now) {
  constexpr uint64_t kMost = 2 * uint64_t{kMaxEventsPerSecond};
  constexpr uint64_t kMostNs = 10'000'000'000;
  const auto grown = [](uint64_t from, uint64_t to, uint64_t most) {
    return to > from ? std::min(to - from, most) : 0;
  };
  exec_link::Doorbells& last = channels_[index].doorbells;
  config_.guard.Add(GuardedEvent::kDoorbell, grown(last.count, now.count, kMost),
                    grown(last.throttled, now.throttled, kMost),
                    Ns{static_cast<int64_t>(grown(last.throttled_ns, now.throttled_ns, kMostNs))});
  last = now;
}

bool ChannelTable::QueueLoad(uint32_t index) {
  EventGuard* const guard = channels_[index].request.guard;
  if (guard == nullptr) return false;
  const auto [it, fresh] = loads_.try_emplace(guard, Loads{LoadQueue(*guard), nullptr});
  Loads& loads = it->second;
  if (fresh)
    loads.timer = loop_.Timer([this, guard] {
      loads_.at(guard).waits = false;
      ServeLoads(guard);
    });
  if (!loads.queue.Ask(index)) return false;
  if (!loads.waits) ServeLoads(guard);
  return true;
}

void ChannelTable::CountLoaded(uint32_t index, uint64_t code_bytes) {
  if (const auto loads = loads_.find(channels_[index].request.guard); loads != loads_.end())
    loads->second.queue.Pay(index, code_bytes, Now());
}

void ChannelTable::ServeLoads(EventGuard* guard) {
  Loads& loads = loads_.at(guard);
  const Ns wait = loads.queue.Serve(Now(), [this](uint32_t index) {
    if (channels_[index].executor != nullptr) channels_[index].executor->AllowLoad();
  });
  loads.waits = wait > Ns{0};
  if (loads.waits) loads.timer->Arm(wait);
}

void ChannelTable::ExecutorDead(uint32_t index) {
  Channel& channel = channels_[index];
  for (auto& [guard, loads] : loads_) loads.queue.Forget(index);
  // Destroyed outside its own callback.
  loop_.Post([dead = std::shared_ptr<ExecutorLink>(std::move(channel.executor))] {});
  // Before the slot's next executor is asked for. vgpud has its own way of knowing that this one is dead.
  config_.slots->slots[index].state.store(static_cast<uint32_t>(ExecState::kNone));
  config_.slots->clocks[index].since_ns.store(0);
  config_.slots->clocks[index].has_context.store(0);
  ExecMemory& memory = config_.slots->memory[index];
  for (std::atomic<uint64_t>* const now : {&memory.on_card, &memory.off_card, &memory.wanted}) now->store(0);
  ledgers_.vram.Release(index);
  ledgers_.host.Release(index);
  if (channel.state == VGPU_CHANNEL_CLOSING) {
    Free(index);
  } else {
    LOG_LIMITED(limiter_, kWarning, "vf={} channel={} pid={} lost: its executor is gone", config_.vf_name, index,
                channel.request.client_pid);
    Lose(index);
  }
  config_.usage_changed();
  CheckDrop();
  if (!any_executor()) config_.idle();
}

void ChannelTable::Lose(uint32_t index) {
  Channel& channel = channels_[index];
  channel.state = VGPU_CHANNEL_LOST;
  channel.request.guard->Count(GuardedEvent::kFault);
  TellClosed(channel, index);
  const auto tell = [area = channel.area.LetGo(), call = channel.request.call] {
    MarkHeaderLost(area);
    SendSignal(call->get());
  };
  // Nobody holds the memory any more; what the guest asked to be removed is removed.
  std::vector<uint32_t> gone;
  for (auto& [id, buffer] : channel.buffers) {
    (void)buffer.area.LetGo();
    buffer.dropping = false;
    if (buffer.removing) gone.push_back(id);
  }
  for (const uint32_t id : gone) {
    channel.buffers.erase(id);
    if (channel.request.owner != nullptr) channel.request.owner->BufferGone(index, id);
  }
  if (channel.request.client == nullptr)
    tell();
  else
    files_.work().Do(channel.request.client, tell);
  if (channel.request.owner != nullptr) channel.request.owner->ChannelState(index, VGPU_CHANNEL_LOST);
}

void ChannelTable::Free(uint32_t index) {
  Channel& channel = channels_[index];
  TellClosed(channel, index);
  if (StickyError(channel.area.LetGo()) != 0) channel.request.guard->Count(GuardedEvent::kFault);
  ChannelOwner* owner = channel.request.owner;
  LOG_LIMITED(limiter_, kInfo, "vf={} channel={} closed pid={}", config_.vf_name, index, channel.request.client_pid);
  channel.request = {};
  channel.buffers.clear();
  channel.state = VGPU_CHANNEL_FREE;
  config_.usage_changed();
  if (owner != nullptr) owner->ChannelState(index, VGPU_CHANNEL_FREE);
}

void ChannelTable::TellClosed(Channel& channel, uint32_t index) {
  if (std::exchange(channel.told_vgpud_closed, true)) return;
  config_.to_vgpud({vf_link::Kind::kChannelClosed, index, channel.generation, channel.request.client_pid});
}

bool ChannelTable::InUse(const IovaRange& range) const {
  for (const Channel& channel : channels_) {
    if (channel.executor == nullptr) continue;
    if (channel.area->Overlaps(range)) return true;
    for (const auto& [id, buffer] : channel.buffers)
      if (buffer.area->Overlaps(range)) return true;
  }
  return false;
}

bool ChannelTable::Drop(IovaRange range, std::function<void(Result<void>)> done) {
  CHECK(drop_ == nullptr);
  for (uint32_t i = 0; i < channels_.size(); ++i) {
    Channel& channel = channels_[i];
    if (channel.state == VGPU_CHANNEL_FREE) continue;
    // Without its channel area an executor can't go on.
    if (channel.area->Overlaps(range)) {
      if (channel.executor != nullptr)
        channel.executor->End();
      else if (channel.state == VGPU_CHANNEL_OPEN)
        Lose(i);
      continue;
    }
    for (auto& [id, buffer] : channel.buffers) {
      if (!buffer.area->Overlaps(range)) continue;
      if (channel.executor == nullptr) {
        (void)buffer.area.LetGo();
      } else if (!std::exchange(buffer.dropping, true)) {
        channel.executor->UnmapArea(id);
      }
    }
  }
  if (!InUse(range)) return true;
  drop_ =
      std::make_shared<PendingDrop>(PendingDrop{range, std::move(done), false, loop_.Timer([this] { DropTimeout(); })});
  drop_->timer->Arm(kDropGrace);
  return false;
}

void ChannelTable::CheckDrop() {
  if (drop_ == nullptr || InUse(drop_->range)) return;
  const auto finished = std::exchange(drop_, nullptr);
  finished->done({});
}

void ChannelTable::DropTimeout() {
  if (drop_ == nullptr) return;
  if (!drop_->killed) {
    drop_->killed = true;
    for (uint32_t i = 0; i < channels_.size(); ++i) {
      Channel& channel = channels_[i];
      if (channel.executor == nullptr) continue;
      bool holds = channel.area->Overlaps(drop_->range);
      for (const auto& [id, buffer] : channel.buffers) holds |= buffer.area->Overlaps(drop_->range);
      if (!holds) continue;
      LOG(kWarning, "vf={} channel={}: its executor kept unmapped guest memory for {} ms: killed", config_.vf_name, i,
          kDropGrace.count());
      channel.executor->Kill();
    }
    drop_->timer->Arm(kDropAfterKill);
    return;
  }
  const auto finished = std::exchange(drop_, nullptr);
  loop_.Post([finished] {});  // its timer is the one that called us
  finished->done(Fail(std::errc::device_or_resource_busy, "DMA_UNMAP: an executor that was killed is still there"));
}

uint32_t ChannelTable::State(uint32_t index) const { return channels_[index].state; }

Result<uint32_t> ChannelTable::FindFree() const {
  for (uint32_t i = VGPU_MAX_CHANNELS; i-- > 0;)
    if (channels_[i].state == VGPU_CHANNEL_FREE) return i;
  return Fail(std::errc::device_or_resource_busy,
              fmt::format("all {} channels of the VF are in use", VGPU_MAX_CHANNELS));
}

uint32_t ChannelTable::open_channels() const {
  return static_cast<uint32_t>(
      std::count_if(channels_.begin(), channels_.end(), [](const Channel& c) { return c.state != VGPU_CHANNEL_FREE; }));
}

bool ChannelTable::any_executor() const {
  return std::any_of(channels_.begin(), channels_.end(), [](const Channel& c) { return c.executor != nullptr; });
}

}  // namespace vgpud::vfio
