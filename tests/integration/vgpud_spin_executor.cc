// An executor for scheduler tests: speaks the executor link and the slice page truly, but its work is to burn time
// until it is told to leave. How it behaves is in its VF's name: "hang..." ignores the end of its slice, "idle..."
// never has work, all others always have, in kernels of 100 us, "long..." in kernels of 5 ms.
#include <poll.h>

#include <cstring>
#include <string_view>

#include "base/clock.h"
#include "base/exec_link.h"
#include "base/mapping.h"
#include "base/message.h"
#include "base/slice_page.h"

namespace {

using namespace vgpud;
namespace link = vgpud::exec_link;

struct World {
  Mapping page;
  UniqueFd sched_event;
  uint32_t slot = 0;
  SlicePage& slice_page() { return *page.At<SlicePage>(0); }
};

// False: exit.
bool HandleLink(World& world, int timeout_ms) {
  pollfd p{link::kExecLinkFd, POLLIN, 0};
  if (::poll(&p, 1, timeout_ms) <= 0) return true;
  auto message = ReceiveMessage(link::kExecLinkFd);
  if (!message) return message.error().code == std::errc::resource_unavailable_try_again;
  const auto kind = message->As<link::Kind>();
  if (!kind) return false;
  if (*kind == link::Kind::kAttach && message->fds.size() == 4) {
    auto mapping = Mapping::Shared(message->fds[0].get(), 0, kSlicePageBytes);
    const auto attach = message->As<link::Attach>();
    if (!mapping || !attach || attach->channel >= kMaxExecutors) return false;
    world.page = std::move(*mapping);
    world.sched_event = std::move(message->fds[1]);
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
  world.slice_page().slots[world.slot].state.store(static_cast<uint32_t>(state));
  if (world.slice_page().notify.load() >= notify_from) SignalEventFd(world.sched_event.get());
}

void OneTurn(World& world, bool hangs, uint64_t kernel_ns) {
  SlicePage& page = world.slice_page();
  ExecSlot& slot = page.slots[world.slot];
  const uint32_t grant = page.grant.load();
  if ((grant & SlicePage::kRun) == 0 || MonotonicNs() >= page.deadline_ns.load() || page.finish.load() == grant) {
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

}  // namespace

int main(int argc, char** argv) {
  std::string_view vf;
  for (int i = 1; i + 1 < argc; ++i)
    if (std::strcmp(argv[i], "--vf") == 0) vf = argv[i + 1];
  World world;
  while (!world.page)
    if (!HandleLink(world, -1)) return 0;
  if (vf.starts_with("idle")) {
    SetState(world, ExecState::kIdle, 1);
    while (HandleLink(world, -1)) {
    }
    return 0;
  }
  const uint64_t kernel_ns = vf.starts_with("long") ? 5'000'000 : 100'000;
  SetState(world, ExecState::kReady, 2);
  while (HandleLink(world, 0)) OneTurn(world, vf.starts_with("hang"), kernel_ns);
  return 0;
}
