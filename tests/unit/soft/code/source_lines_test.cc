// SPDX-License-Identifier: Apache-2.0
// Source lines in what is said about a fault (.file and .loc).
#include <gmock/gmock.h>

#include "gpu/ptx/link.h"
#include "gpu/ptx/parser.h"
#include "gpu/soft/decode/module_image.h"
#include "tests/unit/soft/rig/fatbin_builder.h"
#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kHead = ".version 9.0\n.target sm_75\n.address_size 64\n";

// The fault of a kernel with this body; `files` stands behind it, as nvcc puts it.
std::string FaultOf(const std::string& body, const std::string& files = "", const std::string& functions = "") {
  SoftMachine m;
  const Outcome loaded = m.Load(kHead + functions + ".visible .entry k()\n{\n" + body + "\nret;\n}\n" + files);
  if (loaded.status != CuStatus::kSuccess) return loaded.text;
  const Outcome ran = m.Run("k", {{1, 1, 1}, {1, 1, 1}, 0}, Params());
  EXPECT_NE(ran.status, CuStatus::kSuccess);
  return ran.text;
}
constexpr const char* kFiles = ".file 1 \"/home/u/saxpy.cu\"\n.file 2 \"inc/math.h\", 1700000000, 1234\n";

TEST(SourceLines, AFaultNamesFileAndLine) {
  EXPECT_THAT(FaultOf(".loc 1 11 3\nbar.warp.sync -1;\n.loc 1 12 5\ntrap;\n.loc 1 13 1", kFiles),
              HasSubstr("kernel k, /home/u/saxpy.cu:12, PTX line 9, block (0,0,0), thread (0,0,0)"));
}

TEST(SourceLines, TheLastOneBeforeTheInstructionCounts) {
  EXPECT_THAT(FaultOf(".loc 1 11 3\n.loc 2 40 1\n.loc 2 41 7\ntrap;", kFiles), HasSubstr("inc/math.h:41, PTX line 9"));
  // The same once more, another column: nothing new. Then two in a row.
  EXPECT_THAT(
      FaultOf(".loc 1 7 1\nbar.warp.sync -1;\n.loc 1 7 9\nbar.warp.sync -1;\n.loc 2 8 1\n.loc 1 7 2\ntrap;", kFiles),
      HasSubstr("saxpy.cu:7, PTX line 12"));
  EXPECT_THAT(FaultOf(".loc 1 7 1\nbar.warp.sync -1;\n.loc 2 8 1\n.loc 1 9 2\ntrap;", kFiles),
              HasSubstr("saxpy.cu:9, "));
}

TEST(SourceLines, AttributesOfInlinedCodeAreRead) {
  EXPECT_THAT(FaultOf(".loc 2 30 3, function_name $L__info_string0+4, inlined_at 1 12 5\ntrap;", kFiles),
              HasSubstr("inc/math.h:30, PTX line 7"));
}

TEST(SourceLines, NothingIsSaidWhereNothingIsKnown) {
  for (const char* body : {"trap;\n.loc 1 5 1", ".loc 1 0 0\ntrap;", ".loc 3 5 0\ntrap;", ".loc 1 4294967296 0\ntrap;",
                           ".loc 18446744073709551615 18446744073709551615 18446744073709551615\ntrap;"}) {
    const std::string text = FaultOf(body, kFiles);
    EXPECT_THAT(text, HasSubstr("kernel k, PTX line ")) << body;
  }
  EXPECT_THAT(FaultOf(".loc 1 5 1\ntrap;"), HasSubstr("kernel k, PTX line 7"));
  EXPECT_THAT(FaultOf(".loc 1 4294967295 0\ntrap;", kFiles), HasSubstr("saxpy.cu:4294967295, "));
}

TEST(SourceLines, AFunctionHasItsOwn) {
  const std::string function = ".func down()\n{\n.loc 2 3 1\ntrap;\nret;\n}\n";
  EXPECT_THAT(FaultOf(".loc 1 5 1\ncall down, ();", kFiles, function),
              HasSubstr("kernel k, function down, inc/math.h:3, PTX line 7"));
  // The lines of the function before it are not the kernel's.
  EXPECT_THAT(FaultOf("trap;", kFiles, function), HasSubstr("kernel k, PTX line 12"));
}

