// SPDX-License-Identifier: Apache-2.0
// An Executor with a fake GPU, a test guest and slice pages, driven from one thread: nothing happens but by Settle.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gpu/exec/card_memory.h"
#include "gpu/exec/executor.h"
#include "gpu/exec/host_work.h"
#include "tests/unit/exec/fakes/fake_gpu.h"
#include "tests/unit/exec/fakes/test_guest.h"

namespace vgpud::exec {

struct ExecRig {
  // `host_quota`: of the VF's host memory; 0: without a limit.
  explicit ExecRig(uint64_t payload_bytes = 0x200000, uint64_t host_quota = 0, bool asks_before_loads = false,
                   uint64_t linger_ns = 0, bool shares_card = false);

  // How long it looks for a program that was just woken up.
  static constexpr uint64_t LingerWoken(uint64_t linger_ns) { return 2 * linger_ns; }

  // Takes the ring in, runs jobs, answers requests for memory.
  void Consume();
  // Consume, and the GPU as long as it is granted and there is work.
  void Settle();
  void Grant() { page.grant.store((epoch += 2) | GrantPage::kRun); }
  void Revoke() { page.grant.store(epoch); }
  bool granted() const { return IsGranted(page); }
  ExecState state() const { return static_cast<ExecState>(slot_page.slots[3].state.load()); }

  // The completion of `seqno` after Settle; fails the test when there is none.
  vgpu_cqe Done(uint64_t seqno);
  uint32_t Status(uint64_t seqno) { return Done(seqno).status; }
  bool Pending(uint64_t seqno) { return guest.Completion(seqno) == nullptr; }
  uint64_t Alloc(uint64_t bytes);
  // Loads `image` as module `id`.
  vgpu_cqe Load(uint64_t id, std::string_view image);
  uint64_t Function(uint64_t module, std::string_view name);
  // Kernels a..f of 10 steps each, as module 1; returns the handle of `name`.
  uint64_t Kernel(std::string_view name);
  std::string error_text() const { return guest.header().error_text; }

  TestGuest guest;
  std::shared_ptr<FakeGpu::Script> script = std::make_shared<FakeGpu::Script>();
  GrantPage page;
  SlotPage slot_page;
  uint32_t epoch = 0;
  uint64_t now_ns = 1000;
  std::function<void()> on_clock;  // whenever the executor asks what time it is
  uint64_t vf_used = 0;
  uint64_t vf_quota = 64 << 20;
  uint64_t host_used = 0;
  std::unique_ptr<HostMemory> host;
  std::unique_ptr<CardMemory> card;  // ShareCard
  std::function<void()> await_room;
  // Around each Gpu that is made from now on.
  std::function<std::unique_ptr<Gpu>(std::unique_ptr<Gpu>)> around;
  HostWork work{slot_page.slots[3]};
  int loads_asked = 0;
  uint64_t code_read = 0;
  bool loads_allowed = true;
  int interrupts = 0;
  int rings = 0;
  std::thread::id rung_by;
  int progress = 0;
  ChannelEngine::Ring ring = ChannelEngine::Ring::kEmpty;
  std::unique_ptr<Executor> exec;
};

}  // namespace vgpud::exec
