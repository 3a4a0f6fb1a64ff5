// SPDX-License-Identifier: Apache-2.0
// Programs of several parts: their bodies are there a part at a time, and the code is that of all at once.
#include <gmock/gmock.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "gpu/ptx/link.h"
#include "gpu/soft/decode/decoder.h"
#include "tests/unit/soft/rig/mutation_seeds.h"
#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Part(const std::string& text) { return ".version 8.0\n.target sm_75\n.address_size 64\n" + text; }

const std::vector<std::string>& ThreeParts() {
  static const std::vector<std::string> kParts = {
      Part(
          ".extern .func (.param .b32 r) twice(.param .b32 a);\n.shared .align 4 .b8 own[8];\n"
          ".visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<4>;\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [out];\n"
          "mov.u32 %r1, 21;\nst.shared.u32 [own], %r1;\nld.shared.u32 %r1, [own];\n{\n.param .b32 a;\n.param .b32 r;\n"
          "st.param.b32 [a], %r1;\ncall (r), twice, (a);\nld.param.b32 %r2, [r];\n}\nst.global.u32 [%rd1], %r2;\nret;\n"
          "}\n"),
      Part(
          ".global .u32 own = 1;\n.func (.param .b32 r) helper(.param .b32 a)\n{\n.reg .b32 %r<3>;\n"
          "ld.param.b32 %r1, [a];\nld.global.u32 %r2, [own];\nshl.b32 %r1, %r1, %r2;\nst.param.b32 [r], %r1;\nret;\n}\n"
          ".weak .func (.param .b32 r) twice(.param .b32 a)\n{\n.reg .b32 %r<2>;\nmov.u32 %r1, 1;\n"
          "st.param.b32 [r], %r1;\nret;\n}\n"),
      Part(".extern .shared .align 4 .b8 more[];\n.shared .align 4 .b8 mine[12];\n"
           ".visible .func (.param .b32 r) twice(.param .b32 a)\n{\n.reg .b32 %r<2>;\nld.param.b32 %r1, [a];\n"
           "st.shared.u32 [mine+8], %r1;\nadd.u32 %r1, %r1, %r1;\nst.param.b32 [r], %r1;\nret;\n}\n")};
  return kParts;
}

std::vector<std::string> WithBodies(const ptx::Module& module) {
  std::vector<std::string> names;
  for (const auto& f : module.functions)
    if (!f->code.empty()) names.push_back(f->name);
  return names;
}

TEST(SoftParts, BodiesAreThereAPartAtATime) {
  auto parts = ptx::LinkedParts::Read(ThreeParts());
  ASSERT_TRUE(parts) << parts.error().text;
  ASSERT_EQ(parts->count(), 3u);
  EXPECT_THAT(WithBodies(parts->module()), ElementsAre());
  const char* const expected[] = {"k", "helper", "twice"};
  for (size_t n = 0; n < parts->count(); ++n) {
    const auto bodies = parts->ReadBodies(n);
    ASSERT_TRUE(bodies) << bodies.error().text;
    EXPECT_THAT(WithBodies(parts->module()), ElementsAre(expected[n])) << "the weak function is of nobody";
    ASSERT_EQ(bodies->functions.size(), 1u);
    EXPECT_EQ(parts->module().functions[bodies->functions[0]]->name, expected[n]);
    parts->Leave(*bodies);
    EXPECT_THAT(WithBodies(parts->module()), ElementsAre());
  }
}

// What each function runs, with the lines that it comes from. Where its code lies is left open.
std::map<std::string, std::vector<std::tuple<Handler, Handler, uint32_t>>> CodeOf(const ProgramCode& program) {
  std::map<std::string, std::vector<std::tuple<Handler, Handler, uint32_t>>> code;
  for (size_t n = 0; n < program.code.size(); ++n) {
    const Origin& origin = program.origins[n];
    code[program.functions[origin.function]->info.name].emplace_back(program.code[n].fn, program.code[n].inner,
                                                                     origin.line);
  }
  return code;
}
std::map<std::string, std::vector<uint64_t>> FactsOf(const ProgramCode& program) {
  std::map<std::string, std::vector<uint64_t>> facts;
  for (const auto& f : program.functions)
    facts[f->info.name] = {f->frame_bytes,   f->local_total,    f->shared_bytes,     f->levels,
                           f->warp_specials, f->info.registers, f->info.param_bytes, f->error.has_value()};
  return facts;
}

TEST(SoftParts, TheCodeIsThatOfAllAtOnce) {
  auto programs = ProgramsIn(TEST_SEED_DIR "/parts");
  programs.push_back(ThreeParts());
  ASSERT_GT(programs.size(), 1u);
  const OpTable& table = OpTable::Of(BestIsa());
  for (const std::vector<std::string>& texts : programs) {
    const auto whole = ptx::ParseParts(texts);
    auto parts = ptx::LinkedParts::Read(texts);
    ASSERT_TRUE(whole && parts);
    const auto at_once = Decode(**whole, table);
    const auto in_parts = Decode(*parts, table);
    ASSERT_TRUE(at_once && in_parts);
    EXPECT_TRUE(CodeOf(**at_once) == CodeOf(**in_parts)) << texts[0];
    EXPECT_EQ(FactsOf(**at_once), FactsOf(**in_parts)) << texts[0];
  }
}

TEST(SoftParts, ACallFindsTheStrongDefinitionOfALaterPart) {
  SoftMachine m;
  const std::string image = ImageOfParts(ThreeParts());
  ASSERT_EQ(m.Load(image).status, CuStatus::kSuccess);
  const GpuVa out = m.Alloc(4);
  const Outcome ran = m.Run("k", {{1, 1, 1}, {32, 1, 1}, 0}, Params().Add(out));
  EXPECT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
  EXPECT_THAT(m.Download<uint32_t>(out, 1), ElementsAre(42));
  EXPECT_EQ(m.module->Function("k")->static_shared_bytes, 20u) << "12 of the function, 8 of the kernel";
}

TEST(SoftParts, SourceLinesStay) {
  const auto part = [](const std::string& name) {
    return Part(".visible .func " + name + "()\n{\n.loc 1 7 0\nret;\n}\n.file 1 \"" + name + ".cu\"\n");
  };
  const std::vector<std::string> texts = {part("f"), part("g"), Part(".visible .entry k()\n{\nret;\n}\n")};
  auto parts = ptx::LinkedParts::Read(texts);
  ASSERT_TRUE(parts);
  const auto code = Decode(*parts, OpTable::Of(BestIsa()));
  ASSERT_TRUE(code) << code.error().text;
  EXPECT_EQ((*code)->source_lines.Find(0, 7), "f.cu:7");
  EXPECT_EQ((*code)->source_lines.Find(1, 7), "g.cu:7");
}

TEST(SoftParts, ABodyThatCantBeReadIsTheModulesError) {
  SoftMachine m;
  std::vector<std::string> parts = ThreeParts();
  parts[1] += ".func broken()\n{\n.reg .b32 %r<2>;\nmov.u32 %r1, [;\nret;\n}\n";
  const Outcome loaded = m.Load(ImageOfParts(parts));
  EXPECT_EQ(loaded.status, CuStatus::kInvalidPtx);
  EXPECT_THAT(loaded.text, HasSubstr("PTX line 24"));
}

}  // namespace
}  // namespace vgpud::soft
