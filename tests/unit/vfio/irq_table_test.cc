#include "vfio/irq_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "vfio/version_text.h"

namespace vgpud {
namespace {

constexpr uint32_t kEvent = wire::kIrqDataEventFd | wire::kIrqTrigger;
constexpr uint32_t kNone = wire::kIrqDataNone | wire::kIrqTrigger;

std::vector<UniqueFd> One(UniqueFd fd) {
  std::vector<UniqueFd> fds;
  fds.push_back(std::move(fd));
  return fds;
}

Result<void> Set(IrqTable& table, uint32_t flags, uint32_t index, uint32_t start, uint32_t count,
                 std::vector<UniqueFd> fds = {}, std::span<const std::byte> data = {}) {
  return table.Set({sizeof(wire::SetIrqs), flags, index, start, count}, data, std::move(fds));
}

TEST(IrqTableTest, CountsPerKind) {
  const uint32_t counts[] = {1, 1, 0, 1, 1};
  for (uint32_t i = 0; i < wire::kIrqs; ++i) EXPECT_EQ(counts[i], IrqTable::Info(i)->count) << i;
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

TEST(IrqTableTest, RefusesFdsThatAreNoEventFds) {
  IrqTable table;
  int ends[2];
  ASSERT_EQ(0, ::pipe2(ends, O_CLOEXEC));
  const UniqueFd read_end{ends[0]};
  EXPECT_FALSE(Set(table, kEvent, wire::kMsi, 0, 1, One(UniqueFd{ends[1]})));
  EXPECT_FALSE(Set(table, kEvent, wire::kMsi, 0, 1, One(*MakeSealedMemfd("x", 4096))));
  table.Raise(wire::kMsi);
}

TEST(VersionTextTest, FindsNumbersInAnyBytes) {
  EXPECT_EQ(16u, FindJsonNumber(R"({"capabilities": {"pgsizes": 4096, "max_msg_fds": 16}})", "max_msg_fds"));
  EXPECT_EQ(7u, FindJsonNumber(R"({"a\"max_msg_fds": 1, "x": "max_msg_fds", "max_msg_fds" : 7})", "max_msg_fds"));
  for (const char* text : {"", "{", "\"", "\"max_msg_fds", "\"max_msg_fds\"", "\"max_msg_fds\":", "\"max_msg_fds\\\":4",
                           "\"max_msg_fds\":-1", "\"max_msg_fds\":1e9", "\"max_msg_fds\":99999999999999999999",
                           "\"max_msg_fds\":NaN", "\\\"max_msg_fds\":", "{\"max_msg_fdsx\":3}"})
    EXPECT_EQ(std::nullopt, FindJsonNumber(text, "max_msg_fds")) << text;
}

}  // namespace
}  // namespace vgpud
