// SPDX-License-Identifier: Apache-2.0
// docs/scheduling.md lists the knobs of the scheduler's table: range, default and the policies that heed them.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "sched/knobs.h"
#include "vgpud/model/settings.h"

namespace vgpud::daemon {
namespace {

std::string Text(const KnobRow& row, uint64_t value) {
  return row.unit == KnobUnit::kPart ? fmt::format("{:g}", static_cast<double>(value) / kWhole)
                                     : fmt::format("{}", value);
}

uint64_t DefaultOf(const KnobRow& row) {
  if (row.knob == Knob::kGroupWeight) return DefaultOptions().group_weights[0];
  return row.per_vf ? KnobOf(VfView{}, row.knob) : KnobOf(DefaultOptions(), row.knob);
}

// What the second cell begins with. A default outside of the range is none, and told in words.
std::string RangeAndDefault(const KnobRow& row) {
  const uint64_t value = DefaultOf(row);
  return fmt::format("{}..{}, {}", Text(row, row.min), Text(row, row.max),
                     CheckKnob(row.knob, value) ? Text(row, value) : "default: ");
}

std::string PoliciesOf(const KnobRow& row) {
  std::string names;
  bool all = true;
  for (const PolicyRow& policy : Policies()) {
    const bool heeds = policy.Understands(row.knob);
    all = all && heeds;
    if (heeds) names += fmt::format("{}`{}`", names.empty() ? "" : ", ", policy.name);
  }
  return all ? "all" : names;
}

// The cells of each row that begins with a name in code, of both tables of knobs.
std::map<std::string, std::pair<std::string, std::string>> RowsOf(std::ifstream& page) {
  std::map<std::string, std::pair<std::string, std::string>> rows;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("| knob | range, default |")) inside = true;
    if (!line.starts_with('|')) inside = false;
    if (!inside || !line.starts_with("| `")) continue;
    const size_t name = line.find('`', 3), cell = line.find(" | ", name) + 3, end = line.find(" | ", cell);
    const size_t last = line.rfind(" | ") + 3;
    EXPECT_TRUE(rows.try_emplace(line.substr(3, name - 3), line.substr(cell, end - cell),
                                 line.substr(last, line.rfind(" |") - last))
                    .second)
        << line;
  }
  return rows;
}

TEST(KnobsDocumentTest, ListsThemAll) {
  const char* path = std::getenv("VGPUD_SCHEDULING_MD");
  ASSERT_NE(path, nullptr) << "VGPUD_SCHEDULING_MD says where the page is";
  std::ifstream page(path);
  ASSERT_TRUE(page) << path;
  auto rows = RowsOf(page);
  EXPECT_EQ(1u, rows.erase("idle")) << "the only setting that is not a number";
  for (const KnobRow& row : Knobs()) {
    const auto found = rows.find(std::string(row.name));
    ASSERT_NE(rows.end(), found) << row.name;
    EXPECT_TRUE(found->second.first.starts_with(RangeAndDefault(row)))
        << row.name << ": \"" << found->second.first << "\", not \"" << RangeAndDefault(row) << "\"";
    EXPECT_EQ(PoliciesOf(row), found->second.second) << row.name;
    rows.erase(found);
  }
  for (const auto& [name, cells] : rows) ADD_FAILURE() << name << " is not a knob";
}

}  // namespace
}  // namespace vgpud::daemon
