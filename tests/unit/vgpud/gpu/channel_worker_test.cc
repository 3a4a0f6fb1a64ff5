// SPDX-License-Identifier: Apache-2.0
// Executors that do not leave the GPU are switched off by their channels, and on again in their next turn: the worlds
// of the scheduler and the thread that speaks with the driver, against the model of one (tests/unit/channels).
#include "vgpud/gpu/channel_worker.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "tests/unit/channels/rm_model.h"
#include "vgpud/gpu/slice_world.h"
#include "vgpud/host/child.h"

namespace vgpud::daemon {
namespace {

using namespace std::chrono_literals;
using rm::ChannelTurn;

constexpr TimePoint kNow{Ns{5'000}};
constexpr VfId kVf{2};
constexpr uint32_t kSlot = 3;
constexpr uint64_t kGeneration = 7;

// One thread at a time.
struct Device {
  std::mutex mutex;
  rm_model::Model model;
};
class File final : public rm::RmFile {
 public:
  explicit File(Device& device) : device_(device), file_(device.model.Open()) {}
  int Ioctl(unsigned long request, void* argument) const override {
    const std::lock_guard lock(device_.mutex);
    return file_->Ioctl(request, argument);
  }

 private:
  Device& device_;
  std::shared_ptr<rm_model::File> file_;
};

class ChannelWorkerTest : public testing::Test {
 protected:
  ChannelWorkerTest() {
    auto memory = *MakeSliceMemory("a");
    slices_ = *MapSlices(memory.grant_fd.get(), memory.slots_fd.get());
    world_.Add(kVf, "a", std::move(memory));
    world_.Join({kVf, 100, 2ms});
    auto file = std::make_unique<File>(device_);
    client_ = Make(*file, 0, 0, rm::kClientClass);
    const uint32_t device = Make(*file, client_, client_, rm::kDeviceClass);
    channels_.subdevice = Make(*file, client_, device, rm::kSubdeviceClass);
    const uint32_t group = Make(*file, client_, device, rm::kGroupClass);
    for (int n = 0; n < 4; ++n) {
      channels_.channels.push_back(Make(*file, client_, group, 0xc86f));
      device_.model.Bind(client_, channels_.channels.back());
    }
    channels_.fd = 0;
    channels_.client = client_;
    channels_.groups = {group};
    rm::WriteBoard(*board_, {channels_}, false, {0});
    file_ = file.get();
    files_.push_back(std::move(file));
  }
  static uint32_t Make(const File& file, uint32_t root, uint32_t parent, uint32_t kind) {
    rm::RmAlloc made{};
    made.root = root;
    made.parent = parent;
    made.kind = kind;
    EXPECT_EQ(0, file.Ioctl(rm::kAllocRequest, &made));
    return made.object;
  }
  // Serves from now on, with its channels known to vgpud.
  void Serve(bool resumed = false) {
    world_.AddExecutor(kVf, kSlot, {kGeneration, child_.pid(), *Dup(child_.pidfd())});
    world_.SetChannels(kVf, kSlot, kGeneration,
                       worker_.Add(std::make_unique<ChannelTurn>(
                                       std::move(files_), 580, [this] { return rm::ReadBoard(*board_); }, resumed),
                                   "a"));
  }
  void SetSlot(ExecState state) { slices_.slot_page().slots[kSlot].state.store(static_cast<uint32_t>(state)); }
  int Running() {
    const std::lock_guard lock(device_.mutex);
    int running = 0;
    for (const uint32_t channel : channels_.channels) running += device_.model.Runs(client_, channel);
    return running;
  }
  // The worker is another thread: until it has, or for far longer than it can take.
  template <class F>
  static bool Eventually(F what, Ns limit = 10s) {
    for (const TimePoint end = Now() + limit; Now() < end; std::this_thread::yield())
      if (what()) return true;
    return false;
  }
  void Turn() {
    world_.Run(kVf, TimePoint::max());
    SetSlot(ExecState::kRunning);
    EXPECT_TRUE(Eventually([&] { return Running() == 4; }));
    world_.Drain(kVf);
  }
  bool Drained() { return world_.Complete(WsState::kDrain, kVf); }

  Device device_;
  std::vector<std::unique_ptr<rm::RmFile>> files_;
  const File* file_ = nullptr;  // the same, which the worker has later
  uint32_t client_ = 0;
  rm::ClientChannels channels_;
  std::unique_ptr<rm::ChannelBoard> board_ = std::make_unique<rm::ChannelBoard>();
  std::atomic<int> done_ = 0;
  ChannelWorker worker_{580, [this] { ++done_; }};
  SliceView slices_;
  Child child_ = *Child::Spawn({.program = "/bin/sleep", .arguments = {"sleep", "100"}, .files = {}});
  std::vector<pid_t> killed_;
  SliceWorld world_{
      10ms,
      {.at_boundary = [](TimePoint) {},
       .on_killed = [this](VfId, const std::string&, const SliceWorld::Hang& hang) { killed_.push_back(hang.pid); },
       .on_parked = [](VfId) {}}};
};

TEST_F(ChannelWorkerTest, WhoDoesNotLeaveIsOffUntilItsNextTurn) {
  Serve();
  for (uint64_t turn = 1; turn <= 3; ++turn) {
    Turn();
    EXPECT_FALSE(Drained());
    ASSERT_TRUE(Eventually([&] { return Drained(); }));
    EXPECT_EQ(0, Running());
    const auto vfs = world_.TurnBoundary(kNow);
    ASSERT_EQ(1u, vfs.size());
    EXPECT_TRUE(vfs[0].runnable) << "its kernel has yet to end";
    EXPECT_EQ(turn, world_.ChannelsOf(kVf).offs);
    EXPECT_EQ(turn, world_.LatencyOf(kVf).channels_off.count());
  }
  world_.TurnBoundary(kNow);
  EXPECT_EQ(0u, world_.ConductOf(kVf).out_of_turn) << "what it says is true, and costs nobody anything";
  EXPECT_TRUE(killed_.empty());
}

TEST_F(ChannelWorkerTest, WhoLeavesByItselfIsLeftAlone) {
  Serve();
  Turn();
  SetSlot(ExecState::kReady);
  EXPECT_TRUE(Drained());
  EXPECT_EQ(4, Running());
  EXPECT_EQ(0u, world_.ChannelsOf(kVf).offs);
}

TEST_F(ChannelWorkerTest, OneThatHasNothingToDoAnyMoreGetsATurnToBeLetOn) {
  Serve();
  Turn();
  ASSERT_TRUE(Eventually([&] { return Drained(); }));
  SetSlot(ExecState::kIdle);  // its kernel ended at the last moment
  EXPECT_TRUE(world_.TurnBoundary(kNow)[0].runnable);
  EXPECT_EQ(0, Running()) << "its word alone lets nothing on";
  world_.Run(kVf, TimePoint::max());
  EXPECT_TRUE(Eventually([&] { return Running() == 4; }));
  EXPECT_FALSE(world_.HasWork(kVf));
  world_.Drain(kVf);
  EXPECT_TRUE(Drained());
  EXPECT_FALSE(world_.TurnBoundary(kNow)[0].runnable);
}

TEST_F(ChannelWorkerTest, NewcomersOfOneThatIsOffAreHeld) {
  Serve();
  Turn();
  ASSERT_TRUE(Eventually([&] { return Drained(); }));
  channels_.channels.push_back(Make(*file_, client_, channels_.groups[0], 0xc86f));
  {
    const std::lock_guard lock(device_.mutex);
    device_.model.Bind(client_, channels_.channels.back());
  }
  EXPECT_EQ(1, Running()) << "nobody knows of it yet";
  rm::WriteBoard(*board_, {channels_}, false, {0});
  EXPECT_TRUE(Eventually([&] { return Running() == 0; }));
  EXPECT_TRUE(Eventually([&] { return world_.ChannelsOf(kVf).newcomers == 1; }));
  world_.Run(kVf, TimePoint::max());
  EXPECT_TRUE(Eventually([&] { return Running() == 5; }));
}

TEST_F(ChannelWorkerTest, WhoCanNotBeSwitchedOffIsKilledAsWithoutChannels) {
  device_.model.Refuse(rm::Command::kDisableChannels, 0x56);
  device_.model.Refuse(rm::Command::kSchedule, 0x1b);
  Serve();
  Turn();
  ASSERT_TRUE(Eventually([&] {
    EXPECT_FALSE(Drained());
    return world_.ChannelsOf(kVf).refusals == 1;
  }));
  EXPECT_TRUE(killed_.empty()) << "it may leave by itself until the timeout";
  ASSERT_TRUE(Eventually([&] { return !world_.Excused(kVf); }));
  world_.Flr(kVf);
  EXPECT_EQ(std::vector<pid_t>{child_.pid()}, killed_);
  EXPECT_TRUE(Eventually([&] { return world_.Complete(WsState::kFlr, kVf); }));
}

TEST_F(ChannelWorkerTest, WhoLiesIsKilledAtOnce) {
  Serve();
  Turn();
  ASSERT_TRUE(Eventually([&] { return Drained(); }));
  rm::ClientChannels fewer = channels_;
  fewer.channels.pop_back();
  world_.Run(kVf, TimePoint::max());
  ASSERT_TRUE(Eventually([&] { return Running() == 4; }));
  rm::WriteBoard(*board_, {fewer}, false, {0});
  world_.Drain(kVf);
  EXPECT_TRUE(Eventually([&] { return Drained(); }));
  EXPECT_EQ(std::vector<pid_t>{child_.pid()}, killed_);
  EXPECT_EQ(1u, world_.ChannelsOf(kVf).refusals);
}

TEST_F(ChannelWorkerTest, OneOfAnEarlierVgpudIsLetOnInItsFirstTurn) {
  for (const uint32_t channel : channels_.channels) {
    rm::ChannelSwitch before(*files_[0], 580);
    ASSERT_TRUE(before.Disable(channels_, {channel}, true).ok());
  }
  Serve(/*resumed=*/true);
  EXPECT_EQ(0, Running());
  Turn();
  EXPECT_TRUE(Eventually([&] { return Drained(); }));
  EXPECT_EQ(0, Running());
}

TEST_F(ChannelWorkerTest, OneThatEndsWhileItIsOffLeavesNothing) {
  Serve();
  Turn();
  ASSERT_TRUE(Eventually([&] { return Drained(); }));
  child_.Kill(SIGKILL);
  world_.RemoveExecutor(kVf, kSlot, kGeneration);
  EXPECT_EQ(1u, world_.ChannelsOf(kVf).offs) << "what was counted stays";
  EXPECT_TRUE(Eventually([&] {
    const std::lock_guard lock(device_.mutex);
    return !device_.model.Has(client_);
  })) << "the file was the last one: with it goes all that it has on the GPU";
}

TEST_F(ChannelWorkerTest, ALostGpuIsToldNothingMore) {
  Serve();
  world_.Run(kVf, TimePoint::max());
  SetSlot(ExecState::kRunning);
  {
    const std::lock_guard lock(device_.mutex);
    device_.model.Lose();
  }
  world_.Drain(kVf);
  ASSERT_TRUE(Eventually([&] {
    EXPECT_FALSE(Drained());
    return world_.ChannelsOf(kVf).refusals == 1;
  }));
  SetSlot(ExecState::kReady);  // its driver has said so, too
  EXPECT_TRUE(Drained());
  EXPECT_TRUE(killed_.empty());
}

}  // namespace
}  // namespace vgpud::daemon
