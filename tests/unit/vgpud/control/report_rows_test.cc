// SPDX-License-Identifier: Apache-2.0
// Rows of a usage report that stand for many VFs.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "vgpud/control/stats_json.h"

namespace vgpud::daemon {
namespace {

using Json = nlohmann::json;

TEST(ReportRowsTest, VfsThatAreAddedUpHaveANumberAndNoUuid) {
  History::Vf all{"sum/team-a", History::kBriefName, {}, true, {}, "team-a"};
  all.usage.account.received_ns = 1000;
  const Json row = Json::parse(ReportRows({{"2026-11-20", all, 12}}, ""));
  EXPECT_EQ("(short-lived)", row["name"]);
  EXPECT_EQ("", row["uuid"]);
  EXPECT_EQ(12, row["vfs"]);
  EXPECT_EQ("team-a", row["tenant"]);
  EXPECT_EQ(1000, row["received_ns"]);
}

}  // namespace
}  // namespace vgpud::daemon
