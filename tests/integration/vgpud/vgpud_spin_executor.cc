// SPDX-License-Identifier: Apache-2.0
// An executor for scheduler tests: speaks the executor link and the slice page truly, but its work is to burn time
// until it is told to leave. How it behaves is in its VF's name: "hang..." ignores the end of its slice, "idle..."
// never has work, all others always have, in kernels of 100 us, "long..." in kernels of 5 ms. Executors that somebody
// has taken over: "sleep..." sleeps far beyond the end of its slice while it says that it runs; "crowd..." does so with
// a thousand threads that are called helpers, "crowd-idle" has these and no work; "storm..." scribbles into the bell
// and rings it without end, always.
#include <poll.h>
#include <sys/prctl.h>

#include <cstring>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/exec_link.h"
#include "base/message.h"
#include "base/slice_memory.h"

namespace {

using namespace vgpud;
namespace link = vgpud::exec_link;

struct World {
  SliceView slices;
  uint32_t slot = 0;
  const GrantPage& grant_page() const { return slices.grant_page(); }
  ExecSlot& own_slot() const { return slices.slot_page().slots[slot]; }
};

// False: exit.
bool HandleLink(World& world, int timeout_ms) {
  pollfd p{link::kExecLinkFd, POLLIN, 0};
  if (::poll(&p, 1, timeout_ms) <= 0) return true;
  auto message = ReceiveMessage(link::kExecLinkFd);
  if (!message) return message.error().code == std::errc::resource_unavailable_try_again;
  const auto kind = message->As<link::Kind>();
  if (!kind) return false;
  if (*kind == link::Kind::kAttach && message->fds.size() == 2) {
    auto slices = MapSlices(link::kGrantPageFd, link::kSlotPageFd);
    const auto attach = message->As<link::Attach>();
    if (!slices || !attach || attach->channel >= kMaxExecutors) return false;
    world.slices = std::move(*slices);
    world.slot = attach->channel;
  }
  if (*kind == link::Kind::kUnmapArea) {
    auto area = message->As<link::Area>();
    if (!area) return false;
    area->kind = link::Kind::kUnmapped;
    (void)SendStruct(link::kExecLinkFd, *area);
  }
  return true;
}

void SetState(World& world, ExecState state, uint32_t notify_from) {
  world.own_slot().state.store(static_cast<uint32_t>(state));
  if (world.grant_page().notify.load() >= notify_from) Ring(world.slices.slot_page());
}

void OneTurn(World& world, bool hangs, uint64_t kernel_ns) {
  const GrantPage& page = world.grant_page();
  ExecSlot& slot = world.own_slot();
  const uint32_t grant = page.grant.load();
  if ((grant & GrantPage::kRun) == 0 || MonotonicNs() >= page.deadline_ns.load() || page.finish.load() == grant) {
    FutexWait(&page.grant, grant, MonotonicNs() + 1'000'000);
    return;
  }
  SetState(world, ExecState::kRunning, 3);
  const uint64_t deadline = page.deadline_ns.load();
  uint64_t now = MonotonicNs(), kernel_end = now + kernel_ns;
  for (; hangs || (page.grant.load() == grant && now < deadline); now = MonotonicNs()) {
    slot.warp_instructions.fetch_add(1, std::memory_order_relaxed);
    if (now < kernel_end) continue;
    slot.kernels.fetch_add(1, std::memory_order_relaxed);
    kernel_end = now + kernel_ns;
    if (page.finish.load() == grant && !hangs) break;
  }
  slot.preempts.fetch_add(1, std::memory_order_relaxed);
  SetState(world, ExecState::kReady, 1);
}

void SleepThroughTurns(World& world) {
  for (;;) {
    SetState(world, ExecState::kReady, 2);
    uint32_t grant = world.grant_page().grant.load();
    for (; (grant & GrantPage::kRun) == 0; grant = world.grant_page().grant.load())
      FutexWait(&world.grant_page().grant, grant);
    SetState(world, ExecState::kRunning, 3);
    const uint64_t end = MonotonicNs() + 700'000'000;
    while (MonotonicNs() < end) ::poll(nullptr, 0, 1);
  }
}

void GatherACrowd() {
  for (int i = 0; i < 1000; ++i)
    std::thread([] {
      ::prctl(PR_SET_NAME, link::kGpuWorkerName);
      ::poll(nullptr, 0, -1);
    }).detach();
}

void RingForEver(World& world) {
  SetState(world, ExecState::kIdle, 1);
  for (;;) Ring(world.slices.slot_page());
}

}  // namespace

int main(int argc, char** argv) {
  ::prctl(PR_SET_NAME, exec_link::kGpuThreadName);  // its only thread is the one that vgpud must know
  std::string_view vf;
  for (int i = 1; i + 1 < argc; ++i)
    if (std::strcmp(argv[i], "--vf") == 0) vf = argv[i + 1];
  World world;
  while (!world.slices.grant)
    if (!HandleLink(world, -1)) return 0;
  if (vf.starts_with("crowd")) GatherACrowd();
  if (vf.starts_with("idle") || vf == "crowd-idle") {
    SetState(world, ExecState::kIdle, 1);
    while (HandleLink(world, -1)) {
    }
    return 0;
  }
  if (vf.starts_with("crowd") || vf.starts_with("sleep")) SleepThroughTurns(world);
  if (vf.starts_with("storm")) RingForEver(world);
  const uint64_t kernel_ns = vf.starts_with("long") ? 5'000'000 : 100'000;
  SetState(world, ExecState::kReady, 2);
  while (HandleLink(world, 0)) OneTurn(world, vf.starts_with("hang"), kernel_ns);
  return 0;
}
