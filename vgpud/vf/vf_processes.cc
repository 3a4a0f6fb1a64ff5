// SPDX-License-Identifier: Apache-2.0
// The processes of a VF, and what its vgpud-vf says and asks for.
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "base/compute_capability.h"
#include "base/exec_link.h"
#include "base/log.h"
#include "vgpud/host/cgroup_file.h"
#include "vgpud/host/thread_priority.h"
#include "vgpud/vf/vf.h"

namespace vgpud::daemon {
namespace {

// On a busy host a process may wait for seconds before it computes at all.
constexpr Ns kStartLimit = std::chrono::seconds{30};
constexpr Ns kExecutorExitLimit = std::chrono::seconds{1};
constexpr size_t kMaxExecutorProcesses = 2 * kMaxExecutors;  // the second half only while the first exits

// Of vgpud-vf's sockets, in that process.
constexpr int kVfioNumber = 4;
constexpr int kChannelsNumber = 5;
// Its threads begin a few milliseconds after its start.
constexpr int kEarlyLooksForThreads = 8, kMostLooksForThreads = 108;
constexpr Ns kLookForThreadsEarly = std::chrono::milliseconds{5}, kLookForThreadsEvery = std::chrono::milliseconds{50};

// Destroys `object` after the running callback: a watch must not be destroyed inside its own.
template <class T>
void DestroyLater(EventLoop& loop, std::shared_ptr<T> object) {
  loop.Post([object] {});
}
void DestroyLater(EventLoop& loop, EventLoop::WatchPtr watch) {
  if (watch != nullptr) DestroyLater(loop, std::shared_ptr<EventLoop::Watch>(std::move(watch)));
}

}  // namespace

Result<Child> Vf::SpawnChild(Child::Spec spec, UniqueFd* copy) {
  Pipe log = TRY(MakePipe());
  spec.files.push_back({log.write.get(), STDERR_FILENO});
  for (auto& argument : around_.confinement.ArgumentsFor(id_)) spec.arguments.push_back(std::move(argument));
  spec.confinement = around_.confinement.kind;
  spec.user = around_.confinement.UserOf(id_);
  Child child = TRY(Child::Spawn(spec));
  if (around_.processors) SetOtherThreads(child.pid(), 0, {.processors = around_.processors});
  TRY(MoveIntoGroup(child));
  if (around_.keeper != nullptr) *copy = TRY(Dup(log.read.get()));
  log_.Follow(child.pid(), std::move(log.read));
  return child;
}

Result<void> Vf::MoveIntoGroup(const Child& child) {
  // It holds on to the process, so that its number cannot come to mean another one.
  const bool posted =
      around_.mover.Post([move = cgroup_.Mover(), pid = child.pid(), pidfd = child.HoldPid(), name = spec_.name] {
        pollfd ended{pidfd->get(), POLLIN, 0};
        if (::poll(&ended, 1, 0) != 0) return;
        if (const auto moved = move(pid); !moved && moved.error().code != std::errc::no_such_process)
          LOG(kWarning, "vf={} pid={}: outside of its control group: {}", name, pid, moved.error().context);
      });
  if (!posted)
    return vgpud::Fail(std::errc::resource_unavailable_try_again, "too many processes wait for their control group");
  return {};
}

void Vf::MakeLink(UniqueFd socket, uint64_t asked) {
  link_ = std::make_unique<ServerLink>(
      around_.loop, spec_.name, std::move(socket), process_->pid(), around_.event_budgets,
      ServerLink::Events{
          .on_message = [this](vf_link::Kind kind, const Message& message) { return OnMessage(kind, message); },
          .on_lost = [this](const std::string& why) { Fail(why); }},
      asked);
  process_watch_ = around_.loop.OnReadable(process_->pidfd(), [this] { OnProcessEnded(); });
}

Result<void> Vf::Launch() {
  SocketPair pair = TRY(MakeSeqpacketPair());
  // Bound here: the process itself may not see the directory.
  const UniqueFd vfio = TRY(ListenUnix(Path(".sock"), SOCK_STREAM));
  const UniqueFd channels = TRY(ListenUnix(Path(".channel.sock"), SOCK_SEQPACKET));
  Child::Spec process;
  process.program = around_.vf_program;
  process.arguments = {"vgpud-vf", "--name", spec_.name, fmt::format("--vfio-socket=fd:{}", kVfioNumber),
                       fmt::format("--channel-socket=fd:{}", kChannelsNumber)};
  if (around_.client_memory) process.arguments.push_back("--client-memory");
  for (size_t e = 0; e < kGuardedEvents; ++e)
    process.arguments.push_back(fmt::format("--event-budget={}={}", kEventNames[e], around_.event_budgets[e]));
  process.files = {{pair.b.get(), vf_link::kVfLinkFd}, {vfio.get(), kVfioNumber}, {channels.get(), kChannelsNumber}};
  process_ = std::make_unique<Child>(TRY(SpawnChild(std::move(process), &log_fd_)));
  MakeLink(std::move(pair.a));
  if (!around_.confinement.watch) link_->RefuseFds();
  deadline_ = around_.loop.Timer([this] {
    if (state_ == State::kStarting)
      Fail(fmt::format("vgpud-vf did not answer within {} s", kStartLimit / std::chrono::seconds{1}));
  });
  deadline_->Arm(kStartLimit);

  vf_link::Configure configure;
  configure.watched = around_.confinement.watch;
  configure.vram_bytes = spec_.vram_bytes;
  configure.host_memory_bytes = spec_.host_memory_bytes;
  configure.slice_us = static_cast<uint32_t>(SliceUs());
  configure.weight = spec_.view.weight;
  static_assert(sizeof configure.uuid == sizeof uuid_);
  std::memcpy(configure.uuid, uuid_.data(), uuid_.size());
  std::memcpy(configure.name, spec_.name.data(), std::min(spec_.name.size(), sizeof configure.name - 1));
  static_assert(sizeof exec_link::kSoftGpuName <= sizeof configure.gpu_name);
  std::memcpy(configure.gpu_name, exec_link::kSoftGpuName, sizeof exec_link::kSoftGpuName);
  configure.capability = TRY(FindComputeCapability(around_.soft_gpu_capability))->number;
  slices_ = TRY(MakeSliceMemory(spec_.name));
  grant_fd_ = std::move(slices_.grant_fd);
  slots_fd_ = std::move(slices_.slots_fd);
  const int fds[] = {grant_fd_.get(), slots_fd_.get()};
  return link_->Send(configure, fds);
}

Result<void> Vf::OnMessage(vf_link::Kind kind, const Message& message) {
  static constexpr struct {
    vf_link::Kind kind;
    Result<void> (Vf::*handle)(const Message&);
  } kHandlers[] = {
      {vf_link::Kind::kHello, &Vf::OnHello},
      {vf_link::Kind::kNeedExecutor, &Vf::OnNeedExecutor},
      {vf_link::Kind::kChannelClosed, &Vf::OnChannelClosed},
      {vf_link::Kind::kKillExecutor, &Vf::OnKillExecutor},
      {vf_link::Kind::kClient, &Vf::OnClient},
      {vf_link::Kind::kUsage, &Vf::OnUsage},
      {vf_link::Kind::kEvents, &Vf::OnEvents},
      {vf_link::Kind::kWatched, &Vf::OnWatched},
      {vf_link::Kind::kChannel, &Vf::OnChannel},
      {vf_link::Kind::kInStep, &Vf::OnInStep},
  };
  for (const auto& handler : kHandlers)
    if (handler.kind == kind) return (this->*handler.handle)(message);
  return vgpud::Fail(std::errc::bad_message, fmt::format("message of kind {}", static_cast<uint32_t>(kind)));
}

Result<void> Vf::OnHello(const Message& message) {
  if (in_gpu_) return vgpud::Fail(std::errc::bad_message, "unexpected Hello");
  if (state_ != State::kStarting) return {};
  in_gpu_ = true;
  link_->Watch();
  KeepSelf(TRY(message.As<vf_link::Hello>()).version);
  JoinGpu();
  return {};
}

void Vf::JoinGpu() {
  around_.gpu.AddVf(spec_.view, spec_.name, std::move(slices_), ledger_, [weak = weak_from_this()](uint64_t round) {
    const auto self = weak.lock();
    if (self == nullptr || self->state_ != State::kStarting) return;
    self->state_ = State::kReady;
    if (self->ledger_ != nullptr && self->ledger_->parked()) self->OnParked();
    self->SendInfo();  // settings may have changed since it was configured
    self->FinishStart(round);
  });
}

// It tried a system call that is not on its list: it is not itself any more.
Result<void> Vf::OnWatched(const Message& message) {
  if (!around_.confinement.watch || syscalls_ != nullptr)
    return vgpud::Fail(std::errc::bad_message, "unexpected Watched");
  if (message.fds.size() != 1 || !IsFilterWatch(message.fds[0].get()))
    return vgpud::Fail(std::errc::bad_message, "Watched with something that is no watch");
  link_->RefuseFds();
  if (around_.keeper != nullptr) KeepWatch(*around_.keeper, spec_.name, message.fds[0].get());
  return WatchSyscalls(TRY(Dup(message.fds[0].get())));
}

Result<void> Vf::WatchSyscalls(UniqueFd watch) {
  syscalls_ = std::make_unique<SyscallWatch>(
      around_.loop, std::move(watch), [this](const SyscallWatch::Call& call) -> SyscallWatch::Verdict {
        LOG_LIMITED(limiter_, kError, "vf={} vgpud-vf pid={} tried {}, which it never has to: killed", spec_.name,
                    process_->pid(), call.Name());
        process_->Kill(SIGKILL);
        return {};
      });
  return {};
}

ServerReport Vf::ReportServer() const {
  ServerReport report = link_ != nullptr ? link_->report() : last_of_server_;
  report.log_lines_dropped = log_.dropped();
  return report;
}

void Vf::FinishStart(ApiResult<uint64_t> result) {
  DestroyLater(around_.loop, std::move(deadline_));
  if (const auto done = std::exchange(started_, nullptr)) done(std::move(result));
}

Result<void> Vf::OnNeedExecutor(const Message& message) {
  const auto wanted = TRY(message.As<vf_link::Executor>());
  if (wanted.channel >= kMaxExecutors || wanted.generation <= last_generation_)
    return vgpud::Fail(std::errc::bad_message,
                       fmt::format("executor for channel {} asked twice or out of range", wanted.channel));
  last_generation_ = wanted.generation;
  if (!in_gpu_) return vgpud::Fail(std::errc::bad_message, "executor asked before Hello");
  return GiveExecutor(wanted);
}

Result<void> Vf::GiveExecutor(const vf_link::Executor& wanted) {
  const auto started = state_ == State::kClosing || state_ == State::kFailed
                           ? Result<void>(vgpud::Fail(std::errc::operation_canceled, "the VF is closing"))
                           : StartExecutor(wanted);
  if (started) return {};
  LOG_LIMITED(limiter_, kError, "vf={} channel={} pid={}: no executor: {}", spec_.name, wanted.channel,
              wanted.client_pid, started.error().context);
  vf_link::Executor failed = wanted;
  failed.kind = vf_link::Kind::kExecutorFailed;
  return link_->Send(failed);
}

Result<void> Vf::StartExecutor(const vf_link::Executor& wanted) {
  if (executors_.size() >= kMaxExecutorProcesses)
    return vgpud::Fail(std::errc::resource_unavailable_try_again,
                       fmt::format("{} executors already", executors_.size()));
  SocketPair pair = TRY(MakeSeqpacketPair());
  Child::Spec process;
  process.program = around_.exec_program;
  process.arguments = {"vgpud-exec",
                       "--vf",
                       spec_.name,
                       "--threads",
                       std::to_string(around_.soft_gpu_threads),
                       "--capability",
                       around_.soft_gpu_capability,
                       "--vram",
                       std::to_string(spec_.vram_bytes),
                       "--host-memory",
                       std::to_string(spec_.host_memory_bytes)};
  for (auto& argument : around_.choice.ExecutorArguments(exec_link::kNestedChannelFd))
    process.arguments.push_back(std::move(argument));
  if (around_.confinement.own_users) {
    const auto limits = VfCgroup::LimitsFor(spec_.vram_bytes, spec_.host_memory_bytes, around_.soft_gpu_threads);
    process.arguments.insert(process.arguments.end(), {"--most-threads", std::to_string(limits.pids)});
  }
  process.files = {{pair.b.get(), exec_link::kExecLinkFd},
                   {grant_fd_.get(), exec_link::kGrantPageFd},
                   {slots_fd_.get(), exec_link::kSlotPageFd}};
  const UniqueFd nested = TRY(around_.choice.ConnectChannel());
  if (nested) process.files.push_back({nested.get(), exec_link::kNestedChannelFd});
  ChannelOffer offer;
  if (around_.gpu.channel_turns()) {
    offer = TRY(MakeChannelOffer(spec_.name));
    process.arguments.push_back("--tell-channels");
    process.files.push_back({offer.board.get(), exec_link::kChannelBoardFd});
    process.files.push_back({offer.theirs.get(), exec_link::kChannelSocketFd});
  }
  // A watched one sends the watch of its jail first; vgpud-vf refuses what comes after.
  if (!around_.confinement.watch) RefuseFds(pair.a.get());
  const UniqueFd theirs = std::move(pair.a);  // nobody has sent anything there yet: it closes at once
  UniqueFd log;
  auto executor = std::make_shared<Executor>(TRY(SpawnChild(std::move(process), &log)), wanted.channel);
  UniqueFd pidfd = TRY(Dup(executor->child.pidfd()));
  // Before vgpud-vf hears of it: what it has been told of is there after this process, too.
  if (around_.keeper != nullptr)
    KeepExecutor(*around_.keeper, spec_.name,
                 {{.pid = executor->child.pid(),
                   .channel = wanted.channel,
                   .generation = wanted.generation,
                   .threads = around_.soft_gpu_threads},
                  TRY(Dup(pidfd.get())),
                  std::move(log)});
  AddExecutor(wanted.generation, executor, std::move(pidfd));
  if (offer.ours) AwaitChannels(wanted.generation, *executor, std::move(offer));

  vf_link::Executor answer = wanted;
  answer.kind = vf_link::Kind::kExecutor;
  const int fds[] = {theirs.get(), executor->child.pidfd()};
  LOG(kDebug, "vf={} channel={} executor pid={} for process {}", spec_.name, wanted.channel, executor->child.pid(),
      wanted.client_pid);
  return link_->Send(answer, fds);
}

void Vf::AddExecutor(uint64_t generation, const std::shared_ptr<Executor>& executor, UniqueFd pidfd) {
  around_.gpu.AddExecutor(id_, executor->channel,
                          {.generation = generation,
                           .pid = executor->child.pid(),
                           .pidfd = std::move(pidfd),
                           .resumed = !executor->confirmed,
                           .threads = around_.soft_gpu_threads});
  executor->ended =
      around_.loop.OnReadable(executor->child.pidfd(), [this, generation] { OnExecutorEnded(generation); });
  executor->find_threads = around_.loop.Timer([this, generation] { RaiseThreadsOf(generation); });
  executor->find_threads->Arm(kLookForThreadsEarly);
  executors_.emplace(generation, executor);
}

void Vf::AwaitChannels(uint64_t generation, Executor& executor, ChannelOffer offer) {
  executor.hand_over = std::move(offer.ours);
  executor.board = std::move(offer.board);
  executor.tells = around_.loop.OnReadable(executor.hand_over.get(), [this, generation] { OnHandOver(generation); });
}

void Vf::OnHandOver(uint64_t generation) {
  const auto it = executors_.find(generation);
  if (it == executors_.end()) return;
  Executor& executor = *it->second;
  DestroyLater(around_.loop, std::move(executor.tells));
  const auto channels = TakeHandOver(std::move(executor.hand_over), std::move(executor.board));
  auto source = channels
                    ? channels->Source(fmt::format("vf={} executor pid={}", spec_.name, executor.child.pid()), false)
                    : tl::unexpected(channels.error());
  if (!source) {
    LOG_LIMITED(limiter_, kWarning, "vf={} executor pid={}: its channels are not switched off at the end of turns: {}",
                spec_.name, executor.child.pid(), source.error().context);
    return;
  }
  if (around_.keeper != nullptr) KeepChannels(*around_.keeper, spec_.name, generation, *channels);
  around_.gpu.AddChannels(id_, executor.channel, generation, std::move(*source));
}

void Vf::RaiseThreadsOf(uint64_t generation) {
  const auto it = executors_.find(generation);
  if (it == executors_.end()) return;
  Executor& executor = *it->second;
  const pid_t pid = executor.child.pid();
  const auto own_cpu = around_.gpu.own_cpu();
  const size_t threads = around_.soft_gpu_threads;
  std::optional<cpu_set_t> processors = around_.processors;
  if (own_cpu) processors = AllProcessorsBut(*own_cpu, processors.value_or(AllProcessors()));
  const size_t found = RaiseGpuThreads(pid, threads, processors);
  SetOtherThreads(pid, threads, WhatOthersGet());
  if (found >= threads) return;
  const int looks = ++executor.looks_for_threads;
  if (looks < kMostLooksForThreads)
    executor.find_threads->Arm(looks < kEarlyLooksForThreads ? kLookForThreadsEarly : kLookForThreadsEvery);
}

Ns Vf::CpuTime() const {
  if (const auto counted = cgroup_.CpuTime()) return *counted;
  Ns sum = ended_cpu_;
  for (const auto& [generation, executor] : executors_) sum += executor->pulse.Read().computed;
  return sum + (process_ != nullptr ? ProcessPulse(process_->pid()).Read().computed : Ns{0});
}

Result<void> Vf::OnChannelClosed(const Message& message) {
  const auto closed = TRY(message.As<vf_link::Executor>());
  // Its end and this come at the same time when it was not told to.
  OnExecutorEnded(closed.generation);
  const auto it = executors_.find(closed.generation);
  if (it != executors_.end()) ExpectExit(*it->second);  // else it ended first
  return {};
}

// It has been asked to; if it does not, it is made to.
void Vf::ExpectExit(Executor& executor) {
  if (std::exchange(executor.told_to_exit, true)) return;
  executor.too_long = around_.loop.Timer([this, child = &executor.child] {
    LOG_LIMITED(limiter_, kWarning, "vf={} executor pid={} did not exit when told to: killed", spec_.name,
                child->pid());
    child->Kill(SIGKILL);
  });
  executor.too_long->Arm(kExecutorExitLimit);
}

// It asks for executors of its own VF alone.
Result<void> Vf::OnKillExecutor(const Message& message) {
  const auto wanted = TRY(message.As<vf_link::Executor>());
  if (const auto it = executors_.find(wanted.generation); it != executors_.end()) it->second->child.Kill(SIGKILL);
  return {};
}

void Vf::OnExecutorEnded(uint64_t generation) {
  const auto it = executors_.find(generation);
  if (it == executors_.end()) return;
  const pid_t pid = it->second->child.pid();
  const Ns used = it->second->pulse.Read().computed;
  const auto ending = it->second->child.Reap();
  if (!ending) return;
  ended_cpu_ += used;
  log_.Ended(pid);
  const Executor& executor = *it->second;
  const bool fault = !ending->clean && !executor.told_to_exit;
  if (fault && link_ != nullptr) link_->CountFault();
  if (fault)
    LOG_LIMITED(limiter_, kWarning,
                "vf={} channel={}: executor ended by {}; its guest process gets an error, the VF lives on", spec_.name,
                executor.channel, ending->text);
  around_.gpu.RemoveExecutor(id_, executor.channel, generation);
  if (around_.keeper != nullptr) ForgetExecutor(*around_.keeper, spec_.name, generation);
  DestroyLater(around_.loop, it->second);
  executors_.erase(it);
  MaybeClosed();
}

Result<void> Vf::OnClient(const Message& message) {
  const uint32_t connected = TRY(message.As<vf_link::Client>()).connected;
  if (connected > 1) return vgpud::Fail(std::errc::bad_message, fmt::format("{} clients", connected));
  present_.client_connected = connected != 0;
  return {};
}

// The figures are for display. Impossible ones show that vgpud-vf is no longer ours.
Result<void> Vf::OnUsage(const Message& message) {
  const auto usage = TRY(message.As<vf_link::Usage>());
  if (usage.channels > kMaxExecutors || usage.vram_used > spec_.vram_bytes ||
      usage.host_memory_used > spec_.host_memory_bytes)
    return vgpud::Fail(
        std::errc::bad_message,
        fmt::format("{} bytes of {} and {} bytes of {} of the host in use by {} channels", usage.vram_used,
                    spec_.vram_bytes, usage.host_memory_used, spec_.host_memory_bytes, usage.channels));
  present_.vram_used = usage.vram_used;
  present_.host_memory_used = usage.host_memory_used;
  return {};
}

Result<void> Vf::OnEvents(const Message& message) {
  const auto events = TRY(message.As<vf_link::Events>());
  bool fewer = events.throttled_ns < events_.throttled_ns;
  for (size_t e = 0; e < kGuardedEvents; ++e)
    fewer |= events.count[e] < events_.count[e] || events.throttled[e] < events_.throttled[e];
  if (fewer) return vgpud::Fail(std::errc::bad_message, "counters that went back");
  events_ = events;
  return {};
}

void Vf::OnProcessEnded() {
  const pid_t pid = process_->pid();
  const auto ending = process_->Reap();
  if (!ending) return;
  log_.Ended(pid);
  DestroyLater(around_.loop, std::move(process_watch_));
  DestroyLater(around_.loop, std::shared_ptr<Child>(std::move(process_)));
  last_of_server_ = link_->report();
  DestroyLater(around_.loop, std::shared_ptr<ServerLink>(std::move(link_)));
  if (state_ != State::kClosing) {
    crashed_without_vm_ = state_ == State::kReady && !present_.client_connected;
    Fail(fmt::format("vgpud-vf ended ({}); destroy and create the VF again, and restart its VM", ending->text));
  }
  MaybeClosed();
}

}  // namespace vgpud::daemon
