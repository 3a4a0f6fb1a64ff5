// SPDX-License-Identifier: Apache-2.0
// An executor's channels turn after turn, against the model of the driver: what it tells, what it does not tell, and
// what the driver refuses.
#include "gpu/channels/channel_turn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "tests/unit/channels/rm_model.h"

namespace vgpud::rm {
namespace {

using rm_model::Model;
using testing::HasSubstr;
using State = ChannelTurn::State;

constexpr int kFd = 7;
constexpr uint32_t kChannelClass = 0xc86f, kComputeClass = 0xcbc0;

// A copy of a descriptor: the same open file.
class Copy final : public RmFile {
 public:
  explicit Copy(std::shared_ptr<rm_model::File> file) : file_(std::move(file)) {}
  int Ioctl(unsigned long request, void* argument) const override { return file_->Ioctl(request, argument); }

 private:
  std::shared_ptr<rm_model::File> file_;
};

// An executor: what it makes is seen, and stands on its board, unless it hides it.
struct Executor {
  explicit Executor(Model& m) : model(m), file(m.Open()) {
    client = Make(0, 0, kClientClass);
    device = Make(client, client, kDeviceClass);
    Make(client, device, kSubdeviceClass);
  }
  uint32_t Make(uint32_t root, uint32_t parent, uint32_t kind) {
    RmAlloc made{};
    made.root = root;
    made.parent = parent;
    made.kind = kind;
    EXPECT_EQ(file->Ioctl(kAllocRequest, &made), 0);
    if (!hides) observed.Saw(kFd, kAllocRequest, &made);
    Write();
    return made.object;
  }
  uint32_t Group(int count) {
    const uint32_t group = Make(client, device, kGroupClass);
    for (int n = 0; n < count; ++n) {
      const uint32_t channel = Make(client, group, kChannelClass);
      if (n == 0) Make(client, channel, kComputeClass);
      model.Bind(client, channel);
      channels.push_back(channel);
    }
    return group;
  }
  void Free(uint32_t handle) {
    RmFree freed{client, 0, handle, UINT32_MAX};
    ASSERT_EQ(file->Ioctl(kFreeRequest, &freed), 0);
    if (!hides) observed.Saw(kFd, kFreeRequest, &freed);
    Write();
  }
  void Write() { WriteBoard(*board, observed.Channels(), observed.overflowed(), {kFd}); }
  // The board says that there is no such channel.
  void Deny(uint32_t channel) {
    auto clients = observed.Channels();
    std::erase(clients.front().channels, channel);
    WriteBoard(*board, clients, false, {kFd});
  }
  int Running() const {
    int running = 0;
    for (const uint32_t channel : channels) running += model.Runs(client, channel);
    return running;
  }
  ChannelTurn Turn(bool resumed = false) {
    std::vector<std::unique_ptr<RmFile>> files;
    files.push_back(std::make_unique<Copy>(file));
    return ChannelTurn(
        std::move(files), 580, [this] { return ReadBoard(*board); }, resumed);
  }

