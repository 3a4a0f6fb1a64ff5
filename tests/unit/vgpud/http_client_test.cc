// SPDX-License-Identifier: Apache-2.0
// vgpuctl's deadline, with a socket where nobody is let in.
#include "tools/vgpuctl/http_client.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/fd.h"
#include "tests/scratch_dir.h"

namespace vgpud::tools {
namespace {

using namespace std::chrono_literals;

// A listening socket whose queue is full, and that nobody accepts from.
class FullSocketTest : public testing::Test {
 protected:
  FullSocketTest() {
    listener_ = *ListenUnix(path(), SOCK_STREAM);
    EXPECT_EQ(0, ::listen(listener_.get(), 1));
    for (auto next = ConnectUnix(path(), SOCK_STREAM | SOCK_NONBLOCK); next;
         next = ConnectUnix(path(), SOCK_STREAM | SOCK_NONBLOCK))
      waiting_.push_back(std::move(*next));
  }
  std::string path() const { return directory_ + "/control.sock"; }

  const ScratchDir scratch_;
  const std::string directory_ = scratch_.path();
  UniqueFd listener_;
  std::vector<UniqueFd> waiting_;
};

TEST_F(FullSocketTest, TheDeadlineHoldsFromTheFirstMomentOn) {
  const auto reply = HttpRequest(path(), "GET", "/v1/vfs", "", 50ms);
  ASSERT_FALSE(reply);
  EXPECT_EQ(std::errc::timed_out, reply.error().code);
  EXPECT_EQ("vgpud did not let this client in within 50 ms", reply.error().context);
  const auto download = HttpDownload(
      path(), "/v1/trace", [](std::string_view) { return Result<void>(); }, 50ms, 50ms);
  ASSERT_FALSE(download);
  EXPECT_EQ(std::errc::timed_out, download.error().code);
}

TEST_F(FullSocketTest, WhoIsLetInButNotAnsweredHasTheRestOfTheSameTime) {
  waiting_.clear();
  while (UniqueFd{::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK)}) {
  }
  const auto reply = HttpRequest(path(), "GET", "/v1/vfs", "", 50ms);
  ASSERT_FALSE(reply);
  EXPECT_EQ("vgpud did not answer within 50 ms", reply.error().context);
}

TEST_F(FullSocketTest, WhoHasASocketOfItsOwnIsNotBehindTheOthers) {
  UniqueFd own = *ListenUnix(directory_ + "/own.sock", SOCK_STREAM);
  const auto reply = HttpRequest(path(), "GET", "/v1/vfs", "", 50ms);
  ASSERT_FALSE(reply);
  EXPECT_EQ("vgpud did not answer within 50 ms", reply.error().context) << "it was let in";
  EXPECT_TRUE(UniqueFd{::accept4(own.get(), nullptr, nullptr, SOCK_NONBLOCK)});
  own.Reset();
  const auto again = HttpRequest(path(), "GET", "/v1/vfs", "", 50ms);
  ASSERT_FALSE(again);
  EXPECT_EQ("vgpud did not let this client in within 50 ms", again.error().context) << "one that is left over";
}

TEST(HttpClientTest, WhereNobodyListensIsSaidAtOnce) {
  for (const std::string& path : {std::string("/nowhere/control.sock"), std::string(200, 'x')}) {
    const auto reply = HttpRequest(path, "GET", "/v1/vfs", "", 1h);
    ASSERT_FALSE(reply);
    EXPECT_EQ(std::errc::connection_refused, reply.error().code);
  }
}

}  // namespace
}  // namespace vgpud::tools