TEST(SourceLines, NamesAreMadePrintableAndShort) {
  EXPECT_THAT(FaultOf(".loc 1 5 1\ntrap;", ".file 1 \"a\tb\x1b[31m\"\n"), HasSubstr("a?b?[31m:5"));
  const std::string text = FaultOf(".loc 1 5 1\ntrap;", ".file 1 \"" + std::string(100'000, 'x') + "end.cu\"\n");
  EXPECT_THAT(text, HasSubstr("xend.cu:5"));
  EXPECT_LT(text.size(), 1000u);
  // Of two with one number the first stays; one that was named by .loc before is no other.
  EXPECT_THAT(FaultOf(".loc 1 5 1\ntrap;", ".file 1 \"a.cu\"\n.file 1 \"b.cu\"\n"), HasSubstr("a.cu:5"));
}

TEST(SourceLines, EachPartOfAProgramHasItsFiles) {
  const std::string first = std::string(kHead) +
                            ".extern .func down();\n.visible .entry k()\n{\n.loc 1 5 1\ncall down, "
                            "();\nret;\n}\n.file 1 \"first.cu\"\n";
  const std::string second =
      std::string(kHead) + ".visible .func down()\n{\n.loc 1 8 1\ntrap;\nret;\n}\n.file 1 \"second.cu\"\n";
  FatbinBuilder image;
  for (const std::string& part : {first, second})
    image.Add(FatbinBuilder::kPart, 0, FatbinBuilder{}.Add(FatbinBuilder::kPtx, 75, part).Build());
  SoftMachine m;
  const Outcome loaded = m.Load(image.Build());
  ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  EXPECT_THAT(m.Run("k", {{1, 1, 1}, {1, 1, 1}, 0}, Params()).text, HasSubstr("function down, second.cu:8, "));
}

// What a text makes the parser keep is bounded by its instructions.
TEST(SourceLines, ManyLocsTakeNoRoom) {
  std::string text = std::string(kHead) + ".visible .entry k()\n{\n";
  for (int n = 0; n < 100'000; ++n) text += ".loc " + std::to_string(n) + " " + std::to_string(n + 1) + " 0\n";
  text += "trap;\n.loc 1 5 0\ntrap;\nret;\n}\n";
  const auto module = ptx::Parse(text);
  ASSERT_TRUE(module) << module.error().text;
  EXPECT_EQ((*module)->functions[0]->source_lines.size(), 2u);
  EXPECT_LE((*module)->files.size(), 65536u);
  // Beyond that number files have no name, nothing else.
  const std::string named = FaultOf(text.substr(text.find('{') + 1, text.find("trap;") - text.find('{') - 1) + "trap;",
                                    ".file 99999 \"late.cu\"\n");
  EXPECT_THAT(named, HasSubstr("kernel k, PTX line"));
}

TEST(SourceLines, TheCheckModeNamesThem) {
  SoftMachine m;
  m.gpu.SetCheck();
  ASSERT_EQ(m.Load(std::string(kHead) +
                   ".visible .entry k(.param .u64 out)\n{\n.reg .b64 %rd1;\nld.param.u64 %rd1, "
                   "[out];\n.loc 1 21 3\nst.global.u32 [%rd1+100], 7;\nret;\n}\n" +
                   kFiles)
                .status,
            CuStatus::kSuccess);
  EXPECT_EQ(m.Run("k", {{1, 1, 1}, {1, 1, 1}, 0}, Params().Add(m.Alloc(100))).status, CuStatus::kSuccess);
  std::string text(1 << 12, '\0');
  bool to_stderr = false;
  text.resize(m.gpu.TakePrinted(std::as_writable_bytes(std::span(text)), &to_stderr));
  EXPECT_THAT(text,
              HasSubstr("check: kernel k, /home/u/saxpy.cu:21, PTX line 9, block (0,0,0), thread (0,0,0): store of"));
}

}  // namespace
}  // namespace vgpud::soft
