// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/child_log.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <mutex>
#include <optional>
#include <thread>

#include "base/log.h"
#include "base/mapping.h"

namespace vgpud::daemon {
namespace {

constexpr Ns kPatience = std::chrono::seconds{20};

// What the sink has got: kept by its thread as well.
struct Lines {
  std::mutex mutex;
  std::condition_variable more;
  std::vector<std::string> all;
};

struct Bed {
  std::shared_ptr<Lines> lines = std::make_shared<Lines>();
  ChildLog log{[lines = lines](pid_t pid, std::string_view line) {
    const std::lock_guard lock{lines->mutex};
    lines->all.push_back(fmt::format("pid={}: {}", pid, line));
    lines->more.notify_all();
  }};
  // The end that the process has.
  UniqueFd Start(pid_t pid) {
    Pipe pipe = *MakePipe();
    log.Follow(pid, std::move(pipe.read));
    return std::move(pipe.write);
  }
  std::vector<std::string> Settled() {
    EXPECT_TRUE(log.Settle(kPatience));
    const std::lock_guard lock{lines->mutex};
    return lines->all;
  }
};

void Say(const UniqueFd& to, const std::string& text) {
  ASSERT_EQ(static_cast<ssize_t>(text.size()), ::write(to.get(), text.data(), text.size()));
}

TEST(ChildLogTest, EachLineComesWithItsPid) {
  Bed bed;
  const UniqueFd one = bed.Start(7), other = bed.Start(8);
  Say(one, "first\nsecond ");
  Say(other, "vgpud: error: vf=good: parked\n");
  Say(one, "goes on\n\n");
  bed.log.Ended(7);
  bed.log.Ended(8);
  EXPECT_EQ((std::vector<std::string>{"pid=7: first", "pid=7: second goes on", "pid=8: vgpud: error: vf=good: parked"}),
            bed.Settled());
}

TEST(ChildLogTest, LinesArriveWhileTheProcessRuns) {
  Bed bed;
  const UniqueFd process = bed.Start(7);
  Say(process, "hello\n");
  std::unique_lock lock{bed.lines->mutex};
  EXPECT_TRUE(bed.lines->more.wait_for(lock, kPatience, [&] { return !bed.lines->all.empty(); }));
  EXPECT_EQ(std::vector<std::string>{"pid=7: hello"}, bed.lines->all);
}

TEST(ChildLogTest, TheLastWordsOfADeadProcessNeedNoNewline) {
  Bed bed;
  Say(bed.Start(7), "terminate called");
  bed.log.Ended(7);
  EXPECT_EQ(std::vector<std::string>{"pid=7: terminate called"}, bed.Settled());
}

TEST(ChildLogTest, ALineWithoutEndTakesNoMoreMemoryThanALineMayHave) {
  Bed bed;
  const UniqueFd process = bed.Start(7);
  Say(process, std::string(60'000, 'x'));
  Say(process, "\nnext\n");
  bed.log.Ended(7);
  const auto lines = bed.Settled();
  ASSERT_EQ(2u, lines.size());
  EXPECT_LT(lines[0].size(), kMaxLogText + 50);
  EXPECT_EQ("pid=7: next", lines[1]);
}

TEST(ChildLogTest, WhatIsBeyondTheBudgetIsDroppedAndCounted) {
  Bed bed;
  for (pid_t pid = 1; pid <= 3; ++pid) {
    const UniqueFd process = bed.Start(pid);
    for (uint32_t i = 0; i < ChildLog::kLinesAtOnce; ++i) Say(process, fmt::format("{}\n", i));
    bed.log.Ended(pid);
  }
  const size_t lines = bed.Settled().size();
  EXPECT_GE(lines, ChildLog::kLinesAtOnce);
  EXPECT_LT(lines, 2 * ChildLog::kLinesAtOnce);
  EXPECT_EQ(3 * ChildLog::kLinesAtOnce, lines + bed.log.dropped());
}

TEST(ChildLogTest, ALineThatIsRepeatedIsSaidOnceAndHowOftenItCame) {
  Bed bed;
  const UniqueFd one = bed.Start(7), other = bed.Start(8);
  Say(one, "a\na\na\nb\n");
  bed.Settled();
  Say(one, "b\na\na\n");
  bed.log.Ended(7);
  bed.Settled();
  Say(other, "a\n");
  bed.log.Ended(8);
  EXPECT_EQ((std::vector<std::string>{"pid=7: a", "pid=7: (the same line 2 times more)", "pid=7: b",
                                      "pid=7: (the same line 1 times more)", "pid=7: a",
                                      "pid=7: (the same line 1 times more)", "pid=8: a"}),
            bed.Settled());
  EXPECT_EQ(0u, bed.log.dropped());
}

// Bytes last for all VFs of a tenant; lines that do not fit are dropped, and the next one that does says how many.
TEST(ChildLogTest, TheVfsOfATenantShareTheirBytes) {
  const auto budget = std::make_shared<LogBudget>();
  constexpr size_t kLine = 1'000;
  const auto fill = [&](const std::string& vf, const std::string& tenant) {
    size_t lines = 0;
    ChildLog log{[&](pid_t, std::string_view) { ++lines; }, Sharer{tenant.empty() ? vf : tenant}, budget};
    Pipe pipe = *MakePipe();
    log.Follow(7, std::move(pipe.read));
    for (int i = 0; i < 60; ++i) Say(pipe.write, fmt::format("{:0{}}\n", i, kLine));
    log.Ended(7);
    EXPECT_TRUE(log.Settle(kPatience));
    EXPECT_EQ(60u, lines + log.dropped());
    return lines;
  };
  constexpr size_t kMost = share_limits::kLogBytes.each_at_once / (kLine + ChildLog::kOriginBytes);
  size_t lines = 0;
  for (int vf = 0; vf < 20; ++vf) lines += fill(fmt::format("vf-{}", vf), "team-a");
  EXPECT_GE(lines, kMost);
  EXPECT_LT(lines, kMost + 60) << "some come back while this runs";
  EXPECT_EQ(60u, fill("other", "team-b"));
  EXPECT_EQ(60u, fill("nobodys", ""));
}

TEST(ChildLogTest, AProcessThatWritesWithoutEndIsReadAtABoundedRate) {
  Bed bed;
  const UniqueFd process = bed.Start(7);
  const std::string page(4096, '\n');
  uint64_t taken = 0;
  const TimePoint start = Now();
  pollfd writable{process.get(), POLLOUT, 0};
  while (Now() - start < std::chrono::milliseconds{300}) {
    if (::poll(&writable, 1, 10) != 1) continue;
    if (const ssize_t n = ::write(process.get(), page.data(), page.size()); n > 0) taken += static_cast<uint64_t>(n);
  }
  // The reserve, what the rate lets through, a full pipe and one read more.
  const double seconds = std::chrono::duration<double>(Now() - start).count();
  EXPECT_LT(static_cast<double>(taken), (1.0 + seconds) * ChildLog::kBytesPerSecond + 128 * 1024);
}

// Memory whose first touch waits until `fault` is closed.
struct SlowMemory {
  UniqueFd fault;
  Mapping page;
};
std::optional<SlowMemory> MakeSlowMemory() {
  SlowMemory slow{UniqueFd{static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK))},
                  *Mapping::Anonymous(4096)};
  uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
  uffdio_register range{{reinterpret_cast<uintptr_t>(slow.page.data()), 4096}, UFFDIO_REGISTER_MODE_MISSING, 0};
  if (!slow.fault || ::ioctl(slow.fault.get(), UFFDIO_API, &api) != 0 ||
      ::ioctl(slow.fault.get(), UFFDIO_REGISTER, &range) != 0)
    return std::nullopt;
  return slow;
}

TEST(ChildLogTest, AWriterThatHoldsThePipeForEverHoldsNobodyUp) {
  auto slow = MakeSlowMemory();
  if (!slow) GTEST_SKIP() << "no userfaultfd here";
  ::signal(SIGPIPE, SIG_IGN);
  std::thread writer;
  UniqueFd process;  // closing it takes the lock as well
  {
    Bed bed;
    process = bed.Start(7);
    writer = std::thread([&, fd = *Dup(process.get())] { (void)!::write(fd.get(), slow->page.data(), 4096); });
    // Now it holds the pipe's lock.
    pollfd faulted{slow->fault.get(), POLLIN, 0};
    ASSERT_EQ(1, ::poll(&faulted, 1, 20'000));
    ASSERT_EQ(POLLIN, faulted.revents);
    bed.log.Ended(7);
    EXPECT_FALSE(bed.log.Settle(std::chrono::milliseconds{1}));
    std::vector<UniqueFd> others;
    for (pid_t pid = 8; pid < 1000; ++pid) others.push_back(bed.Start(pid));
    size_t refused = 0;
    for (const UniqueFd& other : others) refused += ::write(other.get(), "x", 1) < 0;
    // As many as may wait, and those that the thread took with its last order.
    EXPECT_GE(refused, others.size() - 2 * ChildLog::kMostWaiting);
  }
  slow->fault.Reset();
  writer.join();
}

TEST(ChildLogTest, WhatIsBeyondALineIsThrownAwayAndOneCharacterMoreShowsIt) {
  std::vector<size_t> lengths;
  {
    ChildLog log{[&](pid_t, std::string_view line) { lengths.push_back(line.size()); }};
    Pipe pipe = *MakePipe();
    log.Follow(7, std::move(pipe.read));
    for (const size_t length : {kMaxLogText - 1, kMaxLogText, kMaxLogText + 1, kMaxLogText + 2})
      Say(pipe.write, fmt::format("{:x<{}}\n", length, length));
    log.Ended(7);
    EXPECT_TRUE(log.Settle(kPatience));
  }
  EXPECT_EQ((std::vector<size_t>{kMaxLogText - 1, kMaxLogText, kMaxLogText + 1, kMaxLogText + 1}), lengths);
}

TEST(ChildLogTest, EmptyLinesAreNone) {
  Bed bed;
  const UniqueFd process = bed.Start(7);
  Say(process, "\n\na\n\n");
  bed.log.Ended(7);
  EXPECT_EQ(std::vector<std::string>{"pid=7: a"}, bed.Settled());
  EXPECT_EQ(0u, bed.log.dropped());
}

TEST(ChildLogTest, AProcessThatWasNotFollowedHasNothingToSay) {
  Bed bed;
  bed.log.Ended(7);
  const UniqueFd process = bed.Start(8);
  bed.log.Ended(8);
  bed.log.Ended(8);
  EXPECT_TRUE(bed.Settled().empty());
}

// The rest of a full pipe, 64 KiB, is read at the end, whatever a process has made of its pipe.
TEST(ChildLogTest, AFullPipeIsReadToItsEnd) {
  Bed bed;
  const UniqueFd process = bed.Start(7);
  std::string text(65'536, 'x');
  for (size_t at = 199; at < text.size(); at += 200) {
    text[at - 1] = at % 400 < 200 ? 'a' : 'b';  // no line is that before it
    text[at] = '\n';
  }
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t n = ::write(process.get(), text.data() + sent, text.size() - sent);
    if (n > 0) sent += static_cast<size_t>(n);
  }
  bed.log.Ended(7);
  EXPECT_EQ(328u, bed.Settled().size());
}

TEST(ChildLogTest, TheUsualLimits) {
  EXPECT_EQ(50u, ChildLog::kLinesPerSecond);
  EXPECT_EQ(500u, ChildLog::kLinesAtOnce);
  EXPECT_EQ(262'144u, ChildLog::kBytesPerSecond);
  EXPECT_EQ(128u, ChildLog::kMostWaiting);
  EXPECT_EQ(std::chrono::milliseconds{50}, Ns{ChildLog::kLastWords});
}

}  // namespace
}  // namespace vgpud::daemon
