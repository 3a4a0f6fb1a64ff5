// SPDX-License-Identifier: Apache-2.0
#include "vgpud/vf/adoption.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

#include "base/exec_link.h"
#include "base/log.h"
#include "base/message.h"

namespace vgpud::daemon {
namespace {

constexpr Ns kLookEvery = std::chrono::microseconds{100};
constexpr Ns kLeaveByItself = std::chrono::microseconds{500};
constexpr int kShutdownMs = 500;  // vgpud-vf gives its executors less
constexpr int kKillMs = 1000;

bool HasEnded(const UniqueFd& pidfd, int wait_ms = 0) {
  pollfd ended{pidfd.get(), POLLIN, 0};
  return ::poll(&ended, 1, wait_ms) == 1;
}

}  // namespace

std::string Adoption::WhyNot(const KeptVf& kept) {
  if (!kept.link || !kept.pidfd) return "only its executors are left";
  if (HasEnded(kept.pidfd)) return "its vgpud-vf has ended; if a VM used it, unplug the device and plug it in again";
  if (kept.note.slice_version != kSliceVersion)
    return fmt::format("its slice pages have version {}, this vgpud knows {}: restart its VM", kept.note.slice_version,
                       kSliceVersion);
  if (!vf_link::CanAdopt(kept.note.link_version))
    return fmt::format(
        "its vgpud-vf speaks version {} of the link, this vgpud {}, and only versions next to each other "
        "go together: restart its VM",
        kept.note.link_version, vf_link::kVersion);
  for (const KeptExecutor& executor : kept.executors)
    if (executor.note.channel >= kMaxExecutors) return "its executors are not understood";
  return {};
}

Adoption::Adoption(Keeper* keeper, KeptVfs kept) : keeper_(keeper) {
  for (auto& [name, vf] : kept) {
    Found found;
    found.why_not = WhyNot(vf);
    if (found.why_not.empty()) {
      auto slices = AdoptSliceMemory(std::move(vf.grant), std::move(vf.slots));
      if (slices)
        found.slices = std::move(*slices);
      else
        found.why_not = slices.error().context;
    }
    if (found.why_not.empty()) {
      auto ledger = VfLedger::Open(std::move(vf.ledger));
      if (ledger) found.ledger = std::move(*ledger);
      if (!ledger) found.why_not = ledger.error().context;
    }
    found.kept = std::move(vf);
    found_.emplace(name, std::move(found));
  }
}

bool Adoption::OnGpu(const Found& found, bool kill) {
  bool any = false;
  if (!found.slices) return false;
  for (const KeptExecutor& executor : found.kept.executors) {
    const ExecSlot& slot = found.slices->slot_page().slots[executor.note.channel];
    if (static_cast<ExecState>(slot.state.load(std::memory_order_seq_cst)) != ExecState::kRunning ||
        HasEnded(executor.pidfd) || found.off.count(executor.note.generation) != 0)
      continue;
    any = true;
    if (kill) ::syscall(SYS_pidfd_send_signal, executor.pidfd.get(), SIGKILL, nullptr, 0);
  }
  return any;
}

void Adoption::SwitchOff(const std::string& name, Found& found) {
  if (!found.slices) return;
  for (const KeptExecutor& executor : found.kept.executors) {
    const ExecSlot& slot = found.slices->slot_page().slots[executor.note.channel];
    const auto channels = found.kept.channels.find(executor.note.generation);
    if (channels == found.kept.channels.end() || HasEnded(executor.pidfd) ||
        static_cast<ExecState>(slot.state.load(std::memory_order_seq_cst)) != ExecState::kRunning)
      continue;
    if (const auto off = channels->second.TakeOff(); !off)
      LOG(kWarning, "vf={} executor pid={}: its channels can't be switched off: {}", name, executor.note.pid,
          off.error().context);
    else
      found.off.insert(executor.note.generation);
  }
}

void Adoption::AwaitIdle(Ns limit) {
  const TimePoint begun = Now(), end = begun + limit;
  for (auto& [name, found] : found_) {
    bool killed = false, switched = false;
    while (OnGpu(found, killed)) {
      if (!switched && Now() > begun + kLeaveByItself) {
        switched = true;
        SwitchOff(name, found);
        continue;
      }
      if (!killed && Now() > end) {
        killed = true;
        LOG(kError, "vf={}: an executor did not leave the GPU while no vgpud was there: killed", name);
      }
      std::this_thread::sleep_for(kLookEvery);
    }
  }
}

std::string Adoption::WhyNot(const VfDefinition& definition) const {
  const auto it = found_.find(definition.spec.name);
  if (it == found_.end()) return "nothing of it is left";
  const Found& found = it->second;
  if (!found.why_not.empty()) return found.why_not;
  if (found.kept.note.uuid != definition.uuid) return "another VF has its name now";
  if (found.kept.note.number != definition.number) return "its definition has another number, and with it another user";
  return {};
}

std::optional<Adoption::Ready> Adoption::Take(const VfDefinition& definition) {
  const auto it = found_.find(definition.spec.name);
  if (it == found_.end()) return std::nullopt;
  const std::string why_not = WhyNot(definition);
  Found found = std::move(it->second);
  found_.erase(it);
  if (why_not.empty()) {
    const GrantPage& page = found.slices->grant_page();
    Ready ready{std::move(found.kept), std::move(*found.slices), std::move(found.ledger), {}};
    if (const auto last = ready.ledger->Read())
      ready.past = TotalOf(*last, page.granted_ns.load(), page.taken_back_ns.load());
    return ready;
  }
  End(definition.spec.name, found, why_not);
  return std::nullopt;
}

// By its own hand first, so that its VM sees the device go.
void Adoption::End(const std::string& name, const Found& found, const std::string& why) {
  LOG(kWarning, "vf={}: what an earlier vgpud left of it is ended: {}", name, why);
  if (found.kept.link) {
    const vf_link::Plain shutdown{vf_link::Kind::kShutdown};
    (void)SendStruct(found.kept.link.get(), shutdown);
  }
  if (found.kept.pidfd) (void)HasEnded(found.kept.pidfd, kShutdownMs);
  found.kept.Kill();
  bool all = !found.kept.pidfd || HasEnded(found.kept.pidfd, kKillMs);
  for (const KeptExecutor& executor : found.kept.executors) all &= HasEnded(executor.pidfd, kKillMs);
  if (!all) LOG(kError, "vf={}: its processes do not end although they were killed", name);
  VfKeeping(keeper_, name).Forget();
}

void Adoption::EndRest() {
  for (const auto& [name, found] : found_)
    End(name, found, found.why_not.empty() ? "there is no definition of it" : found.why_not);
  found_.clear();
}

}  // namespace vgpud::daemon
