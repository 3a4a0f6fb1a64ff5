// SPDX-License-Identifier: Apache-2.0
#include "vfio/device/irq_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <limits>

namespace vgpud::vfio {
namespace {

constexpr uint32_t kEvent = wire::kIrqDataEventFd | wire::kIrqTrigger;
constexpr uint32_t kNone = wire::kIrqDataNone | wire::kIrqTrigger;

std::vector<ForeignFd> One(UniqueFd fd) {
  std::vector<ForeignFd> fds;
  fds.emplace_back(std::move(fd));
  return fds;
}

Result<void> Set(IrqTable& table, uint32_t flags, uint32_t index, uint32_t start, uint32_t count,
                 std::vector<ForeignFd> fds = {}, std::span<const std::byte> data = {}) {
  return table.Set({sizeof(wire::SetIrqs), flags, index, start, count}, data, fds);
}

TEST(IrqTableTest, CountsPerKind) {
  const uint32_t counts[] = {1, 1, 0, 1, 1};
  const uint32_t flags[] = {7, 1, 0, 1, 1};  // eventfd, and the line can be masked and is so by itself
  for (uint32_t i = 0; i < wire::kIrqs; ++i) {
    const wire::IrqInfo info = *IrqTable::Info(i);
    EXPECT_EQ(16u, info.argsz);
    EXPECT_EQ(flags[i], info.flags) << i;
    EXPECT_EQ(i, info.index);
    EXPECT_EQ(counts[i], info.count) << i;
  }
  EXPECT_EQ(std::errc::invalid_argument, IrqTable::Info(wire::kIrqs).error().code);
}

TEST(IrqTableTest, RaisesWhatIsSetUntilItIsTakenAway) {
  IrqTable table;
  const UniqueFd event = *MakeEventFd();
  table.Raise(wire::kMsi);
  ASSERT_TRUE(Set(table, kEvent, wire::kMsi, 0, 1, One(*Dup(event.get()))));
  EXPECT_FALSE(DrainEventFd(event.get()));
  table.Raise(wire::kMsi);
  EXPECT_TRUE(DrainEventFd(event.get()));
  ASSERT_TRUE(Set(table, kNone, wire::kMsi, 0, 1)) << "trigger by the client";
  EXPECT_TRUE(DrainEventFd(event.get()));
  const std::byte off[] = {std::byte{0}};
  ASSERT_TRUE(Set(table, wire::kIrqDataBool | wire::kIrqTrigger, wire::kMsi, 0, 1, {}, off));
  EXPECT_FALSE(DrainEventFd(event.get()));
  ASSERT_TRUE(Set(table, kNone, wire::kMsi, 0, 0)) << "disable";
  table.Raise(wire::kMsi);
  EXPECT_FALSE(DrainEventFd(event.get()));
}

TEST(IrqTableTest, NoFdTakesTheVectorAway) {
  IrqTable table;
  const UniqueFd event = *MakeEventFd();
  ASSERT_TRUE(Set(table, kEvent, wire::kMsi, 0, 1, One(*Dup(event.get()))));
  ASSERT_TRUE(Set(table, kEvent, wire::kMsi, 0, 1));
  table.Raise(wire::kMsi);
  EXPECT_FALSE(DrainEventFd(event.get()));
}

TEST(IrqTableTest, RefusesWhatItDoesNotKnow) {
  IrqTable table;
  struct {
    uint32_t flags, index, start, count;
  } const cases[] = {
      {0, 1, 0, 1},
      {kEvent | kNone, 1, 0, 1},
      {wire::kIrqDataNone, 1, 0, 1},
      {wire::kIrqTrigger, 1, 0, 1},
      {wire::kIrqDataNone | wire::kIrqMask | wire::kIrqUnmask, 0, 0, 1},
      {kEvent | 0x40, 1, 0, 1},
      {kEvent, 5, 0, 1},
      {kEvent, ~0u, 0, 1},
      {kEvent, 1, 1, 1},
      {kEvent, 1, 0, 2},
      {kEvent, 1, ~0u, ~0u},
      {kEvent, 2, 0, 1},
      {wire::kIrqDataNone | wire::kIrqMask, 1, 0, 1},
      {wire::kIrqDataBool | wire::kIrqTrigger, 1, 0, 1},
  };
  for (const auto& c : cases) {
    const auto set = Set(table, c.flags, c.index, c.start, c.count);
    ASSERT_FALSE(set) << c.flags << " " << c.index << " " << c.start << " " << c.count;
    EXPECT_EQ(std::errc::invalid_argument, set.error().code);
  }
  EXPECT_FALSE(Set(table, kNone, 1, 0, 1, One(*MakeEventFd()))) << "an fd without DATA_EVENTFD";
  EXPECT_TRUE(Set(table, wire::kIrqDataNone | wire::kIrqMask, wire::kIntx, 0, 1));
}

TEST(IrqTableTest, NoVectorsMeansTakeThemAwayAndNothingElse) {
  IrqTable table;
  const std::byte one[] = {std::byte{1}};
  const auto refused = [](const Result<void>& set) { return !set && set.error().code == std::errc::invalid_argument; };
  EXPECT_TRUE(refused(Set(table, kNone, wire::kMsi, 1, 0))) << "a start";
  EXPECT_TRUE(refused(Set(table, kNone, wire::kMsi, 0, 0, {}, one))) << "data";
  EXPECT_TRUE(refused(Set(table, kEvent, wire::kMsi, 0, 0))) << "eventfds announced";
  EXPECT_TRUE(refused(Set(table, kEvent, wire::kMsi, 0, 0, One(*MakeEventFd())))) << "eventfds";
  EXPECT_TRUE(refused(Set(table, wire::kIrqDataBool | wire::kIrqTrigger, wire::kMsi, 0, 0)));
  EXPECT_TRUE(refused(Set(table, wire::kIrqDataNone | wire::kIrqMask, wire::kIntx, 0, 0)));
  EXPECT_TRUE(Set(table, kNone, wire::kMsi, 0, 0)) << "disable";
  EXPECT_TRUE(Set(table, kNone, wire::kMsix, 0, 0)) << "disable of what has no vectors";
}

TEST(IrqTableTest, AByteForEachVectorSaysWhetherToRaiseIt) {
  IrqTable table;
  const UniqueFd event = *MakeEventFd();
  ASSERT_TRUE(Set(table, kEvent, wire::kReq, 0, 1, One(*Dup(event.get()))));
  for (const int value : {0, 1, 2, 0xff}) {
    const std::byte data[] = {static_cast<std::byte>(value)};
    ASSERT_TRUE(Set(table, wire::kIrqDataBool | wire::kIrqTrigger, wire::kReq, 0, 1, {}, data));
    EXPECT_EQ(value != 0, DrainEventFd(event.get())) << value;
  }
}

TEST(IrqTableTest, OneEventFdForEachVector) {
  IrqTable table;
  std::vector<ForeignFd> two = One(*MakeEventFd());
  two.emplace_back(*MakeEventFd());
  EXPECT_FALSE(Set(table, kEvent, wire::kMsi, 0, 1, std::move(two)));
}

TEST(IrqTableTest, ClearedItHasNeitherEventFdsNorALineThatIsUp) {
  IrqTable table;
  EXPECT_FALSE(table.TakeLine());
  const UniqueFd event = *MakeEventFd();
  for (const uint32_t index : {wire::kIntx, wire::kErr})
    ASSERT_TRUE(Set(table, kEvent, index, 0, 1, One(*Dup(event.get()))));
  table.Interrupt();
  EXPECT_TRUE(DrainEventFd(event.get()));
  table.Clear();
  EXPECT_FALSE(table.TakeLine());
  table.Interrupt();
  table.Raise(wire::kErr);
  EXPECT_FALSE(DrainEventFd(event.get()));
  EXPECT_TRUE(table.TakeLine());
}

TEST(IrqTableTest, DataMustBeAsLongAsTheVectorsNeed) {
  IrqTable table;
  const std::byte two[] = {std::byte{1}, std::byte{1}};
  EXPECT_FALSE(Set(table, wire::kIrqDataBool | wire::kIrqTrigger, wire::kMsi, 0, 1, {}, two));
  EXPECT_FALSE(Set(table, kNone, wire::kMsi, 0, 1, {}, two));
}

TEST(IrqTableTest, KeepsTheEventFdAndLeavesWhatItRefuses) {
  IrqTable table;
  std::vector<ForeignFd> fds = One(*MakeEventFd());
  const wire::SetIrqs set{sizeof set, kEvent, wire::kMsi, 0, 1};
  ASSERT_TRUE(table.Set(set, {}, fds));
  EXPECT_FALSE(fds[0]);
  fds = One(*MakeSealedMemfd("x", 4096));
  EXPECT_FALSE(table.Set(set, {}, fds));
  EXPECT_TRUE(fds[0]) << "closing it is the caller's business";
}

// What a client can do between any check and the write: make the eventfd block, and fill it.
TEST(IrqTableTest, AClientThatMakesUsWaitLosesItsInterrupt) {
  IrqTable table;
  const UniqueFd event = *MakeEventFd();
  ASSERT_TRUE(Set(table, kEvent, wire::kMsi, 0, 1, One(*Dup(event.get()))));
  const uint64_t full = std::numeric_limits<uint64_t>::max() - 1;
  ASSERT_EQ(ssize_t{sizeof full}, ::write(event.get(), &full, sizeof full));
  table.Raise(wire::kMsi);  // full, but nobody waits
  ASSERT_EQ(0, ::fcntl(event.get(), F_SETFL, 0));
  table.Raise(wire::kMsi);  // would wait for good
  EXPECT_TRUE(DrainEventFd(event.get()));
  table.Raise(wire::kMsi);
  ASSERT_EQ(0, ::fcntl(event.get(), F_SETFL, O_NONBLOCK));
  EXPECT_FALSE(DrainEventFd(event.get())) << "dropped";
  ASSERT_TRUE(Set(table, kEvent, wire::kMsi, 0, 1, One(*Dup(event.get()))));
  table.Raise(wire::kMsi);
  EXPECT_TRUE(DrainEventFd(event.get())) << "set again";
}

TEST(IrqTableTest, AWriteThatBlocksEndsWhateverTheTimerDidBefore) {
  IrqTable table;
  const UniqueFd good = *MakeEventFd();
  ASSERT_TRUE(Set(table, kEvent, wire::kErr, 0, 1, One(*Dup(good.get()))));
  const uint64_t full = std::numeric_limits<uint64_t>::max() - 1;
  for (int round = 0; round < 20; ++round) {
    const UniqueFd event{::eventfd(0, EFD_CLOEXEC)};
    ASSERT_EQ(ssize_t{sizeof full}, ::write(event.get(), &full, sizeof full));
    ASSERT_TRUE(Set(table, kEvent, wire::kMsi, 0, 1, One(*Dup(event.get()))));
    ASSERT_EQ(0, ::fcntl(event.get(), F_SETFL, 0));
    for (int i = 0; i < round * 1000; ++i) table.Raise(wire::kErr);
    table.Raise(wire::kMsi);
  }
  EXPECT_TRUE(DrainEventFd(good.get()));
}

TEST(IrqTableTest, RefusesFdsThatAreNoEventFds) {
  IrqTable table;
  int ends[2];
  ASSERT_EQ(0, ::pipe2(ends, O_CLOEXEC));
  const UniqueFd read_end{ends[0]};
  EXPECT_FALSE(Set(table, kEvent, wire::kMsi, 0, 1, One(UniqueFd{ends[1]})));
  EXPECT_FALSE(Set(table, kEvent, wire::kMsi, 0, 1, One(*MakeSealedMemfd("x", 4096))));
  EXPECT_FALSE(Set(table, kEvent, wire::kMsi, 0, 1, One(UniqueFd{::inotify_init1(IN_CLOEXEC)})))
      << "has no type either, and cannot be written";
  table.Raise(wire::kMsi);
}

TEST(IrqTableTest, AnEventFdIsWrittenWithoutWaiting) {
  IrqTable table;
  const UniqueFd event{::eventfd(0, EFD_CLOEXEC)};
  ASSERT_TRUE(Set(table, kEvent, wire::kMsi, 0, 1, One(*Dup(event.get()))));
  EXPECT_NE(0, ::fcntl(event.get(), F_GETFL) & O_NONBLOCK);
}

}  // namespace
}  // namespace vgpud::vfio
