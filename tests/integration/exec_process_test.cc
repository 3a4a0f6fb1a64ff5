// SPDX-License-Identifier: Apache-2.0
// The real vgpud-exec on the soft GPU, with this test as vgpud-vf, scheduler and guest: real PTX, an endless kernel
// revoked a thousand times, and every way for the process to end.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "base/exec_link.h"
#include "base/fd.h"
#include "base/message.h"
#include "base/signal_socket.h"
#include "base/slice_memory.h"
#include "tests/unit/exec/fakes/test_guest.h"

namespace vgpud::exec {
namespace {

constexpr int kPatienceMs = 30'000;
constexpr uint32_t kDoorbells = 200;

constexpr std::string_view kPtx = R"(.version 7.5
.target sm_75
.address_size 64
.visible .entry add(.param .u64 pa, .param .u64 pb, .param .u64 pc)
{
  .reg .b32 %r<5>; .reg .b64 %d<8>; .reg .f32 %f<4>;
  ld.param.u64 %d1, [pa]; ld.param.u64 %d2, [pb]; ld.param.u64 %d3, [pc];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  mul.wide.s32 %d4, %r4, 4;
  add.s64 %d5, %d1, %d4; add.s64 %d6, %d2, %d4; add.s64 %d7, %d3, %d4;
  ld.global.f32 %f1, [%d5]; ld.global.f32 %f2, [%d6];
  add.f32 %f3, %f1, %f2;
  st.global.f32 [%d7], %f3;
  ret;
}
.visible .entry endless()
{
LOOP:
  bra LOOP;
}
)";

class ExecProcess : public testing::Test {
 protected:
  void SetUp() override {
    const char* program = std::getenv("VGPUD_EXEC");
    ASSERT_NE(nullptr, program) << "VGPUD_EXEC names the vgpud-exec to test";
    slices_ = *MakeSliceMemory("test");
    page_ = &slices_.grant_page();
    page_->notify = 2;
    SocketPair link = *MakeSeqpacketPair();
    link_ = std::move(link.a);
    Spawn(program, link.b.get());
    const exec_link::Attach attach{
        .channel = 0, .vram_quota = 64 << 20, .guest_pid = 1, .doorbells_per_second = kDoorbells};
    const int fds[] = {kick_.listens.get(), call_.rings.get()};
    ASSERT_TRUE(SendStruct(link_.get(), attach, fds));
    Map(0, guest_.area_fd(), guest_.area_bytes());
  }
  void TearDown() override {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }

  void Spawn(const char* program, int link) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    // Out of the way of the numbers that they get there.
    const std::pair<int, int> files[] = {{link, exec_link::kExecLinkFd},
                                         {slices_.grant_fd.get(), exec_link::kGrantPageFd},
                                         {slices_.slots_fd.get(), exec_link::kSlotPageFd}};
    std::vector<UniqueFd> moved;
    for (const auto& [fd, number] : files) {
      moved.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, 32));
      posix_spawn_file_actions_adddup2(&actions, moved.back().get(), number);
    }
    const char* argv[] = {program, "--backend", "soft", "--vf", "test", nullptr};
    ASSERT_EQ(0, ::posix_spawn(&pid_, program, &actions, nullptr, const_cast<char**>(argv), environ));
    posix_spawn_file_actions_destroy(&actions);
  }
  // The file as one piece of an area: the channel's (0), or a buffer.
  void Map(uint32_t id, int file, uint64_t bytes) {
    const exec_link::Area area{exec_link::Kind::kMapArea, id, bytes, 1, 0, 1};
    const exec_link::Piece piece{0, 1, 0, bytes};
    const int fds[] = {file};
    ASSERT_TRUE(SendStruct(link_.get(), area, fds, std::as_bytes(std::span{&piece, 1})));
  }
  void Unmap(uint32_t id) {
    const int before = unmapped_;
    ASSERT_TRUE(SendStruct(link_.get(), exec_link::Area{exec_link::Kind::kUnmapArea, id}));
    while (unmapped_ == before) ASSERT_TRUE(Poll());
  }
  // Waits for the process to end by itself.
  int ExitStatus() {
    int status = 0;
    EXPECT_EQ(pid_, ::waitpid(pid_, &status, 0));
    pid_ = 0;
    return status;
  }

  void Grant() {
    page_->grant.store((epoch_ += 2) | GrantPage::kRun);
    FutexWakeAll(&page_->grant);
  }
  const ExecSlot& Slot() const { return slices_.slot_page().slots[0]; }
  ExecState State() const { return static_cast<ExecState>(Slot().state.load()); }
  void AwaitState(ExecState state) {
    // The link says nothing of it, hence the short polls.
    for (int ms = 0; State() != state; ++ms) {
      ASSERT_LT(ms, kPatienceMs) << "executor stays in state " << Slot().state.load();
      Poll(1);
    }
  }

  // Serves the link until something happens; false when nothing does.
  bool Poll(int timeout_ms = kPatienceMs) {
    pollfd fds[] = {{link_.get(), POLLIN, 0}, {call_.listens.get(), POLLIN, 0}};
    if (::poll(fds, 2, timeout_ms) <= 0) return false;
    TakeSignals(call_.listens.get());
    while (auto message = ReceiveMessage(link_.get())) {
      const auto vram = message->As<exec_link::Vram>();
      if (vram && vram->kind == exec_link::Kind::kVramRequest) {
        used_ += vram->delta_bytes;
        const exec_link::Vram reply{exec_link::Kind::kVramReply, 1, vram->delta_bytes, static_cast<uint64_t>(used_)};
        EXPECT_TRUE(SendStruct(link_.get(), reply));
      }
      if (const auto bells = message->As<exec_link::Doorbells>(); bells && bells->kind == exec_link::Kind::kDoorbells)
        doorbells_ = *bells;
      unmapped_ += vram && vram->kind == exec_link::Kind::kUnmapped ? 1 : 0;
    }
    return true;
  }
  vgpu_cqe Await(uint64_t seqno) {
    SendSignal(kick_.rings.get());
    std::atomic_ref<uint32_t> need(guest_.header().cq_need_wakeup);
    for (;;) {
      need.store(1);
      if (const vgpu_cqe* entry = guest_.Completion(seqno)) return *entry;
      if (!Poll()) {
        ADD_FAILURE() << "no completion of " << seqno;
        return {};
      }
    }
  }
  uint64_t Function(std::string_view name) {
    const auto payload = guest_.Take(512);
    std::memcpy(payload.at, name.data(), name.size());
    return Await(guest_.Submit({VGPU_OP_MODULE_FUNCTION, {1, name.size()}, 0, payload})).value[0];
  }
  void LoadPtx() {
    guest_.Submit({VGPU_OP_MODULE_BEGIN, {1, kPtx.size()}});
    guest_.Submit({VGPU_OP_MODULE_DATA, {1, 0}, 0, guest_.Take(kPtx)});
    const vgpu_cqe loaded = Await(guest_.Submit({VGPU_OP_MODULE_LOAD, {1}}));
    ASSERT_EQ(0u, loaded.status) << guest_.header().error_text;
    ASSERT_EQ(2u, loaded.value[0]);
  }
  uint64_t Launch(uint64_t function, uint32_t blocks, std::initializer_list<uint64_t> params) {
    const vgpu_launch launch{{blocks, 1, 1}, {256, 1, 1}, 0, static_cast<uint32_t>(params.size() * 8), 0, 0};
    std::string bytes(reinterpret_cast<const char*>(&launch), sizeof launch);
    bytes.append(reinterpret_cast<const char*>(std::data(params)), params.size() * 8);
    return guest_.Submit({VGPU_OP_LAUNCH, {function}, 0, guest_.Take(bytes)});
  }
  void StartEndless() {
    LoadPtx();
    Launch(Function("endless"), 1, {});
    SendSignal(kick_.rings.get());
    AwaitState(ExecState::kReady);
  }

  TestGuest guest_;
  SliceMemory slices_;
  GrantPage* page_ = nullptr;
  UniqueFd link_;
  SignalSocket kick_ = *MakeSignalSocket();
  SignalSocket call_ = *MakeSignalSocket();
  pid_t pid_ = 0;
  uint32_t epoch_ = 0;
  int64_t used_ = 0;
  int unmapped_ = 0;
  exec_link::Doorbells doorbells_;
};

TEST_F(ExecProcess, VectorAdd) {
  constexpr uint32_t kCount = 16384;
  Grant();
  LoadPtx();
  uint64_t address[3];
  for (uint64_t& a : address) a = Await(guest_.Submit({VGPU_OP_MEM_ALLOC, {kCount * 4}})).value[0];
  for (uint64_t i = 0; i < 2; ++i) {
    const auto in = guest_.Take(kCount * 4);
    std::vector<float> values(kCount);
    for (uint32_t k = 0; k < kCount; ++k) values[k] = static_cast<float>(k * (i + 1));
    std::memcpy(in.at, values.data(), kCount * 4);  // a payload may start anywhere
    guest_.Submit({VGPU_OP_COPY_IN, {address[i]}, 0, in, 0});
  }
  const vgpu_cqe launched = Await(Launch(Function("add"), kCount / 256, {address[0], address[1], address[2]}));
  ASSERT_EQ(0u, launched.status) << guest_.header().error_text;
  const auto out = guest_.Take(kCount * 4);
  EXPECT_EQ(0u, Await(guest_.Submit({VGPU_OP_COPY_OUT, {address[2]}, 0, out})).status);
  std::vector<float> sums(kCount);
  std::memcpy(sums.data(), out.at, kCount * 4);
  for (uint32_t k = 0; k < kCount; ++k) ASSERT_EQ(static_cast<float>(3 * k), sums[k]);
  EXPECT_EQ(1u, Slot().kernels.load());
}

