// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/readiness.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/fd.h"

namespace vgpud::daemon {
namespace {

namespace fs = std::filesystem;

class ReadinessTest : public testing::Test {
 protected:
  ReadinessTest() {
    std::string pattern = "/tmp/vgpud-ready-XXXXXX";
    EXPECT_NE(nullptr, ::mkdtemp(pattern.data()));
    directory_ = pattern;
  }
  ~ReadinessTest() override {
    ::unsetenv("NOTIFY_SOCKET");
    fs::remove_all(directory_);
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
  std::string directory_;
  UniqueFd manager_;
};

TEST_F(ReadinessTest, TheManagerIsToldOfTheStartAndTheEnd) {
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

TEST_F(ReadinessTest, AnAddressThatIsNoneIsIgnored) {
  Listen(directory_ + "/notify");
  for (const std::string& name : {std::string("relative"), std::string(), "/" + std::string(107, 'x')}) {
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
    NotifyReady(-1);
  }
  ::unsetenv("NOTIFY_SOCKET");
  NotifyReady(-1);
  EXPECT_EQ("", Told());
}

TEST_F(ReadinessTest, TheDescriptorGetsOneByteAndIsClosed) {
  Pipe pipe = *MakePipe();
  NotifyReady(pipe.write.Release());
  char bytes[4];
  EXPECT_EQ(1, ::read(pipe.read.get(), bytes, sizeof bytes));
  EXPECT_EQ('1', bytes[0]);
  EXPECT_EQ(0, ::read(pipe.read.get(), bytes, sizeof bytes)) << "the end of the file";
}

}  // namespace
}  // namespace vgpud::daemon
