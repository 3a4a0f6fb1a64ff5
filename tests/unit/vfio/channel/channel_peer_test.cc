// SPDX-License-Identifier: Apache-2.0
#include "vfio/channel/channel_peer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "base/fd.h"

namespace vgpud::vfio {
namespace {

std::vector<Peer> Many(size_t count, const Peer& peer) { return std::vector<Peer>(count, peer); }

TEST(ChannelPeerTest, KnowsWhoIsThere) {
  const SocketPair pair = *MakeSeqpacketPair();
  const Peer peer = PeerOf(pair.a.get());
  EXPECT_EQ(::getuid(), peer.uid);
  EXPECT_EQ(::getpid(), peer.pid);
  EXPECT_EQ(static_cast<uint64_t>(::getpid()), peer.process);
}

TEST(ChannelPeerTest, OfWhatIsNoSocketNothingIsKnown) {
  const UniqueFd event = *MakeEventFd();
  for (const Peer& peer : {PeerOf(event.get()), Peer{}}) {
    EXPECT_EQ(0u, peer.uid);
    EXPECT_EQ(0, peer.pid);
    EXPECT_EQ(0u, peer.process);
  }
}

TEST(ChannelPeerTest, TheLimitsLeaveRoomForOthers) {
  EXPECT_EQ(80u, kMaxConnections);
  EXPECT_EQ(72u, kMaxConnectionsPerUser);
  EXPECT_EQ(40u, kMaxConnectionsPerProcess);
  EXPECT_EQ(std::chrono::seconds{5}, kOpenWithin);
}

TEST(ChannelPeerTest, OneProcessCannotTakeAll) {
  const Peer greedy{1000, 5, 5};
  EXPECT_EQ(nullptr, WhyRefused(Many(kMaxConnectionsPerProcess - 1, greedy), greedy));
  EXPECT_NE(nullptr, WhyRefused(Many(kMaxConnectionsPerProcess, greedy), greedy));
  EXPECT_EQ(nullptr, WhyRefused(Many(kMaxConnectionsPerProcess, greedy), {1000, 6, 6})) << "another of the same user";
}

TEST(ChannelPeerTest, OneUserCannotTakeAllWithManyProcesses) {
  std::vector<Peer> open;
  for (pid_t pid = 1; open.size() < kMaxConnectionsPerUser; ++pid)
    open.push_back({1000, pid, static_cast<uint64_t>(pid)});
  EXPECT_NE(nullptr, WhyRefused(open, {1000, 999, 999}));
  EXPECT_EQ(nullptr, WhyRefused(std::span{open}.subspan(1), {1000, 999, 999}));
  EXPECT_EQ(nullptr, WhyRefused(open, {1001, 1000, 1000}));
}

TEST(ChannelPeerTest, ProcessesThatNobodyCanTellApartShareTheLimitOfTheirUser) {
  const Peer unknown{1000, 0, 0};
  EXPECT_EQ(nullptr, WhyRefused(Many(kMaxConnectionsPerUser - 1, unknown), unknown));
  EXPECT_NE(nullptr, WhyRefused(Many(kMaxConnectionsPerUser, unknown), unknown));
}

TEST(ChannelPeerTest, TheVfHasALimit) {
  std::vector<Peer> open;
  for (uid_t uid = 1; open.size() < kMaxConnections; ++uid) open.push_back({uid, 1, uid});
  EXPECT_NE(nullptr, WhyRefused(open, {5000, 5000, 5000}));
  open.pop_back();
  EXPECT_EQ(nullptr, WhyRefused(open, {5000, 5000, 5000}));
}

}  // namespace
}  // namespace vgpud::vfio
