// SPDX-License-Identifier: Apache-2.0
// Loading modules: beside the GPU, in parts, at the pace that the VF is given, and counted.
#include "tests/unit/exec/fakes/exec_rig.h"

namespace vgpud::exec {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr std::string_view kImage = "kernel other 10\n";

TEST(ModuleLoads, AStepBeginsOnlyWhenTheModuleIsThere) {
  ExecRig rig;
  const uint64_t a = rig.Kernel("a");
  const uint64_t launch = rig.guest.Launch(a, 0);
  rig.Consume();
  rig.Grant();
  int loads = 0;
  rig.script->on_load = [&] {
    ++loads;
    rig.exec->TakeTurn(rig.page.grant.load());
    EXPECT_TRUE(rig.script->log.empty());
    EXPECT_NE(ExecState::kRunning, rig.state());
  };
  EXPECT_EQ(0u, rig.Load(2, kImage).status);
  EXPECT_EQ(1, loads);
  EXPECT_EQ(0u, rig.Status(launch));
}

TEST(ModuleLoads, WaitForLeaveWhileKernelsRun) {
  ExecRig rig(0x200000, 0, true);
  const uint64_t a = rig.Kernel("a");
  EXPECT_EQ(1, rig.loads_asked);
  rig.Grant();
  rig.loads_allowed = false;
  const uint64_t launch = rig.guest.Launch(a, 0);
  rig.guest.Submit({VGPU_OP_MODULE_BEGIN, {2, kImage.size()}});
  rig.guest.Submit({VGPU_OP_MODULE_DATA, {2, 0}, 0, rig.guest.Take(kImage)});
  const uint64_t load = rig.guest.Submit({VGPU_OP_MODULE_LOAD, {2}});
  EXPECT_EQ(0u, rig.Status(launch));
  EXPECT_TRUE(rig.Pending(load));
  EXPECT_EQ(2, rig.loads_asked);
  const uint64_t read_before = rig.code_read;
  rig.exec->engine()->loader().OnReply();
  EXPECT_EQ(0u, rig.Status(load));
  EXPECT_EQ(read_before + kImage.size(), rig.code_read);
}

TEST(ModuleLoads, LeaveIsForOneModule) {
  ExecRig rig(0x200000, 0, true);
  EXPECT_EQ(0u, rig.Load(1, kImage).status);
  EXPECT_EQ(0u, rig.Load(2, kImage).status);
  EXPECT_EQ(2, rig.loads_asked);
}

TEST(ModuleLoads, LeaveThatNobodyAskedForIsNone) {
  ExecRig rig(0x200000, 0, true);
  rig.exec->engine()->loader().OnReply();
  EXPECT_EQ(0u, rig.Load(1, kImage).status);
  EXPECT_EQ(1, rig.loads_asked);
}

TEST(ModuleLoads, AreCountedInTheSlot) {
  ExecRig rig;
  EXPECT_EQ(0u, rig.Load(1, kImage).status);
  EXPECT_EQ(1u, rig.slot_page.slots[3].module_loads);
  EXPECT_EQ(kImage.size(), rig.slot_page.slots[3].module_bytes);
  EXPECT_GT(rig.slot_page.slots[3].host_work_ns, 0u);
}

TEST(KernelLoads, AStepBeginsOnlyWhenTheKernelIsThere) {
  ExecRig rig;
  const uint64_t launch = rig.guest.Launch(rig.Kernel("a"), 0);
  rig.Consume();
  rig.Grant();
  int loads = 0;
  rig.script->load_function = [&]() -> GpuResult<uint64_t> {
    ++loads;
    rig.exec->TakeTurn(rig.page.grant.load());
    EXPECT_TRUE(rig.script->log.empty());
    EXPECT_NE(ExecState::kRunning, rig.state());
    return 77;
  };
  const uint64_t read_before = rig.code_read;
  const uint64_t handle = rig.Function(1, "b");
  EXPECT_EQ(1, loads);
  EXPECT_EQ(handle, rig.Function(1, "b"));
  EXPECT_EQ(1, loads);
  EXPECT_EQ(read_before + 77, rig.code_read);
  EXPECT_EQ(0u, rig.Status(launch));
  EXPECT_EQ(0u, rig.Status(rig.guest.Launch(handle, 0)));
}

TEST(KernelLoads, AnErrorIsThatOfTheKernelAlone) {
  ExecRig rig;
  rig.Kernel("a");
  const auto ask = [&](std::string_view name) {
    const auto payload = rig.guest.Take(uint32_t{256});
    std::memcpy(payload.at, name.data(), name.size());
    return rig.Status(rig.guest.Submit({VGPU_OP_MODULE_FUNCTION, {1, name.size()}, 0, payload}));
  };
  rig.script->load_function = [] { return GpuFail(CuStatus::kInvalidPtx, "PTX line 5: no"); };
  EXPECT_EQ(218u, ask("b"));
  EXPECT_EQ("PTX line 5: no", rig.error_text());
  EXPECT_EQ(500u, ask("nobody"));
  rig.script->load_function = []() -> GpuResult<uint64_t> { throw std::bad_alloc(); };
  EXPECT_EQ(2u, ask("b"));
  EXPECT_NE(std::string::npos, rig.error_text().find("MODULE_FUNCTION: the code of b takes more than"));
  rig.script->load_function = []() -> GpuResult<uint64_t> { return 1; };
  EXPECT_EQ(0u, ask("b"));
}

TEST(ModuleData, ALongCopyIsMadeInParts) {
  ExecRig rig(16 * kMiB);
  const auto payload = rig.guest.Take(3 * kMiB + 5);
  std::memset(payload.at, 7, payload.length);
  rig.guest.Submit({VGPU_OP_MODULE_BEGIN, {1, payload.length}});
  const uint64_t data = rig.guest.Submit({VGPU_OP_MODULE_DATA, {1, 0}, 0, payload});
  EXPECT_EQ(ChannelEngine::Ring::kMore, rig.exec->Consume(1));
  for (int part = 0; part < 3; ++part) {
    EXPECT_EQ(ChannelEngine::Ring::kPart, rig.exec->Consume(100));
    EXPECT_TRUE(rig.Pending(data));
  }
  EXPECT_EQ(0u, rig.Status(data));
  EXPECT_EQ(payload.position + payload.length, rig.guest.released());
}

TEST(PrintedText, IsHandedOutInPartsToo) {
  ExecRig rig(16 * kMiB);
  rig.script->printed = std::string(2 * kMiB + 5, 'x');
  uint64_t read = 0;
  for (const uint64_t part : {kMiB, kMiB, uint64_t{5}}) {
    const vgpu_cqe entry = rig.Done(rig.guest.Submit({VGPU_OP_PRINT_READ, {}, 0, rig.guest.Take(3 * kMiB)}));
    EXPECT_EQ(part, entry.value[0]);
    read += entry.value[0];
  }
  EXPECT_EQ(2 * kMiB + 5, read);
}

TEST(NoMemory, OfTheHostIsAnErrorOfTheOperation) {
  ExecRig rig;
  rig.script->no_memory = true;
  EXPECT_EQ(static_cast<uint32_t>(CuStatus::kOutOfMemory), rig.Status(rig.guest.Submit({VGPU_OP_MEM_ALLOC, {4096}})));
  EXPECT_NE(std::string::npos, rig.error_text().find("MEM_ALLOC")) << rig.error_text();
  rig.script->no_memory = false;
  EXPECT_EQ(0u, rig.guest.sticky());
  EXPECT_NE(0u, rig.Alloc(4096));
}

TEST(NoMemory, ForWhatAKernelDoesEndsItsContextAndNotItsExecutor) {
  ExecRig rig;
  rig.Grant();
  const uint64_t a = rig.Kernel("a");
  rig.script->no_memory = true;
  EXPECT_EQ(static_cast<uint32_t>(CuStatus::kOutOfMemory), rig.Status(rig.guest.Launch(a, 0)));
  EXPECT_EQ(static_cast<uint32_t>(CuStatus::kOutOfMemory), rig.guest.sticky());
  rig.script->no_memory = false;
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_CONTEXT_RESET})));
}

}  // namespace
}  // namespace vgpud::exec