TEST_F(ExecProcess, EndlessKernelIsRevokedAThousandTimes) {
  StartEndless();
  // A revoke may come before the executor has really entered; that one is no preemption.
  for (int grants = 0; Slot().preempts.load() < 1000; ++grants) {
    ASSERT_LT(grants, 10'000);
    Grant();
    AwaitState(ExecState::kRunning);
    page_->grant.store(epoch_);
    AwaitState(ExecState::kReady);
  }
  EXPECT_GT(Slot().warp_instructions.load(), 0u);
}

TEST_F(ExecProcess, ClosedLinkEndsItWithinARunningKernel) {
  StartEndless();
  Grant();
  AwaitState(ExecState::kRunning);
  link_.Reset();
  const int status = ExitStatus();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(0, WEXITSTATUS(status));
}

TEST_F(ExecProcess, UnmapIsAnsweredWithinARunningKernel) {
  StartEndless();
  Grant();
  AwaitState(ExecState::kRunning);
  Unmap(0);
  AwaitState(ExecState::kIdle);
}

TEST_F(ExecProcess, ABuffersNumberIsFreeAgainWhenItIsUnmapped) {
  constexpr uint64_t kBytes = 4096;
  Grant();
  const uint64_t address = Await(guest_.Submit({VGPU_OP_MEM_ALLOC, {kBytes}})).value[0];
  for (const char letter : {'a', 'b'}) {
    const UniqueFd buffer = *MakeSealedMemfd("buffer", kBytes);
    const std::string bytes(kBytes, letter);
    ASSERT_EQ(ssize_t{kBytes}, ::pwrite(buffer.get(), bytes.data(), kBytes, 0));
    Map(7, buffer.get(), kBytes);
    // The buffer and the ring come by different ways: who finds the entry first has to look at the other.
    const auto copy_status = [&] { return Await(guest_.Submit({VGPU_OP_BUF_IN, {address, 7, 0, kBytes}})).status; };
    EXPECT_EQ(0u, copy_status()) << letter;
    const auto out = guest_.Take(kBytes);
    EXPECT_EQ(0u, Await(guest_.Submit({VGPU_OP_COPY_OUT, {address}, 0, out})).status);
    EXPECT_EQ(0, std::memcmp(bytes.data(), out.at, kBytes)) << letter;
    Unmap(7);
    EXPECT_NE(0u, copy_status()) << "after it is gone";
  }
}

TEST_F(ExecProcess, AClientThatRingsWithoutEndIsListenedToSoOftenAndServed) {
  const uint64_t start = MonotonicNs();
  while (doorbells_.throttled == 0) {
    ASSERT_LT(MonotonicNs() - start, uint64_t{kPatienceMs} * 1'000'000);
    SendSignal(kick_.rings.get());
    Poll(0);
  }
  const uint64_t seconds = (MonotonicNs() - start) / 1'000'000'000 + 1;
  EXPECT_LE(doorbells_.count, kDoorbells * (seconds + 1)) << "wake-ups";
  EXPECT_GT(doorbells_.throttled_ns, 0u);
  EXPECT_EQ(0u, Await(guest_.Submit({VGPU_OP_NOP})).status);
}

TEST_F(ExecProcess, AClientThatClosesItsEndsCostsNoTime) {
  ASSERT_EQ(0u, Await(guest_.Submit({VGPU_OP_NOP})).status);
  kick_.rings.Reset();
  ASSERT_TRUE(SendStruct(link_.get(), exec_link::Area{exec_link::Kind::kUnmapArea, 77}));
  while (unmapped_ == 0) ASSERT_TRUE(Poll());
}

TEST_F(ExecProcess, KillClosesTheLink) {
  StartEndless();
  Grant();
  AwaitState(ExecState::kRunning);
  ::kill(pid_, SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(ExitStatus()));
  const auto message = ReceiveMessage(link_.get());
  ASSERT_FALSE(message);
  EXPECT_EQ(std::errc::not_connected, message.error().code);
}

TEST_F(ExecProcess, DamagedPtxNamesTheLine) {
  static constexpr std::string_view kBad =
      ".version 7.5\n.target sm_75\n.address_size 64\n.entry k() { frobnicate.u32; }\n";
  guest_.Submit({VGPU_OP_MODULE_BEGIN, {1, kBad.size()}});
  guest_.Submit({VGPU_OP_MODULE_DATA, {1, 0}, 0, guest_.Take(kBad)});
  EXPECT_NE(0u, Await(guest_.Submit({VGPU_OP_MODULE_LOAD, {1}})).status);
  EXPECT_NE(std::string::npos, std::string(guest_.header().error_text).find("frobnicate"))
      << guest_.header().error_text;
  EXPECT_EQ(0u, guest_.sticky());
}

}  // namespace
}  // namespace vgpud::exec
