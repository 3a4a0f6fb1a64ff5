// SPDX-License-Identifier: Apache-2.0
// Which rows of the table of instructions no golden test runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "gpu/ptx/parser.h"
#include "gpu/soft/code/op_table.h"
#include "gpu/soft/decode/decoder.h"
#include "tests/golden/rows_without.h"
#include "tests/golden/soft_golden.h"

namespace vgpud::soft {
namespace {

std::vector<std::string_view> Parts(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t dot = std::min(text.find('.', at), text.size());
    parts.push_back(text.substr(at, dot - at));
    at = dot + 1;
  }
  return parts;
}

// The row of a texture or surface instruction: the one that names most of its modifiers and no others.
const OpRow* TextureRow(const OpTable& table, std::string_view opcode, const std::vector<std::string_view>& modifiers) {
  const OpRow* best = nullptr;
  size_t most = 0;
  for (const OpRow* row : table.Rows()) {
    const std::vector<std::string_view> parts = Parts(row->name);
    const auto said = [&](std::string_view p) {
      return std::find(modifiers.begin(), modifiers.end(), p) != modifiers.end();
    };
    if (parts[0] != opcode || parts.size() <= most || !std::all_of(parts.begin() + 1, parts.end(), said)) continue;
    best = row;
    most = parts.size();
  }
  return best;
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
    constexpr std::string_view kOfTextures[] = {"tex", "tld4", "txq", "suld", "sust", "suq"};
    const bool texture = std::find(std::begin(kOfTextures), std::end(kOfTextures), opcode) != std::end(kOfTextures);
    const OpRow* row = texture ? TextureRow(table, opcode, parts) : FindPlainRow(table, opcode, parts).row;
    if (row != nullptr) rows.insert(row);
  }
}

TEST(GoldenRows, EveryRowHasAFormOrAReason) {
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
  std::set<std::string> without;
  for (const OpRow* row : table.Rows()) {
    const bool decoders = row->name[0] == '@';
    if (decoders ? handlers.count(row->fn) == 0 : named.count(row) == 0) without.insert(row->name);
  }
  for (const auto& [name, why] : golden::kRowsWithout)
    EXPECT_EQ(without.erase(name), 1u) << name
                                       << " is in rows_without.h, but a golden test runs it or there is no such row";
  for (const std::string& name : without) ADD_FAILURE() << name << " has no golden test: tests/golden/README.md";
}

}  // namespace
}  // namespace vgpud::soft
