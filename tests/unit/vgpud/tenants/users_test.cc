// SPDX-License-Identifier: Apache-2.0
// Who may do what: how it is written, and what follows for who connects.
#include "vgpud/tenants/users.h"

#include <gtest/gtest.h>

namespace vgpud::daemon {
namespace {

constexpr uid_t kOwn = 990;

Access AccessOf(std::initializer_list<const char*> settings, May others = May::kManage) {
  Access access{{}, others};
  for (const char* setting : settings) {
    const auto set = SetInUsers(&access.users, setting);
    EXPECT_TRUE(set) << setting << ": " << set.error().context;
  }
  return access;
}
std::string WhyNotSet(std::string_view setting) {
  Users some;
  const auto set = SetInUsers(&some, setting);
  return set ? "" : set.error().context;
}

TEST(UsersTest, NamedOnesMayWhatIsSaidAndOthersWhatOthersMay) {
  const Access access = AccessOf(
      {"1001.may=manage", "1002.may=look", "1003.may=manage", "1003.tenant=team-a", "1004.may=nothing"}, May::kLook);
  ASSERT_TRUE(CheckAccess(access, {"team-a"}));
  EXPECT_EQ(May::kManage, RightsOf(access, 1001, kOwn).may);
  EXPECT_EQ("", RightsOf(access, 1001, kOwn).tenant);
  EXPECT_EQ(May::kLook, RightsOf(access, 1002, kOwn).may);
  EXPECT_EQ("team-a", RightsOf(access, 1003, kOwn).tenant);
  EXPECT_EQ(May::kNothing, RightsOf(access, 1004, kOwn).may);
  EXPECT_EQ(May::kLook, RightsOf(access, 1005, kOwn).may);
  EXPECT_EQ(May::kLook, RightsOf(access, static_cast<uid_t>(-1), kOwn).may) << "one whom the kernel does not know";
}

TEST(UsersTest, RootAndTheDaemonsOwnUserAreNeverLockedOut) {
  const Access access = AccessOf({"0.may=nothing", "990.may=look"}, May::kNothing);
  EXPECT_EQ(May::kManage, RightsOf(access, 0, kOwn).may);
  EXPECT_EQ(May::kManage, RightsOf(access, kOwn, kOwn).may);
  EXPECT_EQ(May::kLook, RightsOf(access, kOwn, 5).may);
}

TEST(UsersTest, NamesAreThoseOfThisHost) {
  const Access access = AccessOf({"nobody.may=look"});
  ASSERT_EQ(1U, access.users.size());
  EXPECT_EQ(65534U, access.users[0].uid);
  EXPECT_EQ("this host knows no user \"no-such-user-here\": give a name that `getent passwd` lists, or a number",
            WhyNotSet("no-such-user-here.may=look"));
}

TEST(UsersTest, WhatIsWrongIsSaid) {
  EXPECT_NE("", WhyNotSet("1001.may=everything"));
  EXPECT_EQ("user 1001 has no key \"mya\": did you mean may?", WhyNotSet("1001.mya=look"));
  EXPECT_NE("", WhyNotSet("a b.may=look"));
  EXPECT_NE("", WhyNotSet("1001.tenant=")) << "that would be everything";
  EXPECT_NE("", WhyNotSet(".may=look"));
  EXPECT_NE("", WhyNotSet("4294967295.may=look")) << "nobody has that number";
  EXPECT_NE("", WhyNotSet("1001"));
  const auto check = [](std::initializer_list<const char*> settings) {
    const auto checked = CheckAccess(AccessOf(settings), {"team-a"});
    return checked ? "" : checked.error().context;
  };
  EXPECT_EQ("", check({"1001.may=look"}));
  EXPECT_NE(std::string::npos, check({"1001.tenant=team-a"}).find("say what he may"));
  EXPECT_NE(std::string::npos, check({"1001.may=manage", "1001.tenant=team-b"}).find("did you mean team-a"));
  EXPECT_NE(std::string::npos, check({"nobody.may=look", "65534.may=manage"}).find("name each once"));
}

}  // namespace
}  // namespace vgpud::daemon
