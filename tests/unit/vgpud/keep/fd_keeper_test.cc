// SPDX-License-Identifier: Apache-2.0
// vgpud-keep: it keeps what it is given, takes the GPU back when its vgpud is gone, and gives everything to the next
// one, and to nobody else.
#include "vgpud/keep/fd_keeper.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <thread>

#include "base/slice_memory.h"
#include "tests/scratch_dir.h"

namespace vgpud::daemon {
namespace {

using keep::Entry;
using keep::Kind;

class FdKeeperTest : public testing::Test {
 protected:
  FdKeeperTest() {
    auto pair = MakeSeqpacketPair();
    session_ = std::move(pair->a);
    auto listening = ListenUnix(directory_ + "/s", SOCK_SEQPACKET);
    thread_ = std::thread([session = std::move(pair->b), listening = std::move(*listening)]() mutable {
      FdKeeper{std::move(session), std::move(listening)}.Run();
    });
    Tell({.kind = Kind::kHello, .note_bytes = keep::kSecretBytes, .note = {std::byte{7}}});
  }
  ~FdKeeperTest() override {
    if (session_) Tell({.kind = Kind::kEnd});
    thread_.join();
  }
  static Entry Named(Kind kind, const std::string& name) {
    Entry entry{.kind = kind};
    name.copy(entry.name, sizeof entry.name - 1);
    return entry;
  }
  void Tell(const Entry& entry, std::span<const int> fds = {}) {
    Result<void> sent = SendStruct(session_.get(), entry, fds);
    for (pollfd room{session_.get(), POLLOUT, 0};
         !sent && sent.error().code == std::errc::resource_unavailable_try_again && ::poll(&room, 1, -1) == 1;)
      sent = SendStruct(session_.get(), entry, fds);
    EXPECT_TRUE(sent);
  }
  void Store(const std::string& name) {
    const int fd = STDERR_FILENO;
    Tell(Named(Kind::kStore, name), std::span{&fd, 1});
  }
  UniqueFd Connect(uint8_t secret) const {
    auto socket = ConnectUnix(directory_ + "/s", SOCK_SEQPACKET);
    EXPECT_TRUE(socket);
    EXPECT_TRUE(SendStruct(socket->get(),
                           Entry{.kind = Kind::kHello, .note_bytes = keep::kSecretBytes, .note = {std::byte{secret}}}));
    return std::move(*socket);
  }
  // The names of what it gives; nullopt: it gives nothing, and hangs up.
  static std::optional<std::vector<std::string>> Take(const UniqueFd& socket) {
    std::vector<std::string> names;
    for (;;) {
      const auto message = ReceiveMessage(socket.get());
      if (!message) return std::nullopt;
      const Entry entry = *message->As<Entry>();
      if (entry.kind == Kind::kAll) return names;
      names.push_back(fmt::format("{} {}", entry.Name(), message->fds.size()));
    }
  }
  // The vgpud that had it is gone; another one comes.
  std::optional<std::vector<std::string>> Next() {
    session_.Reset();
    session_ = Connect(7);
    return Take(session_);
  }

