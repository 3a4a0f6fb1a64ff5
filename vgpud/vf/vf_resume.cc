// SPDX-License-Identifier: Apache-2.0
// A VF that outlives its vgpud: what is kept of it, and how another vgpud goes on with it (docs/restart.md).
#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/slice_page.h"
#include "vgpud/vf/vf.h"

namespace vgpud::daemon {

// From here on it outlives this process. A vgpud-vf that was not there yet ends with us, as nobody waits for it.
void Vf::KeepSelf(uint32_t link_version) {
  if (around_.keeper == nullptr) return;
  auto ledger = VfLedger::Make(spec_.name);
  if (!ledger) {
    LOG(kError, "vf={}: it ends when vgpud ends: {}", spec_.name, ledger.error().context);
    return;
  }
  ledger_ = *ledger;
  ledger_->SetPast(past_);
  KeptVf kept;
  kept.note = {.link_version = link_version,
               .slice_version = kSliceVersion,
               .pid = process_->pid(),
               .number = Raw(id_),
               .uuid = uuid_};
  const std::pair<UniqueFd KeptVf::*, int> fds[] = {{&KeptVf::link, link_->fd()},
                                                    {&KeptVf::pidfd, process_->pidfd()},
                                                    {&KeptVf::grant, slices_.writable_grant_fd.get()},
                                                    {&KeptVf::slots, slots_fd_.get()},
                                                    {&KeptVf::log, log_fd_.get()},
                                                    {&KeptVf::ledger, ledger_->fd()}};
  for (const auto& [field, fd] : fds) {
    auto copy = Dup(fd);
    if (!copy) {
      LOG(kError, "vf={}: it ends when vgpud ends: {}", spec_.name, copy.error().context);
      return;
    }
    kept.*field = std::move(*copy);
  }
  KeepVf(*around_.keeper, spec_.name, kept);
  slices_.writable_grant_fd.Reset();
  log_fd_.Reset();
}

void Vf::Resume(KeptVf kept, SliceMemory slices, std::shared_ptr<VfLedger> ledger, Reply<uint64_t> done) {
  started_ = std::move(done);
  ledger_ = std::move(ledger);
  ledger_->SetPast(past_);
  slices_ = std::move(slices);
  slices_.writable_grant_fd.Reset();
  grant_fd_ = std::move(slices_.grant_fd);
  slots_fd_ = std::move(slices_.slots_fd);
  if (const auto adopted = Adopt(std::move(kept)); !adopted) Fail(adopted.error().context);
}

Result<void> Vf::Adopt(KeptVf kept) {
  process_ = std::make_unique<Child>(Child::Adopt(kept.note.pid, std::move(kept.pidfd)));
  MakeLink(std::move(kept.link), MonotonicNs());  // far more than anybody can have asked
  log_.Follow(process_->pid(), std::move(kept.log));
  TRY(MoveIntoGroup(*process_));  // it may not have come that far
  if (kept.watch) {
    link_->RefuseFds();
    TRY(WatchSyscalls(std::move(kept.watch)));
  } else if (!around_.confinement.watch) {
    link_->RefuseFds();
  }
  in_gpu_ = true;
  JoinGpu();
  for (KeptExecutor& each : kept.executors) {
    auto executor =
        std::make_shared<Executor>(Child::Adopt(each.note.pid, TRY(Dup(each.pidfd.get()))), each.note.channel);
    executor->confirmed = false;
    log_.Follow(each.note.pid, std::move(each.log));
    TRY(MoveIntoGroup(executor->child));
    last_generation_ = std::max(last_generation_, each.note.generation);
    AddExecutor(each.note.generation, executor, std::move(each.pidfd));
    if (const auto known = kept.channels.find(each.note.generation); known != kept.channels.end())
      ResumeChannels(each.note.generation, *executor, known->second);
  }
  adopting_ = true;
  TRY(link_->Send(vf_link::Adopt{.version = std::min(kept.note.link_version, vf_link::kVersion)}));
  link_->Watch();
  return {};
}

// An earlier vgpud may have left it switched off.
void Vf::ResumeChannels(uint64_t generation, const Executor& executor, const ChannelFiles& channels) {
  const std::string name = fmt::format("vf={} executor pid={}", spec_.name, executor.child.pid());
  if (!around_.gpu.channel_turns()) {
    if (channels.LetOn()) return;
  } else if (auto source = channels.Source(name, true)) {
    return around_.gpu.AddChannels(id_, executor.channel, generation, std::move(*source));
  }
  LOG(kError, "{}: the vgpud before may have switched it off, and it can't be let on: killed", name);
  executor.child.Kill(SIGKILL);
}

// What vgpud-vf knows of one channel. The vgpud before may have read its wish for an executor and not have lived to
// answer; an executor that it started for that has lost its link, and ends.
Result<void> Vf::OnChannel(const Message& message) {
  const auto about = TRY(message.As<vf_link::Channel>());
  if (!adopting_ || about.channel >= kMaxExecutors || about.state > vf_link::ChannelState::kClosing)
    return vgpud::Fail(std::errc::bad_message, "unexpected Channel");
  auto it = executors_.find(about.generation);
  if (it != executors_.end() && it->second->channel != about.channel)
    return vgpud::Fail(std::errc::bad_message, fmt::format("channel {} has another's executor", about.channel));
  if (about.state != vf_link::ChannelState::kWaits) {
    if (it == executors_.end()) return {};  // it has ended, which vgpud-vf sees, too
    it->second->confirmed = true;
    if (about.state == vf_link::ChannelState::kClosing) ExpectExit(*it->second);
    return {};
  }
  if (it != executors_.end() && it->second->confirmed) return {};  // this vgpud has read the wish itself
  if (it != executors_.end()) {
    const std::shared_ptr<Executor> undelivered = it->second;
    undelivered->child.Abandon();
    ForgetExecutor(*around_.keeper, spec_.name, about.generation);
    executors_.erase(it);
    around_.loop.Post([undelivered] {});
  }
  last_generation_ = std::max(last_generation_, about.generation);
  vf_link::Executor wanted{.kind = vf_link::Kind::kNeedExecutor};
  wanted.channel = about.channel;
  wanted.generation = about.generation;
  wanted.client_pid = about.client_pid;
  return GiveExecutor(wanted);
}

Result<void> Vf::OnInStep(const Message&) {
  if (!std::exchange(adopting_, false)) return vgpud::Fail(std::errc::bad_message, "unexpected InStep");
  for (const auto& [generation, executor] : executors_)
    if (!executor->confirmed) executor->child.Kill(SIGKILL);
  return {};
}

}  // namespace vgpud::daemon
