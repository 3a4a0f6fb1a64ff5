// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/exec/fakes/exec_rig.h"

#include "base/check.h"

namespace vgpud::exec {

ExecRig::ExecRig(uint64_t payload_bytes, uint64_t host_quota, bool asks_before_loads, uint64_t linger_ns,
                 bool shares_card)
    : guest(payload_bytes),
      host(host_quota != 0 ? std::make_unique<HostMemory>(host_quota) : std::make_unique<HostMemory>()) {
  auto memory = ChannelMemory::Open(guest.area());
  CHECK(memory);
  if (shares_card)
    card = std::make_unique<CardMemory>(
        page, slot_page.memory[3], [this] { return now_ns; }, [this] { ++rings; });
  Turn turn(
      page, slot_page.slots[3], slot_page.clocks[3],
      [this] {
        ++rings;
        rung_by = std::this_thread::get_id();
      },
      [this] { return now_ns; });
  exec = std::make_unique<Executor>(*memory, vf_quota, std::move(turn),
                                    ChannelCallbacks{.interrupt = [this] { ++interrupts; },
                                                     .progress = [this] { ++progress; },
                                                     .make_gpu = [this]() -> std::unique_ptr<Gpu> {
                                                       auto gpu = std::make_unique<FakeGpu>(script);
                                                       if (!around) return gpu;
                                                       return around(std::move(gpu));
                                                     },
                                                     .now_ns =
                                                         [this] {
                                                           if (on_clock) on_clock();
                                                           return now_ns;
                                                         },
                                                     .memory = host.get(),
                                                     .work = &work,
                                                     .card = card.get(),
                                                     .await_room = [this] { await_room(); },
                                                     .asks_before_loads = asks_before_loads,
                                                     .linger_ns = linger_ns,
                                                     .linger_woken_ns = LingerWoken(linger_ns),
                                                     .linger_most_ns = 4 * linger_ns});
}

void ExecRig::Consume() {
  for (;;) {
    ring = exec->Consume(1u << 20);
    bool again = ring == ChannelEngine::Ring::kLink || ring == ChannelEngine::Ring::kPart;
    code_read += exec->engine()->loader().TakeCodeRead();
    if (exec->engine()->loader().TakeRequest()) {
      ++loads_asked;
      if (loads_allowed) exec->engine()->loader().OnReply();
      again |= loads_allowed;
    }
    while (const auto delta = exec->engine()->vram().TakeRequest()) {
      const bool ok = *delta <= 0 || vf_used + static_cast<uint64_t>(*delta) <= vf_quota;
      if (ok) vf_used += static_cast<uint64_t>(*delta);
      exec->engine()->vram().OnReply(*delta, ok, vf_used);
      again |= *delta >= 0;
    }
    while (const auto delta = host->TakeRequest()) {
      const bool ok = *delta <= 0 || host_used + static_cast<uint64_t>(*delta) <= host->quota();
      if (ok) host_used += static_cast<uint64_t>(*delta);
      host->OnReply(*delta, ok);
      again |= *delta > 0;
    }
    again |= exec->RunJob();
    if (!again) return;
  }
}

void ExecRig::Settle() {
  Consume();
  while (exec->engine()->HasWork() && granted()) {
    exec->TakeTurn(page.grant.load());
    Consume();
  }
}

vgpu_cqe ExecRig::Done(uint64_t seqno) {
  Settle();
  const vgpu_cqe* entry = guest.Completion(seqno);
  EXPECT_NE(nullptr, entry) << "no completion of " << seqno;
  return entry != nullptr ? *entry : vgpu_cqe{.seqno = 0, .status = ~0u, .mbz = 0, .value = {}};
}

uint64_t ExecRig::Alloc(uint64_t bytes) {
  const vgpu_cqe entry = Done(guest.Submit({VGPU_OP_MEM_ALLOC, {bytes}}));
  EXPECT_EQ(0u, entry.status);
  return entry.value[0];
}

vgpu_cqe ExecRig::Load(uint64_t id, std::string_view image) {
  guest.Submit({VGPU_OP_MODULE_BEGIN, {id, image.size()}});
  guest.Submit({VGPU_OP_MODULE_DATA, {id, 0}, 0, guest.Take(image)});
  return Done(guest.Submit({VGPU_OP_MODULE_LOAD, {id}}));
}

uint64_t ExecRig::Function(uint64_t module, std::string_view name) {
  const auto payload = guest.Take(256);
  std::memcpy(payload.at, name.data(), name.size());
  const vgpu_cqe entry = Done(guest.Submit({VGPU_OP_MODULE_FUNCTION, {module, name.size()}, 0, payload}));
  EXPECT_EQ(0u, entry.status);
  return entry.value[0];
}

uint64_t ExecRig::Kernel(std::string_view name) {
  static constexpr std::string_view kImage =
      "kernel a 10\nkernel b 10\nkernel c 10\nkernel d 10\nkernel endless 0\nkernel bad 5 fault\nkernel long "
      "20000\nkernel "
      "longer 2000000\n";
  const uint64_t probe = guest.Submit({VGPU_OP_MODULE_GLOBAL, {1}, 0, guest.Take("none")});
  if (Status(probe) == static_cast<uint32_t>(CuStatus::kInvalidHandle)) Load(1, kImage);
  return Function(1, name);
}

}  // namespace vgpud::exec