  const ScratchDir scratch_;
  const std::string directory_ = scratch_.path();
  UniqueFd session_;
  std::thread thread_;
};

using Names = std::vector<std::string>;

TEST_F(FdKeeperTest, TheNextOneGetsEverythingAndTheOneAfterIt) {
  Store("vf/a");
  Store("vf/b");
  for (int i = 0; i < 2; ++i) EXPECT_EQ((Names{"vf/a 1", "vf/b 1"}), Next());
}

TEST_F(FdKeeperTest, ForgettingTakesWhatIsBelowAndNothingBeside) {
  for (const char* name : {"vf/a", "vf/a/watch", "vf/ab", "vf/b"}) Store(name);
  Tell(Named(Kind::kForget, "vf/a"));
  EXPECT_EQ((Names{"vf/ab 1", "vf/b 1"}), Next());
}

TEST_F(FdKeeperTest, WhoDoesNotKnowTheSecretGetsNothingAndDisturbsNobody) {
  Store("vf/a");
  EXPECT_EQ(std::nullopt, Take(Connect(8)));
  Store("vf/b");
  EXPECT_EQ((Names{"vf/a 1", "vf/b 1"}), Next());
}

TEST_F(FdKeeperTest, ASecretIsSetOnce) {
  Store("vf/a");
  Tell({.kind = Kind::kHello, .note_bytes = keep::kSecretBytes, .note = {std::byte{9}}});
  EXPECT_EQ((Names{"vf/a 1"}), Next());
}

TEST_F(FdKeeperTest, WhatIsNotUnderstoodIsNotKept) {
  Tell({.kind = Kind::kStore, .version = 2, .name = "other version"});
  Tell({.kind = Kind::kStore, .note_bytes = sizeof(Entry::note) + 1, .name = "long note"});
  Tell({.kind = Kind::kStore, .grant_page = 1, .name = "no such descriptor"});
  Tell({.kind = Kind::kStore});
  Entry endless = Named(Kind::kStore, std::string(sizeof(Entry::name) - 1, 'a'));
  endless.name[sizeof endless.name - 1] = 'a';
  Tell(endless);
  EXPECT_TRUE(SendMessage(session_.get(), std::as_bytes(std::span("short"))));
  Store("vf/a");
  EXPECT_EQ((Names{"vf/a 1"}), Next());
}

TEST_F(FdKeeperTest, NoiseChangesNothing) {
  Store("vf/a");
  std::mt19937 random(20261125);
  const int fds[] = {STDERR_FILENO, STDIN_FILENO, STDERR_FILENO};
  for (int i = 0; i < 300; ++i) {
    Entry entry;
    std::vector<std::byte> noise(1 + random() % (2 * sizeof entry));
    for (std::byte& each : noise) each = static_cast<std::byte>(random());
    // From its own vgpud: what it does not know, and what names nothing.
    (void)SendMessage(session_.get(), noise, std::span(fds).first(random() % 4));
    std::copy_n(noise.begin(), std::min(noise.size(), sizeof entry.name), reinterpret_cast<std::byte*>(entry.name));
    entry.kind = static_cast<Kind>(random() % 2 == 0 ? 5 + random() % 40 : 3);
    entry.note_bytes = random();
    entry.grant_page = random();
    Tell(entry, std::span(fds).first(random() % 4));
    // From somebody else.
    if (i % 10 != 0) continue;
    auto other = ConnectUnix(directory_ + "/s", SOCK_SEQPACKET);
    ASSERT_TRUE(other);
    (void)SendMessage(other->get(), noise, std::span(fds).first(random() % 4));
    EXPECT_EQ(std::nullopt, Take(*other));
  }
  EXPECT_EQ((Names{"vf/a 1"}), Next());
}

TEST_F(FdKeeperTest, MoreThanItHoldsIsNotKept) {
  for (size_t i = 0; i <= keep::kMostEntries; ++i) Tell(Named(Kind::kStore, fmt::format("{}", i)));
  const auto all = Next();
  ASSERT_TRUE(all);
  EXPECT_EQ(keep::kMostEntries, all->size());
}

TEST_F(FdKeeperTest, TheGpuIsTakenBackWhenVgpudIsGone) {
  auto memory = *MakeSliceMemory("a");
  GrantPage& page = memory.grant_page();
  page.granted_ns.store(5);
  page.grant.store(8 | GrantPage::kRun);
  const int fds[] = {STDERR_FILENO, memory.writable_grant_fd.get()};
  Entry entry = Named(Kind::kStore, "vf/a");
  entry.grant_page = 2;
  Tell(entry, fds);
  session_.Reset();
  session_ = Connect(7);
  EXPECT_EQ((Names{"vf/a 2"}), Take(session_));
  EXPECT_EQ(8u, page.grant.load());
  EXPECT_GT(page.taken_back_ns.load(), page.granted_ns.load());
}

TEST_F(FdKeeperTest, AVfThatDoesNotHaveTheGpuIsToldTooThatVgpudIsGone) {
  auto memory = *MakeSliceMemory("a");
  const int fds[] = {STDERR_FILENO, memory.writable_grant_fd.get()};
  Entry entry = Named(Kind::kStore, "vf/a");
  entry.grant_page = 2;
  Tell(entry, fds);
  const uint64_t before = MonotonicNs();
  session_.Reset();
  session_ = Connect(7);
  EXPECT_EQ((Names{"vf/a 2"}), Take(session_));
  EXPECT_GE(memory.grant_page().vgpud_gone_ns.load(), before);
  EXPECT_EQ(0u, memory.grant_page().taken_back_ns.load());
}

}  // namespace
}  // namespace vgpud::daemon
