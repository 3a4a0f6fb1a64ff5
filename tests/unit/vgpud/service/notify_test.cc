// SPDX-License-Identifier: Apache-2.0
#include "vgpud/service/notify.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/fd.h"
#include "tests/scratch_dir.h"

namespace vgpud::daemon {
namespace {

class NotifyTest : public testing::Test {
 protected:
  ~NotifyTest() override {
    for (const char* variable : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) ::unsetenv(variable);
  }
  // The service manager's socket; '@' first: an abstract one.
  void Listen(const std::string& name) {
    manager_ = UniqueFd{::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::memcpy(at.sun_path, name.data(), name.size());
    if (name[0] == '@') at.sun_path[0] = '\0';
    ASSERT_EQ(0, ::bind(manager_.get(), reinterpret_cast<const sockaddr*>(&at),
                        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())));
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  std::string Told() {
    char text[64];
    const ssize_t n = ::recv(manager_.get(), text, sizeof text, 0);
    return n > 0 ? std::string(text, static_cast<size_t>(n)) : "";
  }
  const ScratchDir scratch_;
  const std::string directory_ = scratch_.path();
  UniqueFd manager_;
};

TEST_F(NotifyTest, TheManagerIsToldOfTheStartAndTheEnd) {
  for (const std::string& name :
       {directory_ + "/notify", "@" + directory_, directory_ + "/" + std::string(107 - directory_.size() - 1, 'x')}) {
    Listen(name);
    NotifyReady(-1);
    EXPECT_EQ("READY=1", Told()) << name;
    NotifyStopping();
    EXPECT_EQ("STOPPING=1", Told()) << name;
    EXPECT_EQ("", Told());
  }
}

TEST_F(NotifyTest, WhatElseTheManagerIsTold) {
  Listen(directory_ + "/notify");
  const uint64_t before = MonotonicNs() / 1000;
  NotifyReloading();
  const std::string told = Told();
  const std::string begin = "RELOADING=1\nMONOTONIC_USEC=";
  ASSERT_EQ(0u, told.find(begin));
  EXPECT_GE(std::stoull(told.substr(begin.size())), before);
  NotifyStatus("two VFs\nREADY=1");
  EXPECT_EQ("STATUS=two VFs", Told()) << "one line";
  NotifyAlive();
  EXPECT_EQ("WATCHDOG=1", Told());
}

TEST_F(NotifyTest, TheWatchdogIsForThisProcessAndANumber) {
  ::setenv("WATCHDOG_USEC", "30000000", 1);
  EXPECT_EQ(std::nullopt, WatchdogInterval()) << "nobody listens";
  Listen(directory_ + "/notify");
  EXPECT_EQ(std::chrono::seconds{30}, WatchdogInterval());
  ::setenv("WATCHDOG_PID", std::to_string(::getpid()).c_str(), 1);
  EXPECT_EQ(std::chrono::seconds{30}, WatchdogInterval());
  ::setenv("WATCHDOG_PID", "1", 1);
  EXPECT_EQ(std::nullopt, WatchdogInterval());
  ::unsetenv("WATCHDOG_PID");
  for (const char* text : {"0", "", "30s", "-1", "99999999999999999999"}) {
    ::setenv("WATCHDOG_USEC", text, 1);
    EXPECT_EQ(std::nullopt, WatchdogInterval()) << text;
  }
}

TEST_F(NotifyTest, AnAddressThatIsNoneIsIgnored) {
  Listen(directory_ + "/notify");
  for (const std::string& name : {std::string("relative"), std::string(), "/" + std::string(107, 'x')}) {
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
    NotifyReady(-1);
  }
  ::unsetenv("NOTIFY_SOCKET");
  NotifyReady(-1);
  EXPECT_EQ("", Told());
}

TEST_F(NotifyTest, TheDescriptorGetsOneByteAndIsClosed) {
  Pipe pipe = *MakePipe();
  NotifyReady(pipe.write.Release());
  char bytes[4];
  EXPECT_EQ(1, ::read(pipe.read.get(), bytes, sizeof bytes));
  EXPECT_EQ('1', bytes[0]);
  EXPECT_EQ(0, ::read(pipe.read.get(), bytes, sizeof bytes)) << "the end of the file";
}

}  // namespace
}  // namespace vgpud::daemon
