// SPDX-License-Identifier: Apache-2.0
#include "vgpud/service/reports.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "base/fd.h"
#include "tests/scratch_dir.h"

namespace vgpud::daemon {
namespace {

class ServiceReportsTest : public testing::Test {
 protected:
  ServiceReportsTest() {
    const std::string path = directory_ + "/notify";
    manager_ = UniqueFd{::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    sockaddr_un at{.sun_family = AF_UNIX, .sun_path = {}};
    path.copy(at.sun_path, sizeof at.sun_path - 1);
    EXPECT_EQ(0, ::bind(manager_.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at));
    ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  }
  ~ServiceReportsTest() override {
    for (const char* variable : {"NOTIFY_SOCKET", "WATCHDOG_USEC"}) ::unsetenv(variable);
  }
  std::vector<std::string> Told() const {
    std::vector<std::string> all;
    char text[128];
    for (ssize_t n = 0; (n = ::recv(manager_.get(), text, sizeof text, 0)) > 0;)
      all.emplace_back(text, static_cast<size_t>(n));
    return all;
  }
  std::unique_ptr<ServiceReports> Start() {
    return ServiceReports::Start(loop_, {[this] { return status_; },
                                         [this](std::function<void()> done) {
                                           asked_.push_back(std::move(done));
                                           if (asked_.size() == stop_at_) loop_.Stop();
                                         }});
  }

  EventLoop loop_;
  UniqueFd manager_;
  const ScratchDir scratch_;
  const std::string directory_ = scratch_.path();
  std::string status_ = "one VF";
  std::vector<std::function<void()>> asked_;
  size_t stop_at_ = 0;
};

using Lines = std::vector<std::string>;

TEST_F(ServiceReportsTest, OnlyAnAnswerOfTheSchedulersSaysThatItIsAlive) {
  ::setenv("WATCHDOG_USEC", "4000", 1);
  const auto reports = Start();
  ASSERT_EQ(1u, asked_.size());
  EXPECT_EQ((Lines{"STATUS=one VF"}), Told()) << "asked, and not answered";
  asked_[0]();
  EXPECT_EQ((Lines{"WATCHDOG=1"}), Told());
  stop_at_ = 2;
  loop_.Run();
  EXPECT_EQ((Lines{}), Told()) << "asked again: what was answered once does not count again";
  const auto stop = loop_.Timer([this] { loop_.Stop(); });
  stop->Arm(std::chrono::milliseconds{20});
  loop_.Run();
  EXPECT_EQ(2u, asked_.size()) << "nobody is asked before he has answered";
  EXPECT_EQ((Lines{}), Told());
  asked_[1]();
  EXPECT_EQ((Lines{"WATCHDOG=1"}), Told());
}

TEST_F(ServiceReportsTest, AnAnswerThatComesAfterItsEndIsHarmless) {
  ::setenv("WATCHDOG_USEC", "4000", 1);
  auto reports = Start();
  reports.reset();
  asked_[0]();
}

TEST_F(ServiceReportsTest, AChangedStatusIsToldOnceAndWithoutAWatchdogNobodyIsAsked) {
  const auto reports = Start();
  EXPECT_EQ((Lines{"STATUS=one VF"}), Told());
  EXPECT_TRUE(asked_.empty());
}

TEST_F(ServiceReportsTest, WithoutAManagerThereIsNone) {
  ::unsetenv("NOTIFY_SOCKET");
  EXPECT_EQ(nullptr, Start());
}

}  // namespace
}  // namespace vgpud::daemon
