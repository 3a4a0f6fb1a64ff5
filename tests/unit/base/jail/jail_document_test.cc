// SPDX-License-Identifier: Apache-2.0
// docs/security.md shows the lists of system calls as they are.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/jail/rules.h"

namespace vgpud {
namespace {

std::string Describe(const ArgumentRule& a) {
  switch (a.test) {
    case ArgumentRule::Test::kAny:
      return {};
    case ArgumentRule::Test::kEqual:
      return fmt::format("argument {} = {:#x}", a.index, a.value);
    case ArgumentRule::Test::kNot:
      return fmt::format("argument {} not {:#x}", a.index, a.value);
    case ArgumentRule::Test::kMasked:
      if (a.value == 0) return fmt::format("argument {} has only bits {:#x}", a.index, ~a.mask & 0xffffffff);
      if (a.mask >> 31 == 1)
        return fmt::format("argument {} = {:#x} (bits {:#x} aside)", a.index, a.value, ~a.mask & 0xffffffff);
      return fmt::format("argument {} has of bits {:#x} only {:#x}", a.index, a.mask, a.value);
    case ArgumentRule::Test::kAtLeast:
      return fmt::format("argument {} at least {:#x}", a.index, a.value);
    case ArgumentRule::Test::kBelow:
      return fmt::format("argument {} below {:#x}", a.index, a.value);
    case ArgumentRule::Test::kOwnPid:
      return fmt::format("argument {} = its own process", a.index);
  }
  return {};
}

std::string Describe(const SyscallRule& rule) {
  std::string text;
  if (rule.answer == SyscallRule::Answer::kAsk) text = "asked: ";
  if (rule.answer == SyscallRule::Answer::kRefuse) text = fmt::format("refused with error {}: ", rule.error);
  std::string conditions;
  for (const ArgumentRule& argument : rule.arguments)
    if (const std::string one = Describe(argument); !one.empty())
      conditions += fmt::format("{}{}", conditions.empty() ? "" : ", ", one);
  return fmt::format("{}{}", text, conditions.empty() ? "always" : conditions);
}

// The list of one kind as docs/security.md has it: the calls without conditions in one paragraph, then one line each.
std::string ListOf(std::span<const SyscallRule> rules) {
  std::set<std::string> plain, killed;
  std::map<std::string, std::string> others;
  for (const SyscallRule& rule : rules) {
    const std::string text = Describe(rule);
    if (rule.answer == SyscallRule::Answer::kKill) {
      killed.insert(rule.name);
      continue;
    }
    if (text == "always") plain.insert(rule.name);
    if (text != "always") others[rule.name] += fmt::format("{}{}", others[rule.name].empty() ? "" : "; or ", text);
  }
  std::stringstream list;
  for (const std::string& name : plain) list << (name == *plain.begin() ? "" : ", ") << name;
  list << ".\n\n";
  if (!killed.empty()) list << fmt::format("The end of the process: {}.\n\n", fmt::join(killed, ", "));
  for (const auto& [name, text] : others) list << "- `" << name << "`: " << text << "\n";
  return list.str();
}

class JailDocumentTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* path = std::getenv("VGPUD_SECURITY_MD");
    ASSERT_NE(nullptr, path);
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    document_ = text.str();
  }
  std::string Section(const std::string& name) const {
    const std::string begin = fmt::format("<!-- {} -->\n", name), end = "<!-- end -->\n";
    const size_t from = document_.find(begin);
    if (from == std::string::npos) return fmt::format("no section {}", name);
    const size_t start = from + begin.size();
    return document_.substr(start, document_.find(end, start) - start);
  }
  std::string document_;
};

TEST_F(JailDocumentTest, ShowsWhatBothMayDo) { EXPECT_EQ(ListOf(RulesForBoth()), Section("both")); }
TEST_F(JailDocumentTest, ShowsWhatVgpudVfMayDo) { EXPECT_EQ(ListOf(RulesFor(JailKind::kVf)), Section("vgpud-vf")); }
TEST_F(JailDocumentTest, ShowsWhatVgpudExecMayDo) {
  EXPECT_EQ(ListOf(RulesFor(JailKind::kExec)), Section("vgpud-exec"));
}
TEST_F(JailDocumentTest, ShowsWhatItsOtherThreadsMayDo) {
  EXPECT_EQ(ListOf(RulesFor(JailKind::kExecWorkers)), Section("vgpud-exec workers"));
}
TEST_F(JailDocumentTest, ShowsWhatVgpudKeepMayDo) {
  EXPECT_EQ(ListOf(RulesFor(JailKind::kKeep)), Section("vgpud-keep"));
}

TEST_F(JailDocumentTest, ShowsWhatANestedExecutorMayDo) {
  EXPECT_EQ(ListOf(RulesForNested()), Section("vgpud-exec nested"));
}
TEST_F(JailDocumentTest, ShowsWhatAnExecutorWithADriverMayDo) {
  EXPECT_EQ(ListOf(RulesFor(JailKind::kExecDriver)), Section("vgpud-exec driver"));
}

}  // namespace
}  // namespace vgpud
