// SPDX-License-Identifier: Apache-2.0
// When the vfio-user server answers whom: pipelines, clients that are slow, too quick, or gone.
#include <event2/event.h>

#include "tests/unit/vfio/vfio_server_rig.h"

namespace vgpud::vfio {
namespace {

class VfioServerTurnsTest : public VfioServerRig {
 protected:
  using VfioServerRig::VfioServerRig;
  // Posted, so that nothing is to be read.
  static std::string Posted(Op command, const std::string& body = "") {
    return TestClient::Message(1, command, body, wire::kNoReply);
  }
  static std::string Kick() { return Posted(Op::kRegionWrite, Access(VGPU_REG_CTRL_KICK, 0, 4) + "kick"); }
  // Turns of the loop until the next answer is here.
  Answer Await(TestClient& client) {
    for (;;) {
      if (const auto answer = client.Next()) return *answer;
      event_base_loop(loop.base(), EVLOOP_ONCE);
    }
  }
  uint64_t Count(GuardedEvent event) const { return guard.count(event); }
};

TEST_F(VfioServerTurnsTest, MessagesAreAnsweredInOrderHoweverTheyArrive) {
  const auto client = Connect();
  const std::string read = Access(0, 0, 4);
  std::string stream;
  for (uint16_t id = 100; id < 300; ++id) stream += TestClient::Message(id, Op::kRegionRead, read);
  client->Send(stream);
  Pump();
  for (uint16_t id = 100; id < 300; ++id) {
    const auto answer = client->Next();
    ASSERT_TRUE(answer) << id;
    ASSERT_EQ(id, answer->head.id);
    ASSERT_EQ(Access(0, 0, 4) + "VGPU", answer->body);
  }
  for (const char byte : TestClient::Message(7, Op::kRegionRead, read)) {
    EXPECT_FALSE(client->Next());
    client->Send(std::string(1, byte));
    Pump();
  }
  EXPECT_EQ(7, client->Next()->head.id);
}

TEST_F(VfioServerTurnsTest, PostedMessagesAreNeverAnswered) {
  const auto client = Connect();
  client->Send(Posted(Op::kRegionWrite, Access(0x118, 0, 4) + "abcd") + Posted(Op{99}) +
               Posted(Op::kDmaUnmap, Unmap(kRamBase, kRamBytes)) + Posted(Op::kDmaMap, Map(0x5000'0000, 0x1000)));
  Pump();
  EXPECT_FALSE(client->Next());
  EXPECT_EQ(0x64636261u, ReadRegister(0x118));
  EXPECT_EQ(1u, function->dma.regions());
}

TEST_F(VfioServerTurnsTest, MessagesAndErrorsAreCountedAndRepliesAreNot) {
  const auto client = Connect();
  const uint64_t messages = Count(GuardedEvent::kMessage), bad = Count(GuardedEvent::kBadMessage);
  EXPECT_EQ(0u, Error(*client, Op::kRegionRead, Access(0, 0, 4)));
  EXPECT_EQ(messages + 1, Count(GuardedEvent::kMessage));
  EXPECT_EQ(bad, Count(GuardedEvent::kBadMessage));
  EXPECT_EQ(uint32_t{ENOSYS}, Error(*client, Op{99}));
  EXPECT_EQ(uint32_t{EINVAL}, Error(*client, Op::kDeviceReset, "", {}, 2)) << "neither command nor reply";
  EXPECT_EQ(messages + 3, Count(GuardedEvent::kMessage));
  EXPECT_EQ(bad + 2, Count(GuardedEvent::kBadMessage));
  client->Send(TestClient::Message(5, Op::kDeviceReset, "", wire::kTypeReply));
  Pump();
  EXPECT_FALSE(client->Next()) << "an answer to what was never asked";
  EXPECT_EQ(messages + 3, Count(GuardedEvent::kMessage));
}

// One read can bring them, and each takes its time.
TEST_F(VfioServerTurnsTest, AThousandCommandsOfTheGuestAreATurn) {
  const auto client = Connect();
  SetControlPage();
  std::string kicks;
  for (int i = 0; i < 2500; ++i) kicks += Kick();
  client->Send(kicks);
  const uint64_t before = Count(GuardedEvent::kCommand);
  Turn();
  EXPECT_EQ(1024u, Count(GuardedEvent::kCommand) - before);
  for (uint64_t done = 1024; done < 2500; done = Count(GuardedEvent::kCommand) - before) {
    event_base_loop(loop.base(), EVLOOP_ONCE);
    EXPECT_LE(Count(GuardedEvent::kCommand) - before, done + 1024);
  }
  EXPECT_EQ(2500u, ReadRegister(VGPU_REG_CTRL_SEQ));
  EXPECT_EQ(0u, guard.throttled(GuardedEvent::kCommand)) << "nothing was too much";
  EXPECT_EQ(0u, Error(*client, Op::kDeviceReset)) << "the next turn begins anew";
}

TEST_F(VfioServerTurnsTest, AfterManyReadsTheOthersHaveTheirTurn) {
  const auto client = Connect();
  // The kernel ends a read behind a message with descriptors.
  for (uint64_t i = 0; i < 270; ++i)
    client->Send(Posted(Op::kDmaMap, Map(0x1'0000'0000 + i * 0x1000, 0x1000)), {ram.get()});
  Turn();
  EXPECT_EQ(1u + 256u, function->dma.regions());
  Turn();
  EXPECT_EQ(1u + 270u, function->dma.regions());
}

// However long a reset takes here, two are more than one a second.
class OneResetASecond : public VfioServerTurnsTest {
 protected:
  OneResetASecond() : VfioServerTurnsTest(Budgets()) {}
  static EventBudgets Budgets() {
    EventBudgets budgets = kDefaultEventBudgets;
    budgets[static_cast<size_t>(GuardedEvent::kReset)] = 1;
    return budgets;
  }
};

TEST_F(OneResetASecond, WhoDoesTooMuchIsServedLater) {
  const auto client = Connect();
  guard.Count(GuardedEvent::kReset, 2);
  EXPECT_EQ(Ns{0}, guard.Wait(EventGuard::kInput, Now())) << "from now on the time counts";
  const uint64_t before = Count(GuardedEvent::kReset);
  client->Send(Posted(Op::kDeviceReset) + Posted(Op::kDeviceReset) + Posted(Op::kDeviceReset) +
               TestClient::Message(9, Op::kRegionRead, Access(0, 0, 4)));
  Turn();
  EXPECT_EQ(2u, Count(GuardedEvent::kReset) - before) << "one, and the one that is too many";
  ASSERT_FALSE(client->Next());
  EXPECT_EQ(1u, guard.throttled(GuardedEvent::kReset));
  EXPECT_GT(guard.throttled_time(), Ns{0});
  EXPECT_EQ(9, Await(*client).head.id);
  EXPECT_EQ(3u, Count(GuardedEvent::kReset) - before) << "all are served in the end";
  EXPECT_EQ(0u, Error(*client, Op::kRegionRead, Access(0, 0, 4))) << "and from then on as ever";
}

TEST_F(VfioServerTurnsTest, WhoDoesNotReadIsNotServedAndLosesNothing) {
  const auto client = Connect();
  std::string reads;
  for (uint16_t id = 1; id <= 50; ++id) reads += TestClient::Message(id, Op::kRegionRead, Access(0, 0, 65536));
  client->Send(reads);
  client->Send(TestClient::Message(51, Op::kDmaMap, Map(0x5000'0000, 0x1000)));
  Pump();
  EXPECT_EQ(1u, function->dma.regions()) << "its answers come first";
  for (uint16_t id = 1; id <= 50; ++id) {
    const Answer answer = Await(*client);
    ASSERT_EQ(id, answer.head.id);
    ASSERT_EQ(16u + 65536u, answer.body.size());
    ASSERT_EQ("VGPU", answer.body.substr(16, 4));
    ASSERT_EQ(std::string(0xf000, '\0'), answer.body.substr(16 + 0x1000));
  }
  EXPECT_EQ(51, Await(*client).head.id);
  EXPECT_EQ(2u, function->dma.regions());
}

TEST_F(VfioServerTurnsTest, AnUnmapIsAnsweredWhenNobodyHasTheMemoryAndTheRestAfterIt) {
  const auto client = Connect();
  EXPECT_EQ(0u, Error(*client, Op::kDmaMap, Map(0x5000'0000, 0x1000), {ram.get()}));
  SetControlPage();
  const auto executor = OpenWithExecutor(0);
  ASSERT_EQ(0, Command(VGPU_CTRL_BUFFER_ADD, 0, 1, {{0x5000'0000, 0x1000}}));
  for (const bool posted : {false, true}) {
    const std::string unmap = TestClient::Message(
        7, Op::kDmaUnmap, posted ? Unmap(0, 0, 2) : Unmap(0x5000'0000, 0x1000), posted ? wire::kNoReply : 0);
    client->Send(unmap + TestClient::Message(8, Op::kDmaMap, Map(0x6000'0000, 0x1000)));
    const size_t regions = function->dma.regions();
    Pump();
    EXPECT_FALSE(client->Next());
    EXPECT_EQ(regions, function->dma.regions()) << "nothing behind it is served";
    if (posted)
      executor->Die();
    else
      ASSERT_TRUE(SendStruct(executor->socket.get(), exec_link::Area{exec_link::Kind::kUnmapped, 1}));
    Pump();
    if (!posted) {
      const auto answer = client->Next();
      ASSERT_TRUE(answer);
      EXPECT_EQ(7, answer->head.id);
      EXPECT_EQ(1u, answer->head.flags);
      EXPECT_EQ(Unmap(0x5000'0000, 0x1000), answer->body);
    }
    EXPECT_EQ(8, client->Next()->head.id);
    EXPECT_EQ(posted ? 1u : 2u, function->dma.regions());
    if (!posted) {
      EXPECT_EQ(0u, Error(*client, Op::kDmaUnmap, Unmap(0x6000'0000, 0x1000)));
    }
    EXPECT_EQ(0u, Error(*client, Op::kRegionRead, Access(0, 0, 4))) << "from then on as ever";
  }
}

TEST_F(VfioServerTurnsTest, AnExecutorThatCannotBeKilledIsAnErrorOfTheUnmap) {
  const auto client = Connect();
  SetControlPage();
  const auto executor = OpenWithExecutor(0);  // its pidfd is none
  client->Send(TestClient::Message(7, Op::kDmaUnmap, Unmap(0, 0, 2)));
  const Answer answer = Await(*client);
  EXPECT_EQ(7, answer.head.id);
  EXPECT_EQ(0x21u, answer.head.flags);
  EXPECT_EQ(uint32_t{EBUSY}, answer.head.error);
  EXPECT_EQ(vf_link::Kind::kKillExecutor, to_vgpud.back().kind);
  EXPECT_EQ(0u, function->dma.regions()) << "the guest's memory is gone all the same";
  executor->Die();
  Pump();
}

TEST_F(VfioServerTurnsTest, OneClientAtATime) {
  EXPECT_FALSE(server_->connected());
  const auto first = Connect();
  EXPECT_TRUE(server_->connected());
  const auto second = Connect(false);
  EXPECT_TRUE(second->Ended());
  EXPECT_EQ(0u, Error(*first, Op::kDeviceReset));
  EXPECT_EQ(std::vector<bool>{true}, changes_);
  first->Close();
  Pump();
  EXPECT_FALSE(server_->connected());
  EXPECT_EQ((std::vector<bool>{true, false}), changes_);
  EXPECT_EQ(0u, function->dma.regions()) << "what it had mapped goes with it";
  const auto third = Connect();
  EXPECT_EQ((std::vector<bool>{true, false, true}), changes_);
}

TEST_F(VfioServerTurnsTest, WhoComesWhenTheOneBeforeHasGoneIsServed) {
  auto first = Connect();
  // It waits, so that nobody reads the end of its connection.
  SetControlPage();
  const auto executor = OpenWithExecutor(0);
  first->Send(TestClient::Message(7, Op::kDmaUnmap, Unmap(0, 0, 2)));
  Pump();
  first->Close();
  const auto second = Connect();
  EXPECT_EQ(0u, Error(*second, Op::kDeviceReset));
  EXPECT_EQ((std::vector<bool>{true, false, true}), changes_);
  executor->Die();
  Pump();
  EXPECT_FALSE(second->Next());
  EXPECT_FALSE(second->Ended());
}

TEST_F(VfioServerTurnsTest, AClientThatTakesNoAnswersIsServedNoMore) {
  const auto client = Connect();
  ASSERT_EQ(0, ::shutdown(client->get(), SHUT_RD));
  const uint64_t before = Count(GuardedEvent::kMessage);
  std::string reads;
  for (uint16_t id = 1; id <= 3; ++id) reads += TestClient::Message(id, Op::kRegionRead, Access(0, 0, 4));
  client->Send(reads);
  Pump();
  EXPECT_EQ(before + 1, Count(GuardedEvent::kMessage));
  EXPECT_FALSE(server_->connected());
  EXPECT_EQ((std::vector<bool>{true, false}), changes_);
}

TEST_F(VfioServerTurnsTest, AHeaderThatCannotBeEndsTheConnection) {
  for (const uint32_t bytes : {0u, 15u, wire::kMaxBytes + 1, ~0u}) {
    const auto client = Connect();
    client->Send(Bytes(wire::Header{1, 9, bytes, 0, 0}));
    Pump();
    EXPECT_TRUE(client->Ended()) << bytes;
    EXPECT_FALSE(server_->connected());
  }
}

TEST_F(VfioServerTurnsTest, ADisconnectedClientHearsOfItAndWhatItHasSentIsNotServed) {
  const auto client = Connect();
  client->Send(Posted(Op::kDmaMap, Map(0x5000'0000, 0x1000)));
  server_->Disconnect("the VF ends");
  server_->Disconnect("twice");
  Pump();
  EXPECT_TRUE(client->Ended());
  EXPECT_EQ(0u, function->dma.regions());
  EXPECT_EQ((std::vector<bool>{true, false}), changes_);
}

}  // namespace
}  // namespace vgpud::vfio
