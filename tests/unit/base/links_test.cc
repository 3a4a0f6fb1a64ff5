// SPDX-License-Identifier: Apache-2.0
// The numbers that our own processes agree on: messages of the links, the slice pages, budgets.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <vector>

#include "base/event_budget.h"
#include "base/exec_link.h"
#include "base/message.h"
#include "base/slice_memory.h"
#include "base/vf_link.h"

namespace vgpud {
namespace {

// Everything of a fresh message but its kind is zero.
template <class T>
void ExpectBlank(const T& message, uint32_t kind) {
  std::vector<unsigned char> bytes(sizeof message), expected(sizeof message);
  memcpy(bytes.data(), &message, sizeof message);
  memcpy(expected.data(), &kind, sizeof kind);
  EXPECT_EQ(expected, bytes) << "kind " << kind;
}

TEST(ExecLink, KindsAreNumbered) {
  using exec_link::Kind;
  const struct {
    Kind kind;
    uint32_t number;
  } rows[] = {{Kind::kAttach, 1},     {Kind::kMapArea, 2},   {Kind::kUnmapArea, 3},    {Kind::kVramReply, 4},
              {Kind::kHostReply, 5},  {Kind::kLoadReply, 6}, {Kind::kUnmapped, 16},    {Kind::kVramRequest, 17},
              {Kind::kDoorbells, 18}, {Kind::kWatched, 19},  {Kind::kHostRequest, 20}, {Kind::kLoadRequest, 21},
              {Kind::kLoaded, 22}};
  for (const auto& row : rows) EXPECT_EQ(row.number, static_cast<uint32_t>(row.kind));
  EXPECT_EQ(3, exec_link::kExecLinkFd);
  EXPECT_EQ(4, exec_link::kGrantPageFd);
  EXPECT_EQ(5, exec_link::kSlotPageFd);
}

TEST(ExecLink, FreshMessagesAreBlank) {
  ExpectBlank(exec_link::Attach{}, 1);
  ExpectBlank(exec_link::Area{.kind = exec_link::Kind::kMapArea}, 2);
  ExpectBlank(exec_link::Plain{.kind = exec_link::Kind::kLoadReply}, 6);
  ExpectBlank(exec_link::Vram{.kind = exec_link::Kind::kVramRequest}, 17);
  ExpectBlank(exec_link::Doorbells{}, 18);
  ExpectBlank(exec_link::Loaded{}, 22);
  ExpectBlank(exec_link::Piece{}, 0);
}

TEST(VfLink, KindsAreNumbered) {
  using vf_link::Kind;
  const struct {
    Kind kind;
    uint32_t number;
  } rows[] = {{Kind::kConfigure, 1},     {Kind::kExecutor, 2},       {Kind::kInfo, 3},     {Kind::kReset, 4},
              {Kind::kShutdown, 5},      {Kind::kExecutorFailed, 6}, {Kind::kPing, 7},     {Kind::kHello, 16},
              {Kind::kNeedExecutor, 17}, {Kind::kChannelClosed, 18}, {Kind::kClient, 19},  {Kind::kUsage, 20},
              {Kind::kEvents, 21},       {Kind::kPong, 22},          {Kind::kWatched, 23}, {Kind::kKillExecutor, 24},
              {Kind::kAdopt, 8},         {Kind::kChannel, 25},       {Kind::kInStep, 26}};
  for (const auto& row : rows) EXPECT_EQ(row.number, static_cast<uint32_t>(row.kind));
  EXPECT_EQ(3, vf_link::kVfLinkFd);
}

TEST(VfLink, FreshMessagesAreBlank) {
  ExpectBlank(vf_link::Configure{}, 1);
  ExpectBlank(vf_link::Executor{.kind = vf_link::Kind::kExecutor}, 2);
  ExpectBlank(vf_link::Info{}, 3);
  ExpectBlank(vf_link::Plain{.kind = vf_link::Kind::kReset}, 4);
  ExpectBlank(vf_link::Ping{.kind = vf_link::Kind::kPing}, 7);
  ExpectBlank(vf_link::Adopt{.version = 0}, 8);
  ExpectBlank(vf_link::Hello{.version = 0}, 16);
  ExpectBlank(vf_link::Channel{}, 25);
  EXPECT_EQ(2u, vf_link::Hello{}.version);
  EXPECT_EQ(2u, vf_link::Adopt{}.version);
  ExpectBlank(vf_link::Quotas{}, 9);
  ExpectBlank(vf_link::QuotasSet{}, 27);
  ExpectBlank(vf_link::Client{}, 19);
  ExpectBlank(vf_link::Usage{}, 20);
  ExpectBlank(vf_link::Events{}, 21);
}

TEST(SlicePage, FreshPagesGrantNothing) {
  const GrantPage grant;
  EXPECT_EQ(0, memcmp("SLIC", &grant.magic, 4));
  EXPECT_EQ(7u, grant.version);
  EXPECT_EQ(1u, GrantPage::kRun);
  for (const uint64_t value :
       {uint64_t{grant.grant}, uint64_t{grant.deadline_ns}, uint64_t{grant.notify}, uint64_t{grant.scheduler_cpu},
        uint64_t{grant.finish}, uint64_t{grant.granted_ns}, uint64_t{grant.make_room}})
    EXPECT_EQ(0u, value);
  const SlotPage slots;
  EXPECT_EQ(0u, slots.bell);
  std::vector<unsigned char> bytes(sizeof slots);
  memcpy(bytes.data(), static_cast<const void*>(&slots), sizeof slots);
  EXPECT_EQ(std::vector<unsigned char>(sizeof slots), bytes);
  EXPECT_EQ(64u, kMaxExecutors);
  const ExecState states[] = {ExecState::kNone, ExecState::kIdle, ExecState::kReady, ExecState::kRunning};
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(i, static_cast<uint32_t>(states[i]));
}

TEST(SlicePage, TheSchedulersCpuIsOneLessThanTheWord) {
  GrantPage grant;
  EXPECT_EQ(std::nullopt, SchedulerCpu(grant));
  grant.scheduler_cpu = 1;
  EXPECT_EQ(0u, SchedulerCpu(grant));
  grant.scheduler_cpu = 8;
  EXPECT_EQ(7u, SchedulerCpu(grant));
}

TEST(SlicePage, EachRingIsOneMore) {
  SlotPage slots;
  Ring(slots);
  Ring(slots);
  EXPECT_EQ(2u, slots.bell);
}

TEST(SliceMemory, PagesHaveTheirSizeAndFormat) {
  const SliceMemory memory = *MakeSliceMemory("test");
  struct stat st {};
  ASSERT_EQ(0, ::fstat(memory.grant_fd.get(), &st));
  EXPECT_EQ(4096, st.st_size);
  ASSERT_EQ(0, ::fstat(memory.slots_fd.get(), &st));
  EXPECT_EQ(12288, st.st_size);
  EXPECT_TRUE(MapSlices(memory.grant_fd.get(), memory.slots_fd.get()));
  memory.grant_page().magic ^= 1;
  EXPECT_FALSE(MapSlices(memory.grant_fd.get(), memory.slots_fd.get()));
}

TEST(EventBudget, DefaultsAreWhatTheDocumentationSays) {
  EXPECT_EQ((EventBudgets{50'000, 20'000, 50, 50, 200, 200'000, 20, 50'000, 16'384}), kDefaultEventBudgets);
  EXPECT_EQ(9u, kGuardedEvents);
  EventBudgets budgets = kDefaultEventBudgets;
  for (size_t kind = 0; kind < kGuardedEvents; ++kind) {
    ASSERT_TRUE(ParseEventBudget(std::string(kEventNames[kind]) + "=10000000", budgets)) << "the most";
    EXPECT_EQ(10'000'000u, budgets[kind]);
  }
}

TEST(Message, SizesAreBounded) {
  const SocketPair pair = *MakeSeqpacketPair();
  std::vector<std::byte> bytes(64 << 10);
  ASSERT_TRUE(SendMessage(pair.a.get(), bytes));
  EXPECT_EQ(bytes.size(), ReceiveMessage(pair.b.get())->bytes.size());
  bytes.emplace_back();
  ASSERT_TRUE(SendMessage(pair.a.get(), bytes));
  EXPECT_EQ(std::errc::message_size, ReceiveMessage(pair.b.get()).error().code);
  const UniqueFd event = *MakeEventFd();
  const std::vector<int> sixteen(16, event.get()), more(17, event.get());
  ASSERT_TRUE(SendMessage(pair.a.get(), std::span(bytes).first(1), sixteen));
  EXPECT_EQ(16u, ReceiveMessage(pair.b.get())->fds.size());
  EXPECT_EQ(std::errc::argument_list_too_long, SendMessage(pair.a.get(), std::span(bytes).first(1), more).error().code);
}

TEST(Message, AMessageAsLongAsTheStructIsLongEnough) {
  Message message;
  message.bytes.resize(sizeof(uint64_t));
  EXPECT_TRUE(message.As<uint64_t>());
  message.bytes.pop_back();
  EXPECT_FALSE(message.As<uint64_t>());
}

TEST(Message, AFullSocketTakesNothingAndDoesNotBlock) {
  const SocketPair pair = *MakeSeqpacketPair();
  const std::vector<std::byte> bytes(60 << 10);
  Result<void> sent;
  do sent = SendMessage(pair.a.get(), bytes);
  while (sent);
  EXPECT_EQ(std::errc::resource_unavailable_try_again, sent.error().code);
}

}  // namespace
}  // namespace vgpud
