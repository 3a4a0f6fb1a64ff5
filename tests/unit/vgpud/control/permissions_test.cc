// SPDX-License-Identifier: Apache-2.0
// Who may give a new VF to whom.
#include "vgpud/control/permissions.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/fd.h"

namespace vgpud::daemon {
namespace {

class OwnerTest : public testing::Test {
 protected:
  // The client at the other end is this process.
  const SocketPair pair_ = std::move(*MakeSeqpacketPair());
  std::optional<ApiError> WhyNot(const SocketAccess& owner, bool privileged = false) const {
    return WhyNotOwner(owner, privileged, pair_.a.get());
  }
};

TEST_F(OwnerTest, WithPrivilegesAnybody) { EXPECT_FALSE(WhyNot({.user = 61001, .group = 61101}, true)); }

TEST_F(OwnerTest, WithoutThemselvesAndTheirGroups) {
  EXPECT_FALSE(WhyNot({}));
  EXPECT_FALSE(WhyNot({.user = ::geteuid(), .group = {}}));
  EXPECT_FALSE(WhyNot({.user = {}, .group = ::getegid()}));
  EXPECT_FALSE(WhyNot({.user = ::geteuid(), .group = ::getegid()}));
  const auto user = WhyNot({.user = 61001, .group = ::getegid()});
  ASSERT_TRUE(user);
  EXPECT_EQ("owner_uid", user->field);
  EXPECT_EQ(ErrorKind::kForbidden, user->kind);
  const auto group = WhyNot({.user = ::geteuid(), .group = 61101});
  ASSERT_TRUE(group);
  EXPECT_EQ("owner_gid", group->field);
}

TEST_F(OwnerTest, WhoIsNotKnownMayNothing) {
  EXPECT_TRUE(WhyNotOwner({.user = ::geteuid(), .group = {}}, false, -1));
  EXPECT_TRUE(WhyNotOwner({.user = {}, .group = ::getegid()}, false, -1));
}

}  // namespace
}  // namespace vgpud::daemon