  Model& model;
  std::shared_ptr<rm_model::File> file;
  ObservedObjects observed;
  std::unique_ptr<ChannelBoard> board = std::make_unique<ChannelBoard>();
  bool hides = false;
  uint32_t client = 0, device = 0;
  std::vector<uint32_t> channels;
};

TEST(ChannelTurnTest, AllIsOffAndOnAgainTurnAfterTurn) {
  for (const bool disables : {true, false}) {
    Model model({.firmware_disables = disables});
    Executor executor(model), neighbour(model);
    executor.Group(8);
    executor.Group(70);
    neighbour.Group(8);
    ChannelTurn turn = executor.Turn();
    for (int n = 0; n < 3; ++n) {
      ASSERT_EQ(State::kOff, turn.Off()) << turn.words();
      EXPECT_EQ(0, executor.Running());
      EXPECT_EQ(8, neighbour.Running());
      ASSERT_EQ(State::kOn, turn.On()) << turn.words();
      EXPECT_EQ(78, executor.Running());
    }
  }
}

TEST(ChannelTurnTest, NewcomersAreHeldAndComeOnWithTheRest) {
  Model model;
  Executor executor(model);
  executor.Group(8);
  ChannelTurn turn = executor.Turn();
  ASSERT_EQ(State::kOff, turn.Off());
  executor.Group(4);
  EXPECT_EQ(4, executor.Running()) << "nobody has looked yet";
  ASSERT_EQ(State::kOff, turn.Look());
  EXPECT_EQ(0, executor.Running());
  EXPECT_EQ(4u, turn.newcomers());
  const int calls = model.calls(Command::kDisableChannels);
  ASSERT_EQ(State::kOff, turn.Look());
  EXPECT_EQ(calls, model.calls(Command::kDisableChannels)) << "nothing new: nothing is asked of the driver";
  ASSERT_EQ(State::kOn, turn.On());
  EXPECT_EQ(12, executor.Running());
}

TEST(ChannelTurnTest, WhatWasFreedIsNotMissed) {
  Model model;
  Executor executor(model);
  executor.Group(8);
  const uint32_t second = executor.Group(4);
  ChannelTurn turn = executor.Turn();
  ASSERT_EQ(State::kOff, turn.Off());
  ASSERT_EQ(State::kOn, turn.On());
  executor.Free(second);
  ASSERT_EQ(State::kOff, turn.Off()) << turn.words();
  executor.Free(executor.channels[0]);
  ASSERT_EQ(State::kOn, turn.On()) << turn.words();
  EXPECT_EQ(7, executor.Running());
}

TEST(ChannelTurnTest, WhoCallsFreedWhatIsThereHasLied) {
  for (const bool disables : {true, false}) {
    Model model({.firmware_disables = disables});
    Executor executor(model);
    executor.Group(8);
    const uint32_t second = executor.Group(2);
    ChannelTurn turn = executor.Turn();
    ASSERT_EQ(State::kOff, turn.Off());
    ASSERT_EQ(State::kOn, turn.On());
    if (disables) {
      executor.Deny(executor.channels[3]);
    } else {
      auto clients = executor.observed.Channels();
      std::erase(clients.front().groups, second);
      WriteBoard(*executor.board, clients, false, {kFd});
    }
    EXPECT_EQ(State::kLied, turn.Off());
    EXPECT_THAT(turn.words(), HasSubstr("calls freed"));
    EXPECT_EQ(State::kLied, turn.On()) << "for ever";
  }
}

TEST(ChannelTurnTest, HandlesThatThereAreNotKeepNothingOnTheGpu) {
  Model model;
  Executor executor(model);
  executor.Group(8);
  auto clients = executor.observed.Channels();
  clients.front().channels.insert(clients.front().channels.begin(), 0xdead);
  WriteBoard(*executor.board, clients, false, {kFd});
  ChannelTurn turn = executor.Turn();
  ASSERT_EQ(State::kOff, turn.Off()) << turn.words();
  EXPECT_EQ(0, executor.Running());
  ASSERT_EQ(State::kOn, turn.On()) << turn.words();
  EXPECT_EQ(8, executor.Running());
}

TEST(ChannelTurnTest, AnothersChannelsAreOutOfReach) {
  Model model;
  Executor executor(model), victim(model);
  executor.Group(2);
  victim.Group(8);
  auto clients = executor.observed.Channels();
  clients.push_back(victim.observed.Channels().front());
  WriteBoard(*executor.board, clients, false, {kFd});
  ChannelTurn turn = executor.Turn();
  (void)turn.Off();
  EXPECT_EQ(8, victim.Running());
}

struct RefusalCase {
  const char* name;
  uint32_t disable, preempt;  // what is answered
  State off;
  int running;
  const char* words;
};
class ChannelTurnRefusals : public testing::TestWithParam<RefusalCase> {};

TEST_P(ChannelTurnRefusals, LeadToTheirConsequenceAndLeaveNothingOff) {
  const RefusalCase& c = GetParam();
  Model model;
  Executor executor(model);
  executor.Group(8);
  if (c.disable != 0) model.Refuse(Command::kDisableChannels, c.disable);
  if (c.preempt != 0) model.Refuse(Command::kPreempt, c.preempt);
  ChannelTurn turn = executor.Turn();
  EXPECT_EQ(c.off, turn.Off());
  EXPECT_THAT(turn.words(), HasSubstr(c.words));
  EXPECT_EQ(c.running, executor.Running());
  const int calls = model.calls(Command::kDisableChannels);
  if (c.off != State::kOff) {
    EXPECT_EQ(c.off, turn.Off()) << "it is not asked again";
    EXPECT_EQ(calls, model.calls(Command::kDisableChannels));
  }
}
INSTANTIATE_TEST_SUITE_P(, ChannelTurnRefusals,
                         testing::ValuesIn(std::vector<RefusalCase>{
                             {"Nothing", 0, 0, State::kOff, 0, ""},
                             {"TheOtherWay", 0x56, 0, State::kOff, 0, ""},
                             {"NeitherWay", 0x56, 0x1b, State::kUnusable, 8, "INSUFFICIENT_PERMISSIONS"},
                             {"BusyForEver", 0x03, 0, State::kUnusable, 8, "BUSY_RETRY"},
                             {"AnotherFile", 0x23, 0, State::kUnusable, 8, "no channels of it are known"},
                             {"Hangs", 0x65, 0, State::kDoomed, 8, "TIMEOUT"},
                             {"HangsOtherWay", 0x56, 0x65, State::kDoomed, 8, "TIMEOUT"},
                             {"Lost", 0x0f, 0, State::kLost, 8, "GPU_IS_LOST"}}),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(ChannelTurnTest, TheGpuIsLostInTheMiddle) {
  Model model;
  Executor executor(model);
  executor.Group(8);
  ChannelTurn turn = executor.Turn();
  ASSERT_EQ(State::kOff, turn.Off());
  model.Lose();
  EXPECT_EQ(State::kLost, turn.On());
  const int calls = model.calls(Command::kDisableChannels);
  EXPECT_EQ(State::kLost, turn.Off());
  EXPECT_EQ(calls, model.calls(Command::kDisableChannels)) << "a lost GPU is told nothing more";
}

TEST(ChannelTurnTest, WhoCanNotBeLetOnIsDoomed) {
  Model model;
  Executor executor(model);
  executor.Group(8);
  ChannelTurn turn = executor.Turn();
  ASSERT_EQ(State::kOff, turn.Off());
  model.Refuse(Command::kDisableChannels, 0x1b);
  EXPECT_EQ(State::kDoomed, turn.On());
  EXPECT_THAT(turn.words(), HasSubstr("enable 8 channels"));
}

TEST(ChannelTurnTest, AVgpudThatComesLaterLetsOnWhateverTheOneBeforeDid) {
  for (const bool disables : {true, false}) {
    for (const bool was_off : {true, false}) {
      Model model({.firmware_disables = disables});
      Executor executor(model);
      executor.Group(8);
      {
        ChannelTurn before = executor.Turn();
        EXPECT_EQ(State::kOn, before.state());
        if (was_off) {
          EXPECT_EQ(State::kOff, before.Off());
        }
      }
      ChannelTurn turn = executor.Turn(/*resumed=*/true);
      EXPECT_EQ(State::kOff, turn.state());
      ASSERT_EQ(State::kOn, turn.On()) << turn.words();
      EXPECT_EQ(8, executor.Running());
      ASSERT_EQ(State::kOff, turn.Off()) << turn.words();
      EXPECT_EQ(0, executor.Running());
    }
  }
}

TEST(ChannelTurnTest, AnExecutorThatDiesInTheMiddleIsNoError) {
  Model model;
  Executor executor(model);
  executor.Group(8);
  ChannelTurn turn = executor.Turn();
  ASSERT_EQ(State::kOff, turn.Off());
  executor.Free(executor.client);
  EXPECT_EQ(State::kOn, turn.On()) << turn.words();
}

TEST(ChannelBoardTest, WhatIsWrittenIsRead) {
  ChannelBoard board{};
  ClientChannels client;
  client.fd = 9;
  client.client = 1;
  client.subdevice = 2;
  client.groups = {3, 4};
  client.channels = {5, 6, 7};
  ClientChannels stranger = client;
  stranger.fd = 10;
  WriteBoard(board, {client, stranger}, false, {8, 9});
  const auto reading = ReadBoard(board);
  ASSERT_TRUE(reading.has_value());
  ASSERT_EQ(1u, reading->clients.size());
  EXPECT_EQ(1, reading->clients[0].fd) << "the second of those handed over";
  EXPECT_EQ(client.channels, reading->clients[0].channels);
  EXPECT_EQ(client.groups, reading->clients[0].groups);
  EXPECT_EQ(5u, reading->unreachable);
  EXPECT_FALSE(reading->incomplete);
}

TEST(ChannelBoardTest, MoreThanFitsIsSaid) {
  ChannelBoard board{};
  ClientChannels client;
  client.fd = 1;
  client.channels.resize(2 * ChannelBoard::kMostEntries, 5);
  WriteBoard(board, {client}, false, {1});
  const auto reading = ReadBoard(board);
  ASSERT_TRUE(reading.has_value());
  EXPECT_TRUE(reading->incomplete);
  EXPECT_EQ(size_t{ChannelBoard::kMostEntries}, reading->clients[0].channels.size());
}

TEST(ChannelBoardTest, NoLieLeadsOutOfIt) {
  ChannelBoard board{};
  board.count.store(UINT32_MAX);
  EXPECT_FALSE(ReadBoard(board).has_value()) << "entries of no kind";
  for (auto& entry : board.entries) entry.kind_and_file.store(ChannelBoard::kChannel);
  const auto reading = ReadBoard(board);
  ASSERT_TRUE(reading.has_value());
  EXPECT_EQ(size_t{ChannelBoard::kMostEntries}, reading->clients[0].channels.size());
  board.entries[5].kind_and_file.store(ChannelBoard::kChannel | 0x1234 << 8);
  EXPECT_FALSE(ReadBoard(board).has_value()) << "a file that there can't be";
  board.sequence.store(1);
  EXPECT_FALSE(ReadBoard(board).has_value()) << "it is being written for ever";
}

}  // namespace
}  // namespace vgpud::rm
