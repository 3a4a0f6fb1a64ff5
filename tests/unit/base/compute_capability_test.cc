// SPDX-License-Identifier: Apache-2.0
#include "base/compute_capability.h"

#include <gmock/gmock.h>

namespace vgpud {
namespace {

constexpr const char* kList = "7.5, 8.0, 8.6, 8.9, 9.0, 10.0, 12.0, 12.1";

TEST(ComputeCapability, IsFoundByItsName) {
  for (const ComputeCapability& c : kComputeCapabilities) {
    const auto found = FindComputeCapability(c.name);
    ASSERT_TRUE(found) << c.name;
    EXPECT_EQ(&c, *found);
    EXPECT_EQ(c.name, CapabilityName(c.number));
  }
  EXPECT_EQ("7.5", kDefaultCapability.name);
  EXPECT_EQ(kList, ListComputeCapabilities());
}

TEST(ComputeCapability, AnythingElseIsRefusedWithTheList) {
  for (const char* name : {"", "7", "7.50", "75", "sm_75", "8.7", "10.3", "9.0 ", " 9.0", "9.0a"}) {
    const auto found = FindComputeCapability(name);
    ASSERT_FALSE(found) << name;
    EXPECT_EQ(std::errc::invalid_argument, found.error().code);
    EXPECT_THAT(found.error().context, testing::HasSubstr(kList));
    EXPECT_THAT(found.error().context, testing::HasSubstr(std::string("\"") + name + "\""));
  }
}

}  // namespace
}  // namespace vgpud
