// SPDX-License-Identifier: Apache-2.0
// A saved grid goes on only in the program that it came from: whatever a program is made of shows in its fingerprint.
#include "gpu/soft/code/program_fingerprint.h"

#include <gtest/gtest.h>

#include <map>

#include "gpu/soft/decode/module_image.h"
#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

uint64_t FingerprintOf(const std::string& body) {
  const auto image =
      MakeModuleImage({".version 9.0\n.target sm_75\n.address_size 64\n" + body}, OpTable::Of(BestIsa()));
  EXPECT_TRUE(image) << body << image.error().text;
  return Fingerprint(*MakeProgram((*image)->code, std::vector<uint64_t>((*image)->variables.size(), 0x10000)));
}

TEST(ProgramFingerprint, TheSameTextGivesTheSame) {
  const std::string text = ".entry k(.param .u32 a)\n{\nret;\n}\n";
  EXPECT_EQ(FingerprintOf(text), FingerprintOf(text));
}

TEST(ProgramFingerprint, EachOfTheseIsAnother) {
  const auto kernel = [](const std::string& instructions, const std::string& params = ".param .u32 a",
                         const std::string& before = "") {
    return before + ".entry k(" + params + ")\n{\n.reg .u32 %r<4>;\n" + instructions + "\nret;\n}\n";
  };
  const std::string functions = ".func f(.param .u32 x)\n{\nret;\n}\n.func g(.param .u32 x)\n{\nret;\n}\n";
  const auto calling = [&](const std::string& name) {
    return kernel("{\n.param .u32 v;\nst.param.u32 [v], 1;\ncall " + name + ", (v);\n}", ".param .u32 a", functions);
  };
  std::map<uint64_t, std::string> seen;
  for (const std::string& text : {
           kernel("mov.u32 %r1, 1;"),
           kernel("add.u32 %r1, %r2, %r3;"),
           kernel("mov.b32 %r1, 1;\nmov.b32 %r1, 1;"),
           kernel("\nmov.u32 %r1, 1;"),  // a fault of it would name another line
           kernel("mov.u32 %r1, 1;\n"),
           kernel("mov.u32 %r1, 1;", ".param .u64 a"),
           kernel("mov.u32 %r1, 1;", ".param .u32 a, .param .u32 b"),
           kernel("mov.u32 %r1, 1;", ".param .u32 a", functions),
           calling("f"),
           calling("g"),
           kernel(".local .b8 mine[16];\nmov.u32 %r1, 1;"),
           kernel(".shared .b8 ours[16];\nmov.u32 %r1, 1;"),
       }) {
    const auto [at, is_new] = seen.emplace(FingerprintOf(text), text);
    EXPECT_TRUE(is_new) << text << "has the fingerprint of\n" << at->second;
  }
}

}  // namespace
}  // namespace vgpud::soft
