// SPDX-License-Identifier: Apache-2.0
#include "vfio/wire/frame_reader.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <string>

#include "base/message.h"

namespace vgpud::vfio {
namespace {

class FrameReaderTest : public testing::Test {
 protected:
  FrameReaderTest() {
    int ends[2];
    EXPECT_EQ(0, ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    mine_ = UniqueFd{ends[0]};
    theirs_ = UniqueFd{ends[1]};
  }
  static std::string Message(uint16_t id, const std::string& body) {
    const wire::Header head{id, 9, static_cast<uint32_t>(sizeof head + body.size()), 0, 0};
    return std::string(reinterpret_cast<const char*>(&head), sizeof head) + body;
  }
  void Send(const std::string& bytes, size_t fds = 0) {
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(64 * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    const UniqueFd event = *MakeEventFd();
    if (fds != 0) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(fds * sizeof(int));
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(fds * sizeof(int));
      for (size_t i = 0; i < fds; ++i) {
        const int fd = event.get();
        std::memcpy(CMSG_DATA(header) + i * sizeof(int), &fd, sizeof fd);
      }
    }
    ASSERT_EQ(static_cast<ssize_t>(bytes.size()), ::sendmsg(theirs_.get(), &message, 0));
  }
  FrameReader::Got Fill() { return reader_.Fill(mine_.get()); }
  FrameReader::Cut Next() { return reader_.Next(&frame_); }
  std::string Body() const { return {reinterpret_cast<const char*>(frame_.body.data()), frame_.body.size()}; }

  UniqueFd mine_;
  UniqueFd theirs_;
  FrameReader reader_;
  Frame frame_;
};

TEST_F(FrameReaderTest, PutsBytesTogether) {
  const std::string bytes = Message(7, "hello") + Message(8, "");
  for (const char c : bytes) {
    EXPECT_EQ(FrameReader::Cut::kPartial, Next());
    Send(std::string(1, c));
    ASSERT_EQ(FrameReader::Got::kData, Fill());
    if (Next() != FrameReader::Cut::kFrame) continue;
    EXPECT_EQ(frame_.header.id == 7 ? "hello" : "", Body());
  }
  EXPECT_EQ(8, frame_.header.id);
  EXPECT_EQ(FrameReader::Got::kNothing, Fill());
}

TEST_F(FrameReaderTest, TakesManyMessagesInOneRead) {
  std::string bytes;
  for (uint16_t i = 0; i < 1000; ++i) bytes += Message(i, std::to_string(i));
  Send(bytes);
  uint16_t next = 0;
  while (Fill() == FrameReader::Got::kData)
    for (; Next() == FrameReader::Cut::kFrame; ++next) {
      ASSERT_EQ(next, frame_.header.id);
      ASSERT_EQ(std::to_string(next), Body());
    }
  EXPECT_EQ(1000, next);
}

TEST_F(FrameReaderTest, LargestMessageInManyReads) {
  const std::string body(wire::kMaxBytes - sizeof(wire::Header), 'x');
  for (int round = 0; round < 10; ++round) {
    const std::string bytes = Message(1, body);
    FrameReader::Cut cut = FrameReader::Cut::kPartial;
    for (size_t at = 0; at < bytes.size(); at += 5000) {
      Send(bytes.substr(at, 5000));
      ASSERT_EQ(FrameReader::Got::kData, Fill());
      cut = Next();
    }
    ASSERT_EQ(FrameReader::Cut::kFrame, cut);
    EXPECT_EQ(body, Body());
  }
}

TEST_F(FrameReaderTest, SizesThatCannotBe) {
  for (const uint32_t bytes : {0u, 15u, wire::kMaxBytes + 1, ~0u}) {
    FrameReader reader;
    const wire::Header head{1, 9, bytes, 0, 0};
    Send(std::string(reinterpret_cast<const char*>(&head), sizeof head));
    ASSERT_EQ(FrameReader::Got::kData, reader.Fill(mine_.get()));
    EXPECT_EQ(FrameReader::Cut::kBroken, reader.Next(&frame_)) << bytes;
  }
}

TEST_F(FrameReaderTest, DescriptorsGoToTheirMessage) {
  Send(Message(1, "plain"));
  Send(Message(2, "with"), 1);
  Send(Message(3, "after"));
  Send(Message(4, "two"), 2);
  std::map<int, size_t> fds;
  while (Fill() == FrameReader::Got::kData)
    while (Next() == FrameReader::Cut::kFrame) fds[frame_.header.id] = frame_.fds.size();
  EXPECT_EQ((std::map<int, size_t>{{1, 0}, {2, 1}, {3, 0}, {4, 2}}), fds);
}

TEST_F(FrameReaderTest, SizesThatCanBe) {
  for (const size_t bytes : {sizeof(wire::Header), sizeof(wire::Header) + 1, size_t{wire::kMaxBytes}}) {
    Send(Message(7, std::string(bytes - sizeof(wire::Header), 'x')));
    ASSERT_EQ(FrameReader::Got::kData, Fill());
    ASSERT_EQ(FrameReader::Cut::kFrame, Next()) << bytes;
    EXPECT_EQ(bytes, sizeof(wire::Header) + frame_.body.size());
    EXPECT_EQ(FrameReader::Cut::kPartial, Next());
  }
}

// Whatever their sizes are, and wherever in the reader's memory they lie.
TEST_F(FrameReaderTest, AStreamOfAllSizesComesOutAsItWentIn) {
  size_t sent = 0;
  uint16_t next = 0;
  for (int round = 0; round < 400; ++round) {
    const std::string message =
        Message(static_cast<uint16_t>(round), std::string((round * 7919) % 60'000, 'a' + round % 26));
    sent += message.size();
    const size_t half = message.size() * (round % 5) / 5;
    if (half != 0) {
      Send(message.substr(0, half));
      ASSERT_EQ(FrameReader::Got::kData, Fill());
    }
    Send(message.substr(half));
    if (round % 3 == 0) continue;  // two in one read
    ASSERT_EQ(FrameReader::Got::kData, Fill());
    while (Next() == FrameReader::Cut::kFrame) {
      ASSERT_EQ(next, frame_.header.id);
      ASSERT_EQ(std::string((next * 7919) % 60'000, 'a' + next % 26), Body());
      ++next;
    }
  }
  EXPECT_GT(sent, 10'000'000u);
  EXPECT_GE(next, 398);
}

TEST_F(FrameReaderTest, AMessageHasSixteenDescriptorsAtMost) {
  for (const size_t count : {1, 15, 16, 17}) {
    Send(Message(1, "x"), count);
    ASSERT_EQ(FrameReader::Got::kData, Fill());
    ASSERT_EQ(FrameReader::Cut::kFrame, Next());
    EXPECT_EQ(std::min<size_t>(count, 16), frame_.fds.size());
    EXPECT_EQ(count > 16, frame_.fds_cut) << count;
  }
  Send(Message(2, "none"));
  ASSERT_EQ(FrameReader::Got::kData, Fill());
  ASSERT_EQ(FrameReader::Cut::kFrame, Next());
  EXPECT_TRUE(frame_.fds.empty());
  EXPECT_FALSE(frame_.fds_cut);
}

// Of one that is not finished, and the one behind it.
TEST_F(FrameReaderTest, ThirtyTwoDescriptorsMayWait) {
  for (const size_t last : {16, 17}) {
    const std::string first = Message(1, "first"), second = Message(2, "second");
    Send(first.substr(0, 4), 8);
    ASSERT_EQ(FrameReader::Got::kData, Fill());
    Send(first.substr(4), 8);
    ASSERT_EQ(FrameReader::Got::kData, Fill());
    Send(second, last);
    ASSERT_EQ(FrameReader::Got::kData, Fill());
    ASSERT_EQ(FrameReader::Cut::kFrame, Next());
    EXPECT_EQ(16u, frame_.fds.size());
    EXPECT_FALSE(frame_.fds_cut);
    ASSERT_EQ(FrameReader::Cut::kFrame, Next());
    EXPECT_EQ(last > 16 ? 0u : 16u, frame_.fds.size()) << "too many are closed at once";
    EXPECT_EQ(last > 16, frame_.fds_cut);
  }
}

TEST_F(FrameReaderTest, ASocketIsNotKeptAndMissed) {
  const SocketPair pair = *MakeSeqpacketPair();
  const UniqueFd event = *MakeEventFd();
  const std::string message = Message(1, "x");
  const int fds[] = {event.get(), pair.a.get()};
  ASSERT_TRUE(SendMessage(theirs_.get(), std::as_bytes(std::span{message}), fds));
  ASSERT_EQ(FrameReader::Got::kData, Fill());
  ASSERT_EQ(FrameReader::Cut::kFrame, Next());
  EXPECT_EQ(1u, frame_.fds.size());
  EXPECT_TRUE(frame_.fds_cut);
}

TEST_F(FrameReaderTest, DescriptorsOfAMessageInPieces) {
  const std::string bytes = Message(1, "in pieces");
  Send(bytes.substr(0, 3), 1);
  Send(bytes.substr(3, 10));
  Send(bytes.substr(13), 1);
  Send(Message(2, ""));
  size_t frames = 0;
  while (Fill() == FrameReader::Got::kData)
    for (; Next() == FrameReader::Cut::kFrame; ++frames) EXPECT_EQ(frame_.header.id == 1 ? 2u : 0u, frame_.fds.size());
  EXPECT_EQ(2u, frames);
}

TEST_F(FrameReaderTest, TooManyDescriptorsAreMarkedAndClosed) {
  const int before = ::dup(0);
  ::close(before);
  Send(Message(1, "x"), 40);
  const std::string pieces = Message(2, std::string(100, 'y'));
  for (const char c : pieces) Send(std::string(1, c), 4);
  size_t frames = 0;
  while (Fill() == FrameReader::Got::kData)
    for (; Next() == FrameReader::Cut::kFrame; ++frames) {
      EXPECT_TRUE(frame_.fds_cut);
      EXPECT_LE(frame_.fds.size(), wire::kMaxFds);
    }
  EXPECT_EQ(2u, frames);
  frame_.fds.clear();
  const int after = ::dup(0);
  ::close(after);
  EXPECT_EQ(before, after) << "descriptors leaked";
}

TEST_F(FrameReaderTest, AClientThatSendsItsOwnEndStillGoesWhenItGoes) {
  const std::string half = Message(1, "never finished").substr(0, 20);
  const int own[] = {theirs_.get()};
  ASSERT_TRUE(SendMessage(theirs_.get(), std::as_bytes(std::span{half}), own));
  EXPECT_EQ(FrameReader::Got::kData, Fill());
  EXPECT_EQ(FrameReader::Cut::kPartial, Next());
  theirs_.Reset();
  EXPECT_EQ(FrameReader::Got::kEnd, Fill());
}

TEST_F(FrameReaderTest, EndOfStream) {
  Send(Message(1, "last"));
  theirs_.Reset();
  EXPECT_EQ(FrameReader::Got::kData, Fill());
  EXPECT_EQ(FrameReader::Cut::kFrame, Next());
  EXPECT_EQ(FrameReader::Got::kEnd, Fill());
}

}  // namespace
}  // namespace vgpud::vfio
