// SPDX-License-Identifier: Apache-2.0
// docs/ptx-coverage.md says what the table of instructions says. It is written anew by
//   PTX_COVERAGE_OUT=docs/ptx-coverage.md BUILD/tests/golden/soft_golden_test --gtest_filter='PtxCoverage.*'
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "gpu/soft/code/op_table.h"
#include "tests/golden/rows_without.h"

namespace vgpud::soft {
namespace {

// All opcodes of the PTX ISA 9.0.
constexpr std::string_view kOpcodes =
    "abs activemask add addc alloca and applypriority atom bar barrier bfe bfi bfind bmsk bra brev brkpt brx call "
    "clusterlaunchcontrol clz cnot copysign cos cp createpolicy cvt cvta discard div dp2a dp4a elect ex2 exit fence "
    "fma "
    "fns getctarank griddepcontrol isspacep istypep ld ldmatrix ldu lg2 lop3 mad mad24 madc mapa match max mbarrier "
    "membar min mma mov movmatrix mul mul24 multimem nanosleep neg not or pmevent popc prefetch prefetchu prmt rcp red "
    "redux rem ret rsqrt sad selp set setmaxnreg setp shf shfl shl shr sin slct sqrt st stackrestore stacksave "
    "stmatrix "
    "sub subc suld suq sured sust szext tanh tcgen05 tensormap testp tex tld4 trap txq vabsdiff vabsdiff2 vabsdiff4 "
    "vadd "
    "vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 vmin4 vote vset vset2 vset4 vshl vshr vsub vsub2 vsub4 "
    "wgmma wmma xor";

// What the decoder makes of other rows or of none.
constexpr std::pair<const char*, const char*> kByDecoder[] = {
    {"bra", "any label, `.uni`"},
    {"alloca", "`.u32` `.u64`, with and without an alignment; 16368 bytes a thread"},
    {"brx", "`.idx`"},
    {"call",
     "functions, pointers to functions, recursion; `vprintf`, `__assertfail`, `malloc`, "
     "`__nv_aligned_device_malloc` and `free` of the device runtime"},
    {"createpolicy", "all; policies and `.L2::cache_hint` change nothing"},
    {"cvta", "all state spaces, both ways"},
    {"getctarank", "all"},
    {"isspacep", "all state spaces"},
    {"ldu", "as `ld`"},
    {"mapa", "all"},
    {"multimem", "all are taken; to run one is an error, as no device here has memory of several GPUs"},
    {"red", "as `atom`"},
    {"ret", ""},
    {"stackrestore", "`.u32` `.u64`"},
    {"stacksave", "`.u32` `.u64`"},
    {"tcgen05",
     "of one block (`.cta_group::1`): `.alloc` `.dealloc` `.relinquish_alloc_permit`; `.ld` `.st` in all shapes but "
     "`.16x32bx2`, without `.pack` and `.unpack`; `.wait` `.fence`; `.cp`: `.128x256b` `.128x128b` `.32x128b.warpx4`; "
     "`.mma`: `.kind::f16` `.kind::tf32` `.kind::f8f6f4` "
     "`.kind::i8`, dense, without `.ws`; `.commit` without `.multicast`"},
};

// Rows of these are without types: the decoder takes every combination of them.
constexpr std::pair<const char*, const char*> kVideo[] = {
    {"vadd vsub vabsdiff vmin vmax vset",
     "`.u32` and `.s32` of each operand, `.sat`, selectors of bytes and halves, `.add` `.min` `.max` with c or a "
     "merge"},
    {"vshl vshr", "`.clamp` and `.wrap`, else as `vadd`"},
    {"vmad", "`.po`, `.sat`, `.shr7` and `.shr15`, selectors; no negated operands"},
    {"vadd2 vadd4 vsub2 vsub4 vabsdiff2 vabsdiff4 vmin2 vmin4 vmax2 vmax4 vavrg2 vavrg4 vset2 vset4",
     "`.u32` and `.s32` of each operand, `.sat`, `.add`, masks and selectors"},
};

std::vector<std::string> Split(std::string_view text, char at) {
  std::vector<std::string> parts;
  std::stringstream stream{std::string(text)};
  for (std::string part; std::getline(stream, part, at);)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

struct Opcode {
  std::map<std::string, std::set<std::string>> types;  // by the other modifiers
  uint8_t traits = 0;
};

// Rows whose name begins with @ are found by the decoder under names of its own.
void AddRow(std::map<std::string, Opcode>& opcodes, const std::set<std::string>& known, const OpRow& row) {
  const bool internal = row.name[0] == '@';
  std::vector<std::string> parts = Split(row.name + (internal ? 1 : 0), '.');
  const std::string opcode = parts.front();
  if (known.count(opcode) == 0) return;
  parts.erase(parts.begin());
  // The width of the register that a load fills.
  if (opcode == "ld" || opcode == "st") parts.pop_back();
  std::string modifiers;
  std::string types;
  for (const std::string& part : parts) (ptx::TypeFromName(part) == ptx::Type::kNone ? modifiers : types) += "." + part;
  Opcode& o = opcodes[opcode];
  o.types[modifiers].insert(types);
  o.traits |= row.traits;
}

// Modifiers with the same types share a line.
std::string Forms(const Opcode& opcode) {
  std::map<std::string, std::string> modifiers_of;
  for (const auto& [modifiers, types] : opcode.types) {
    std::string list;
    for (const std::string& t : types)
      if (!t.empty()) list += (list.empty() ? "`" : " `") + t + "`";
    std::string& all = modifiers_of[list];
    if (!modifiers.empty()) all += (all.empty() ? "`" : " `") + modifiers + "`";
  }
  std::string text;
  for (const auto& [types, modifiers] : modifiers_of) {
    if (!text.empty() && (!types.empty() || !modifiers.empty())) text += "; ";
    text += modifiers;
    if (!modifiers.empty() && !types.empty()) text += ": ";
    text += types;
  }
  if (opcode.traits & kRounds) text += "; `.rn` `.rz` `.rm` `.rp`";
  if (opcode.traits & kTakesFtz) text += "; `.ftz`";
  if (opcode.traits & kTakesSat) text += "; `.sat`";
  if (opcode.traits & kCombines) text += "; with `.and` `.or` `.xor` of a predicate";
  return text;
}

std::string Page() {
  const std::vector<std::string> all = Split(kOpcodes, ' ');
  const std::set<std::string> known(all.begin(), all.end());
  std::map<std::string, Opcode> opcodes;
  const auto rows = OpTable::Of(Isa::kSse4).Rows();
  for (const OpRow* row : rows) AddRow(opcodes, known, *row);
  std::map<std::string, std::string> lines;
  for (const auto& [opcode, forms] : opcodes) lines[opcode] = Forms(forms);
  for (const auto& [opcode, text] : kByDecoder) lines[opcode] = text;
  for (const auto& [names, text] : kVideo)
    for (const std::string& opcode : Split(names, ' ')) lines[opcode] = text;

  std::stringstream page;
  page << "# PTX instructions of the soft GPU\n\n"
       << "Made from the table of instructions by `tests/golden/ptx_coverage_test.cc`, which also says how; do not "
          "edit.\n\n"
       << "A kernel with an instruction that is not here fails when its module is loaded or when it is launched, with "
          "the\n"
       << "line and the text of the instruction. Modifiers that change no result on this device (cache operators, "
          "scopes,\n"
       << "`.aligned`) are accepted everywhere. Values: `tests/golden/README.md`.\n\n"
       << "## Covered: " << lines.size() << " opcodes\n\n| opcode | forms |\n|---|---|\n";
  for (const auto& [opcode, text] : lines) page << "| `" << opcode << "` | " << text << " |\n";
  page << "\n## Not covered\n\n";
  bool first = true;
  for (const std::string& opcode : all) {
    if (lines.count(opcode) != 0) continue;
    page << (first ? "" : ", ") << "`" << opcode << "`";
    first = false;
  }
  page << "\n\n## Golden tests\n\n"
       << "Each of the " << rows.size() << " rows of the table is run by a golden test (`tests/golden/README.md`), "
       << "except\n\n| row | because |\n|---|---|\n";
  for (const auto& [row, why] : golden::kRowsWithout) page << "| `" << row << "` | " << why << " |\n";
  return page.str();
}

TEST(PtxCoverage, ThePageIsThatOfTheTable) {
  const std::string page = Page();
  if (const char* out = std::getenv("PTX_COVERAGE_OUT")) {
    std::ofstream(out) << page;
    GTEST_SKIP() << "wrote " << out;
  }
  std::ifstream file(PTX_COVERAGE_PAGE);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_TRUE(text.str() == page) << "docs/ptx-coverage.md is not what the table says; write it anew: PTX_COVERAGE_OUT="
                                  << PTX_COVERAGE_PAGE << " and this test";
}

}  // namespace
}  // namespace vgpud::soft
