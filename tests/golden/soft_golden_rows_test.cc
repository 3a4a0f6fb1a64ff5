// Which rows of the table of instructions no golden test runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <set>

#include "gpu/soft/decoder.h"
#include "gpu/soft/op_table.h"
#include "gpu/soft/ptx_parser.h"
#include "tests/golden/soft_golden.h"

namespace vgpud::soft {
namespace {

// Rows without a golden test, by what they are: textures and surfaces need objects that a form cannot make, a few
// change nothing that can be seen, and the others are rows of the decoder that compute with registers of other widths.
// A new instruction gets a form in tests/golden, so this number only goes down.
constexpr size_t kMostWithout = 122;

std::vector<std::string_view> Parts(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t dot = std::min(text.find('.', at), text.size());
    parts.push_back(text.substr(at, dot - at));
    at = dot + 1;
  }
  return parts;
}

// Rows that the instructions of `code` name, e.g. "@%p add.s32 %d, %a, %b;".
void AddNamedRows(const OpTable& table, const std::string& code, std::set<const OpRow*>& rows) {
  size_t at = 0;
  while (at < code.size()) {
    const size_t end = std::min(code.find_first_of(" ;{}:", at), code.size());
    const std::string_view word = std::string_view(code).substr(at, end - at);
    at = end + 1;
    if (word.empty() || word[0] < 'a' || word[0] > 'z') continue;
    std::vector<std::string_view> parts = Parts(word);
    const std::string_view opcode = parts.front();
    parts.erase(parts.begin());
    const PlainRow found = FindPlainRow(table, opcode, parts);
    if (found.row != nullptr) rows.insert(found.row);
  }
}

TEST(GoldenRows, EveryRowHasAFormExceptTheseManyKnownOnes) {
  const OpTable& table = OpTable::Of(BestIsa());
  std::set<const OpRow*> named;
  std::set<Handler> handlers;
  for (const char* file : {GOLDEN_FILES}) {
    for (const golden::Form& f : GoldenForms(file)) {
      for (const std::string& line : f.code) AddNamedRows(table, line, named);
      auto module = ptx::Parse(golden::PtxOf(f));
      ASSERT_TRUE(module) << f.name;
      const auto program = Decode(**module, table);
      ASSERT_TRUE(program) << f.name << ": " << program.error().text;
      for (const Inst& i : (*program)->code) handlers.insert({i.fn, i.inner});
    }
  }
  std::vector<std::string> without;
  for (const OpRow* row : table.Rows()) {
    const bool decoders = row->name[0] == '@';
    if (decoders ? handlers.count(row->fn) == 0 : named.count(row) == 0) without.emplace_back(row->name);
  }
  std::sort(without.begin(), without.end());
  if (std::getenv("GOLDEN_LIST") != nullptr)
    for (const std::string& name : without) std::cout << name << "\n";
  EXPECT_LE(without.size(), kMostWithout) << "GOLDEN_LIST=1 lists them";
  std::cout << without.size() << " of " << table.size() << " rows have no golden test\n";
}

}  // namespace
}  // namespace vgpud::soft
