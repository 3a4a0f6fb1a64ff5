// SPDX-License-Identifier: Apache-2.0
// docs/tenants.md lists all limits as they are.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "vgpud/tenants/tenants.h"

namespace vgpud::daemon {
namespace {

std::string Describe(const ResourceRow& row) {
  const std::string each = row.resource == Resource::kVfs ? ""
                           : row.together                 ? fmt::format("`{}{}`", row.key, kEachSuffix)
                                                          : fmt::format("`{}`", row.key);
  return fmt::format("| `{}` | {} | {} | {} |", row.key, row.together ? "yes" : "", each, row.about);
}

TEST(LimitsDocumentTest, ListsThemAll) {
  const char* path = std::getenv("VGPUD_TENANTS_MD");
  if (path == nullptr) GTEST_SKIP() << "VGPUD_TENANTS_MD says where the page is";
  std::ifstream page(path);
  ASSERT_TRUE(page) << path;
  std::multiset<std::string> rows;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("| key | together")) inside = true;
    if (!line.starts_with('|')) inside = false;
    if (inside && line.starts_with("| `")) rows.insert(line);
  }
  std::multiset<std::string> wanted;
  for (const ResourceRow& row : kResourceRows) wanted.insert(Describe(row));
  EXPECT_EQ(wanted, rows);
}

}  // namespace
}  // namespace vgpud::daemon
