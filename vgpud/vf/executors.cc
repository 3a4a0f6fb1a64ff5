// SPDX-License-Identifier: Apache-2.0
#include "vgpud/vf/executors.h"

#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "base/exec_link.h"
#include "base/slice_memory.h"
#include "base/slice_page.h"

namespace vgpud::daemon {
namespace {

constexpr Ns kExitLimit = std::chrono::seconds{1};
constexpr size_t kMostProcesses = 2 * kMaxExecutors;  // the second half only while the first exits
// Its threads begin a few milliseconds after its start.
constexpr int kEarlyLooksForThreads = 8, kMostLooksForThreads = 108;
constexpr Ns kLookForThreadsEarly = std::chrono::milliseconds{5}, kLookForThreadsEvery = std::chrono::milliseconds{50};

}  // namespace

Executors::Executors(const VfSurroundings& around, VfSpawner& spawner, VfKeeping keeping, VfId id, const VfSpec& spec,
                     Events events)
    : around_(around),
      spawner_(spawner),
      keeping_(std::move(keeping)),
      id_(id),
      spec_(spec),
      memory_(spec.memory()),
      events_(std::move(events)) {}

void Executors::Open(UniqueFd grant_page, UniqueFd slot_page) {
  grant_page_ = std::move(grant_page);
  slot_page_ = std::move(slot_page);
  // Without it nothing is known of memory and GPU time.
  if (auto mapped = Mapping::Shared(slot_page_.get(), 0, kSlotPageBytes, false)) slots_ = std::move(*mapped);
  open_ = true;
}

Result<void> Executors::OnNeeded(const Message& message) {
  const auto wanted = TRY(message.As<vf_link::Executor>());
  if (wanted.channel >= kMaxExecutors || wanted.generation <= last_generation_)
    return Fail(std::errc::bad_message,
                fmt::format("executor for channel {} asked twice or out of range", wanted.channel));
  last_generation_ = wanted.generation;
  if (!open_) return Fail(std::errc::bad_message, "executor asked before Hello");
  return Give(wanted);
}

Result<void> Executors::Give(const vf_link::Executor& wanted) {
  const auto started =
      refuses_ ? Result<void>(Fail(std::errc::operation_canceled, "the VF is closing")) : Start(wanted);
  if (started) return {};
  LOG_LIMITED(limiter_, kError, "vf={} channel={} pid={}: no executor: {}", spec_.name, wanted.channel,
              wanted.client_pid, started.error().context);
  vf_link::Executor failed = wanted;
  failed.kind = vf_link::Kind::kExecutorFailed;
  return events_.answer(failed, {});
}

Child::Spec Executors::ProcessFor(int link, int nested_channel, const ChannelOffer& offer) const {
  Child::Spec process;
  process.program = around_.exec_program;
  process.arguments = {"vgpud-exec"};
  const auto add = [&process](std::vector<std::string> more) {
    for (auto& argument : more) process.arguments.push_back(std::move(argument));
  };
  add(ExecArguments()
          .Add(ExecOption::kVf, spec_.name)
          .Add(ExecOption::kThreads, std::to_string(around_.soft_gpu_threads))
          .Add(ExecOption::kCapability, around_.soft_gpu_capability)
          .Add(ExecOption::kVram, std::to_string(memory_.vram_bytes))
          .Add(ExecOption::kHostMemory, std::to_string(memory_.host_memory_bytes))
          .Add(ExecOption::kMostVram, std::to_string(around_.most_memory.vram_bytes))
          .Take());
  // Where nothing else limits them, their own limits stay as they are.
  if (spawner_.cgroup().limits_memory())
    add(ExecArguments()
            .Add(ExecOption::kMostMemory,
                 std::to_string(around_.most_memory.vram_bytes + around_.most_memory.host_memory_bytes))
            .Take());
  add(around_.choice.ExecutorArguments(exec_link::kNestedChannelFd));
  add(spawner_.LimitArguments(spec_));
  process.files = {{link, exec_link::kExecLinkFd},
                   {grant_page_.get(), exec_link::kGrantPageFd},
                   {slot_page_.get(), exec_link::kSlotPageFd}};
  if (nested_channel >= 0) process.files.push_back({nested_channel, exec_link::kNestedChannelFd});
  if (!offer.ours) return process;
  add(ExecArguments().Add(ExecOption::kTellChannels).Take());
  process.files.push_back({offer.board.get(), exec_link::kChannelBoardFd});
  process.files.push_back({offer.theirs.get(), exec_link::kChannelSocketFd});
  return process;
}

Result<void> Executors::Start(const vf_link::Executor& wanted) {
  if (executors_.size() >= kMostProcesses)
    return Fail(std::errc::resource_unavailable_try_again, fmt::format("{} executors already", executors_.size()));
  SocketPair pair = TRY(MakeSeqpacketPair());
  const UniqueFd nested = TRY(around_.choice.ConnectChannel());
  ChannelOffer offer;
  if (around_.gpu.channel_turns()) offer = TRY(MakeChannelOffer(spec_.name));
  // A watched one sends the watch of its jail first; vgpud-vf refuses what comes after.
  if (!around_.confinement.watch) RefuseFds(pair.a.get());
  const UniqueFd theirs = std::move(pair.a);  // nobody has sent anything there yet: it closes at once
  auto [child, log] = TRY(spawner_.Spawn(ProcessFor(pair.b.get(), nested.get(), offer)));
  const pid_t pid = child.pid();
  UniqueFd pidfd = TRY(Dup(child.pidfd()));
  // Before vgpud-vf hears of it: what it has been told of is there after this process, too.
  if (keeping_.on())
    keeping_.KeepExecutor(
        {{.pid = pid, .channel = wanted.channel, .generation = wanted.generation, .threads = around_.soft_gpu_threads},
         TRY(Dup(pidfd.get())),
         std::move(log)});
  Executor& executor = Add(wanted.generation, std::move(child), wanted.channel, std::move(pidfd), true);
  executor.program = wanted.client_pid;
  if (offer.ours) AwaitChannels(wanted.generation, executor, std::move(offer));

  vf_link::Executor answer = wanted;
  answer.kind = vf_link::Kind::kExecutor;
  const int fds[] = {theirs.get(), executor.child.pidfd()};
  LOG(kDebug, "vf={} channel={} executor pid={} for process {}", spec_.name, wanted.channel, pid, wanted.client_pid);
  return events_.answer(answer, fds);
}

Executors::Executor& Executors::Add(uint64_t generation, Child child, uint32_t channel, UniqueFd pidfd,
                                    bool confirmed) {
  around_.gpu.AddExecutor(id_, channel,
                          {.generation = generation,
                           .pid = child.pid(),
                           .pidfd = std::move(pidfd),
                           .resumed = !confirmed,
                           .threads = around_.soft_gpu_threads});
  Executor& executor = executors_.try_emplace(generation, std::move(child), channel).first->second;
  executor.confirmed = confirmed;
  executor.ended = around_.loop.OnReadable(executor.child.pidfd(), [this, generation] { OnEnded(generation); });
  executor.find_threads = around_.loop.Timer([this, generation] { RaiseThreadsOf(generation); });
  executor.find_threads->Arm(kLookForThreadsEarly);
  return executor;
}

Result<void> Executors::Adopt(KeptVf& kept) {
  for (KeptExecutor& each : kept.executors) {
    const uint64_t generation = each.note.generation;
    Child child = Child::Adopt(each.note.pid, TRY(Dup(each.pidfd.get())));
    TRY(spawner_.Adopt(child, std::move(each.log)));
    last_generation_ = std::max(last_generation_, generation);
    const Executor& executor = Add(generation, std::move(child), each.note.channel, std::move(each.pidfd), false);
    if (const auto known = kept.channels.find(generation); known != kept.channels.end())
      ResumeChannels(generation, executor, known->second);
  }
  adopting_ = true;
  return {};
}

void Executors::AwaitChannels(uint64_t generation, Executor& executor, ChannelOffer offer) {
  executor.hand_over = std::move(offer.ours);
  executor.board = std::move(offer.board);
  executor.tells = around_.loop.OnReadable(executor.hand_over.get(), [this, generation] { OnHandOver(generation); });
}

void Executors::OnHandOver(uint64_t generation) {
  const auto it = executors_.find(generation);
  if (it == executors_.end()) return;
  Executor& executor = it->second;
  executor.tells.reset();
  const auto channels = TakeHandOver(std::move(executor.hand_over), std::move(executor.board));
  auto source = channels
                    ? channels->Source(fmt::format("vf={} executor pid={}", spec_.name, executor.child.pid()), false)
                    : tl::unexpected(channels.error());
  if (!source) {
    LOG_LIMITED(limiter_, kWarning, "vf={} executor pid={}: its channels are not switched off at the end of turns: {}",
                spec_.name, executor.child.pid(), source.error().context);
    return;
  }
  keeping_.KeepChannels(generation, *channels);
  around_.gpu.AddChannels(id_, executor.channel, generation, std::move(*source));
}

// An earlier vgpud may have left it switched off.
void Executors::ResumeChannels(uint64_t generation, const Executor& executor, const ChannelFiles& channels) {
  const std::string name = fmt::format("vf={} executor pid={}", spec_.name, executor.child.pid());
  if (!around_.gpu.channel_turns()) {
    if (channels.LetOn()) return;
  } else if (auto source = channels.Source(name, true)) {
    return around_.gpu.AddChannels(id_, executor.channel, generation, std::move(*source));
  }
  LOG(kError, "{}: the vgpud before may have switched it off, and it can't be let on: killed", name);
  Tell(event_kind::kKilled, executor.child.pid(),
       "the vgpud before may have switched the executor off, and it can't be let on");
  executor.child.Kill(SIGKILL);
}

void Executors::RaiseThreadsOf(uint64_t generation) {
  const auto it = executors_.find(generation);
  if (it == executors_.end()) return;
  Executor& executor = it->second;
  const pid_t pid = executor.child.pid();
  const auto own_cpu = around_.gpu.own_cpu();
  const size_t threads = around_.soft_gpu_threads;
  std::optional<cpu_set_t> processors = around_.processors;
  if (own_cpu) processors = AllProcessorsBut(*own_cpu, processors.value_or(AllProcessors()));
  const size_t found = RaiseGpuThreads(pid, threads, processors);
  SetOtherThreads(pid, threads, events_.priority());
  if (found >= threads) return;
  const int looks = ++executor.looks_for_threads;
  if (looks < kMostLooksForThreads)
    executor.find_threads->Arm(looks < kEarlyLooksForThreads ? kLookForThreadsEarly : kLookForThreadsEvery);
}

Result<void> Executors::OnChannelClosed(const Message& message) {
  const auto closed = TRY(message.As<vf_link::Executor>());
  // Its end and this come at the same time when it was not told to.
  OnEnded(closed.generation);
  const auto it = executors_.find(closed.generation);
  if (it != executors_.end()) ExpectExit(it->second);  // else it ended first
  return {};
}

void Executors::Tell(const char* kind, pid_t pid, std::string text) const {
  around_.chronicle->Add(
      {.kind = kind, .vf = spec_.name, .gpu = around_.gpu_name, .pid = pid, .text = std::move(text)});
}

// It has been asked to; if it does not, it is made to.
void Executors::ExpectExit(Executor& executor) {
  if (std::exchange(executor.told_to_exit, true)) return;
  executor.too_long = around_.loop.Timer([this, child = &executor.child] {
    LOG_LIMITED(limiter_, kWarning, "vf={} executor pid={} did not exit when told to: killed", spec_.name,
                child->pid());
    Tell(event_kind::kKilled, child->pid(), "the executor did not exit when told to");
    child->Kill(SIGKILL);
  });
  executor.too_long->Arm(kExitLimit);
}

// vgpud-vf asks for executors of its own VF alone.
Result<void> Executors::OnKill(const Message& message) {
  const auto wanted = TRY(message.As<vf_link::Executor>());
  if (const auto it = executors_.find(wanted.generation); it != executors_.end()) it->second.child.Kill(SIGKILL);
  return {};
}

// What vgpud-vf knows of one channel. The vgpud before may have read its wish for an executor and not have lived to
// answer; an executor that it started for that has lost its link, and ends.
Result<void> Executors::OnChannel(const Message& message) {
  const auto about = TRY(message.As<vf_link::Channel>());
  if (!adopting_ || about.channel >= kMaxExecutors || about.state > vf_link::ChannelState::kClosing)
    return Fail(std::errc::bad_message, "unexpected Channel");
  const auto it = executors_.find(about.generation);
  if (it != executors_.end() && it->second.channel != about.channel)
    return Fail(std::errc::bad_message, fmt::format("channel {} has another's executor", about.channel));
  if (about.state != vf_link::ChannelState::kWaits) {
    if (it == executors_.end()) return {};  // it has ended, which vgpud-vf sees, too
    it->second.confirmed = true;
    it->second.program = about.client_pid;
    if (about.state == vf_link::ChannelState::kClosing) ExpectExit(it->second);
    return {};
  }
  if (it != executors_.end()) {
    if (it->second.confirmed) return {};  // this vgpud has read the wish itself
    it->second.child.Abandon();
    keeping_.ForgetExecutor(about.generation);
    executors_.erase(it);
  }
  last_generation_ = std::max(last_generation_, about.generation);
  vf_link::Executor wanted{.kind = vf_link::Kind::kNeedExecutor};
  wanted.channel = about.channel;
  wanted.generation = about.generation;
  wanted.client_pid = about.client_pid;
  return Give(wanted);
}

Result<void> Executors::OnInStep(const Message&) {
  if (!std::exchange(adopting_, false)) return Fail(std::errc::bad_message, "unexpected InStep");
  for (const auto& [generation, executor] : executors_)
    if (!executor.confirmed) executor.child.Kill(SIGKILL);
  return {};
}

void Executors::OnEnded(uint64_t generation) {
  const auto it = executors_.find(generation);
  if (it == executors_.end()) return;
  Executor& executor = it->second;
  const pid_t pid = executor.child.pid();
  const Ns used = executor.pulse.Read().computed;
  const auto ending = executor.child.Reap();
  if (!ending) return;
  ended_cpu_ += used;
  spawner_.Ended(pid);
  if (!ending->clean && !executor.told_to_exit) {
    events_.on_fault();
    LOG_LIMITED(limiter_, kWarning,
                "vf={} channel={}: executor ended by {}; its guest process gets an error, the VF lives on", spec_.name,
                executor.channel, ending->text);
    Tell(event_kind::kEnded, pid,
         fmt::format("the executor ended by {}; its program gets an error, the VF lives on", ending->text));
  }
  around_.gpu.RemoveExecutor(id_, executor.channel, generation);
  keeping_.ForgetExecutor(generation);
  executors_.erase(it);
  events_.on_ended();
}

Ns Executors::cpu_time() const {
  Ns sum = ended_cpu_;
  for (const auto& [generation, executor] : executors_) sum += executor.pulse.Read().computed;
  return sum;
}

std::vector<ProcessReport> Executors::Processes() const {
  const auto now_ns = static_cast<uint64_t>(Now().time_since_epoch().count());
  std::vector<ProcessReport> all;
  for (const auto& [generation, executor] : executors_) {
    ProcessReport& process = all.emplace_back();
    process.pid = executor.program;
    process.executor_pid = executor.child.pid();
    process.cpu_ns = static_cast<uint64_t>(executor.pulse.Read().computed.count());
    if (!slots_) continue;
    const ExecClock& clock = slots_.At<const SlotPage>(0)->clocks[executor.channel];
    process.has_context = clock.has_context.load(std::memory_order_relaxed) != 0;
    process.gpu_ns = TimeOnGpu(clock, now_ns);
    process.vram_bytes = HeldMemoryIn(slots_).vram_bytes[executor.channel].load(std::memory_order_relaxed);
  }
  return all;
}

void Executors::KillAll() {
  for (const auto& [generation, executor] : executors_) executor.child.Kill(SIGKILL);
}

void Executors::EndAll() {
  for (auto& [generation, executor] : executors_) executor.told_to_exit = true;
  KillAll();
}

void Executors::AbandonAll() {
  for (auto& [generation, executor] : executors_) executor.child.Abandon();
}

void Executors::EndThreadStorms() {
  const uint64_t most = VfCgroup::ThreadsOf(around_.soft_gpu_threads);
  for (const auto& [generation, executor] : executors_) {
    const uint64_t threads = executor.pulse.Read().threads;
    if (threads <= most) continue;
    LOG_LIMITED(limiter_, kWarning, "vf={} executor pid={} has {} threads, none needs more than {}: killed", spec_.name,
                executor.child.pid(), threads, most);
    Tell(event_kind::kKilled, executor.child.pid(),
         fmt::format("the executor has {} threads, none needs more than {}", threads, most));
    executor.child.Kill(SIGKILL);
  }
}

void Executors::SetPriorities(const OtherThreads& what, Ns allowed, bool watch) {
  const size_t threads = around_.soft_gpu_threads;
  for (auto& [generation, executor] : executors_) {
    const pid_t pid = executor.child.pid();
    const Ns time = GpuThreadsTime(pid, threads);
    const Ns computed = time - std::exchange(executor.gpu_threads_time, time);
    // One that was taken over computes with these as well. The first look knows nothing.
    if (computed < time && computed > allowed) executor.spares_threads = false;
    if (!watch) executor.gpu_threads_time = Ns{0};
    if (what.nice) SetOtherThreads(pid, executor.spares_threads ? threads : 0, {.nice = what.nice});
    // Its own turns would end late on the processor of the scheduler thread.
    if (what.processors) SetOtherThreads(pid, threads, {.processors = what.processors});
  }
}

}  // namespace vgpud::daemon
