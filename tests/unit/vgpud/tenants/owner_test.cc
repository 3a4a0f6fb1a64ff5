// SPDX-License-Identifier: Apache-2.0
#include "vgpud/tenants/owner.h"

#include <gtest/gtest.h>

namespace vgpud::daemon {
namespace {

VfSpec Spec(const std::string& tenant, std::optional<uid_t> user) {
  VfSpec spec;
  spec.name = "a";
  spec.tenant = tenant;
  spec.user = user;
  return spec;
}

TEST(OwnerTest, IsTheTenantElseTheUserWhoMadeItElseRoot) {
  EXPECT_EQ("team-a", OwnerOf(Spec("team-a", {})));
  EXPECT_EQ("team-a", OwnerOf(Spec("team-a", 1000)));
  EXPECT_EQ("user 1000", OwnerOf(Spec("", 1000)));
  EXPECT_EQ("", OwnerOf(Spec("", {})));
  EXPECT_TRUE(IsUser("user 1000"));
  EXPECT_FALSE(IsUser("team-a"));
  EXPECT_FALSE(IsUser(""));
}

TEST(OwnerTest, AllVfsOfAnOwnerShareOneShare) {
  EXPECT_EQ("tenant team-a", SharerOf(Spec("team-a", {})).name);
  EXPECT_EQ("user 1000", SharerOf(Spec("", 1000)).name);
  EXPECT_EQ("vf a", SharerOf(Spec("", {})).name) << "of root, who needs no bound";
}

TEST(OwnerTest, UsersAreThoseOfATenantWithUsersOrOne) {
  EXPECT_EQ("team-a", UsersOf(Spec("team-a", {})));
  EXPECT_EQ("", UsersOf(Spec("slurm", {}))) << "whose VFs root makes";
  EXPECT_EQ("user 1000", UsersOf(Spec("", 1000)));
  EXPECT_EQ("", UsersOf(Spec("", {})));
}

}  // namespace
}  // namespace vgpud::daemon
