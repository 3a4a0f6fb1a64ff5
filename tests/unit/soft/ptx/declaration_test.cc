// SPDX-License-Identifier: Apache-2.0
// Functions and variables: what their declarations say, word by word.
#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "gpu/ptx/parser.h"
#include "tests/unit/soft/rig/ptx_dump.h"

namespace vgpud::ptx {
namespace {

std::unique_ptr<Module> Parsed(const std::string& text) {
  auto module = Parse(".version 9.0\n.target sm_75\n" + text);
  EXPECT_TRUE(module) << text << "\n" << (module ? "" : module.error().text);
  return module ? std::move(*module) : nullptr;
}

TEST(PtxDeclaration, VersionAndTargetAreRead) {
  struct Case {
    const char* text;
    uint32_t version;
    Target target;
  };
  for (const Case& c : {Case{".version 1.4\n.target sm_13", 14, {13}},
                        {".version 9.99\n.target sm_120", 189, {120}},
                        {".version 8.7\n.target sm_90a, debug", 87, {90, Target::Reach::kExact}},
                        {".version 8.8\n.target debug, sm_100f", 88, {100, Target::Reach::kFamily}},
                        {".version 6.0\n.target texmode_independent", 60, {0}},
                        {";.version 7.0;\n;.target sm_75;", 70, {75}}}) {
    const auto module = Parse(c.text);
    ASSERT_TRUE(module) << c.text << module.error().text;
    EXPECT_EQ((*module)->version, c.version) << c.text;
    EXPECT_EQ((*module)->target, c.target) << c.text;
  }
}

TEST(PtxDeclaration, LinkageIsWhatIsWritten) {
  struct Case {
    const char* words;
    bool is_extern, is_visible, is_weak;
  };
  for (const Case& c : {Case{"", false, false, false},
                        {".extern", true, false, false},
                        {".visible", false, true, false},
                        {".weak", false, false, true},
                        {".common", false, false, true},
                        {".visible .weak", false, true, true},
                        {".weak .extern", true, false, true}}) {
    const auto module =
        Parsed(std::string(c.words) + " .global .b8 x;\n" + c.words + " .func f();\n" + c.words + " .const .b8 y, z;");
    ASSERT_NE(module, nullptr);
    ASSERT_EQ(module->variables.size(), 3u);
    for (const Variable& v : module->variables) {
      EXPECT_EQ(v.is_extern, c.is_extern) << c.words;
      EXPECT_EQ(v.is_visible, c.is_visible) << c.words;
      EXPECT_EQ(v.is_weak, c.is_weak) << c.words;
      EXPECT_FALSE(v.is_managed);
    }
    EXPECT_EQ(module->functions[0]->is_visible, c.is_visible) << c.words;
    EXPECT_EQ(module->functions[0]->is_weak, c.is_weak) << c.words;
    EXPECT_TRUE(module->functions[0]->is_extern) << "it has no body";
    EXPECT_FALSE(module->functions[0]->is_kernel);
  }
}

TEST(PtxDeclaration, SpacesAndLinesAreThoseOfTheText) {
  const auto module = Parsed(
      ".global .b8 a;\n.const .b16 b;\n.shared .b32 c;\n.tex .u64 d;\n.entry k() {\n.local .b8 e;\n.shared .b64 f;\n}");
  ASSERT_NE(module, nullptr);
  struct Case {
    const char* name;
    Space space;
    Type type;
    uint32_t line;
  };
  const Case cases[] = {{"a", Space::kGlobal, Type::kB8, 3},
                        {"b", Space::kConst, Type::kB16, 4},
                        {"c", Space::kShared, Type::kB32, 5},
                        {"d", Space::kGlobal, Type::kU64, 6}};
  ASSERT_EQ(module->variables.size(), 4u);
  for (size_t n = 0; n < 4; ++n) {
    EXPECT_EQ(module->variables[n].name, cases[n].name);
    EXPECT_EQ(module->variables[n].space, cases[n].space);
    EXPECT_EQ(module->variables[n].type, cases[n].type);
    EXPECT_EQ(module->variables[n].line, cases[n].line);
  }
  const Function& k = *module->functions[0];
  EXPECT_TRUE(k.is_kernel);
  EXPECT_FALSE(k.is_extern);
  EXPECT_EQ(k.line, 7u);
  ASSERT_EQ(k.variables.size(), 2u);
  EXPECT_EQ(k.variables[0].space, Space::kLocal);
  EXPECT_EQ(k.variables[1].space, Space::kShared);
  EXPECT_FALSE(k.variables[0].is_extern || k.variables[0].is_visible || k.variables[0].is_weak);
}

TEST(PtxDeclaration, ParametersHaveTheSizeAndAlignmentOfTheirType) {
  struct Case {
    const char* text;
    uint32_t bytes, align;
  };
  for (const Case& c : {Case{".param .b8 a", 1, 1},
                        {".param .u16 a", 2, 2},
                        {".param .f64 a", 8, 8},
                        {".param .b128 a", 16, 16},
                        {".param .v2 .f32 a", 8, 8},
                        {".param .v4 .f32 a", 16, 16},
                        {".param .align 16 .b8 a[3]", 3, 16},
                        {".param .align 4 .b8 a[32]", 32, 4},
                        {".param .b32 a[5]", 20, 4},
                        {".param .b8 a[]", 0, 1},
                        {".param .align 2 .b64 a", 8, 2},
                        {".param .u64 .ptr a", 8, 8},
                        {".param .u64 .ptr .global .align 32 a", 8, 8},
                        {".param .align 16 .u64 .ptr .shared .align 2 a", 8, 16},
                        {".param .pred a", 0, 1}}) {
    const auto module = Parsed(".func f(" + std::string(c.text) + ");");
    ASSERT_NE(module, nullptr);
    const Param& p = module->functions[0]->params.at(0);
    EXPECT_EQ(p.name, "a") << c.text;
    EXPECT_EQ(p.bytes, c.bytes) << c.text;
    EXPECT_EQ(p.align, c.align) << c.text;
    EXPECT_EQ(p.offset, 0u) << c.text;
    EXPECT_EQ(module->functions[0]->param_bytes, c.bytes) << c.text;
  }
  const auto module = Parsed(".func (.param .b32 r) f(.param .b8 _, .param .b32, .param .align 8 .b8 c[2]) { }");
  ASSERT_NE(module, nullptr);
  const Function& f = *module->functions[0];
  ASSERT_EQ(f.params.size(), 3u);
  EXPECT_EQ(f.params[1].name, "");
  EXPECT_EQ(f.params[1].offset, 4u);
  EXPECT_EQ(f.params[2].offset, 8u);
  EXPECT_EQ(f.param_bytes, 10u);
  EXPECT_EQ(f.returns.at(0).bytes, 4u);
  EXPECT_TRUE(Parsed(".func f(.param .b8 _, .param .b8 _) { }"));
}

TEST(PtxDeclaration, BodyParametersToo) {
  struct Case {
    const char* text;
    uint32_t bytes, align;
  };
  for (const Case& c : {Case{".param .b8 a;", 1, 1},
                        {".param .b32 a;", 4, 4},
                        {".param .align 16 .b8 a[7];", 7, 16},
                        {".param .v2 .b32 a;", 8, 8},
                        {".param .v2 .b32 a[3];", 24, 8},
                        {".param .b64 a[2];", 16, 8},
                        {".param .align 4 .b64 a;", 8, 4}}) {
    const auto module = Parsed(".entry k() { .param .b8 first; " + std::string(c.text) + " }");
    ASSERT_NE(module, nullptr);
    const Param& p = module->functions[0]->body_params.at(1);
    EXPECT_EQ(p.bytes, c.bytes) << c.text;
    EXPECT_EQ(p.align, c.align) << c.text;
    EXPECT_EQ(p.offset, c.align) << c.text;
  }
}

TEST(PtxDeclaration, DirectivesOfAFunctionHaveTheirNumbers) {
  struct Case {
    const char* word;
    int numbers;
  };
  // How many numbers may follow; none where none are listed (PTX ISA, "Performance-Tuning Directives").
  for (const Case& c : {Case{".maxnreg", 1},
                        {".minnctapersm", 1},
                        {".maxnctapersm", 1},
                        {".noreturn", 0},
                        {".explicitcluster", 0},
                        {".reqnctapercluster", 3},
                        {".maxclusterrank", 1},
                        {".blocksareclusters", 0},
                        {".abi_preserve", 1},
                        {".abi_preserve_control", 1}}) {
    std::string text = ".version 9.0\n.target sm_75\n.entry k() " + std::string(c.word);
    EXPECT_EQ(Parse(text + " { }").has_value(), c.numbers == 0) << c.word;
    for (int n = 1; n <= 4; ++n) {
      text += n == 1 ? " 8" : ", 8";
      EXPECT_EQ(Parse(text + " { }").has_value(), n <= c.numbers) << c.word << " with " << n;
      EXPECT_EQ(Parse(text + " .maxntid 1 { }").has_value(), n <= c.numbers) << c.word << " with " << n;
    }
  }
}

TEST(PtxDeclaration, ThreadCountsHaveUpToThreeDimensions) {
  struct Case {
    const char* text;
    uint32_t x, y, z;
    bool required;
  };
  for (const Case& c : {Case{"", 0, 0, 0, false},
                        {".maxntid 7", 7, 1, 1, false},
                        {".maxntid 7, 5", 7, 5, 1, false},
                        {".maxntid 7, 5, 3", 7, 5, 3, false},
                        {".reqntid 2, 3, 4", 2, 3, 4, true},
                        {".maxntid 4294967295", 4294967295, 1, 1, false}}) {
    const auto module = Parsed(".entry k() " + std::string(c.text) + " { }");
    ASSERT_NE(module, nullptr);
    const Function& k = *module->functions[0];
    EXPECT_EQ(k.max_threads[0], c.x) << c.text;
    EXPECT_EQ(k.max_threads[1], c.y) << c.text;
    EXPECT_EQ(k.max_threads[2], c.z) << c.text;
    EXPECT_EQ(k.required_threads, c.required) << c.text;
  }
}

std::vector<uint8_t> LittleEndian(uint64_t value, size_t bytes) {
  std::vector<uint8_t> out;
  for (size_t n = 0; n < bytes; ++n) out.push_back(static_cast<uint8_t>(value >> 8 * n));
  return out;
}

TEST(PtxDeclaration, ConstantsBecomeValuesOfTheVariablesType) {
  struct Case {
    const char* type;
    const char* text;
    uint64_t bits;
  };
  for (const Case& c : {Case{".f32", "1", 0x3f800000},
                        {".f32", "-2", 0xc0000000},
                        {".f32", "18446744073709551615", 0x5f800000},
                        {".f64", "1", 0x3ff0000000000000},
                        {".f64", "-1", 0xbff0000000000000},
                        {".f64", "18446744073709551615", 0x43f0000000000000},
                        {".f64", "1U", 0x3ff0000000000000},
                        {".f32", "0.1", 0x3dcccccd},
                        {".f64", "0.1", 0x3fb999999999999a},
                        {".f64", "0f3DCCCCCD", 0x3fb99999a0000000},
                        {".f32", "0d3FB999999999999A", 0x3dcccccd},
                        {".b32", "1.0", 0x3f800000},
                        {".b64", "1.0", 0x3ff0000000000000},
                        {".b64", "0f3F800000", 0x3f800000},
                        {".u64", "-1", UINT64_MAX},
                        {".u16", "0x12345", 0x2345},
                        {".b8", "WARP_SZ", 32},
                        {".b32", "WARP_SZ+1", 33},
                        {".b32", "{7}", 7},
                        {".b128", "5", 5}}) {
    const auto module = Parsed(".global " + std::string(c.type) + " x = " + c.text + ";");
    ASSERT_NE(module, nullptr);
    const Variable& x = module->variables[0];
    std::vector<uint8_t> expected = LittleEndian(c.bits, std::min<size_t>(x.bytes, 8));
    expected.resize(x.bytes);
    EXPECT_EQ(x.init, expected) << c.type << " " << c.text;
  }
}

TEST(PtxDeclaration, InitialisersStandWhereTheirBracesSay) {
  struct Case {
    const char* text;
    uint64_t bytes;
    std::vector<uint8_t> init;
  };
  for (const Case& c : {Case{".b8 x[2][2][2] = {{{1}, {2, 3}}, {{4}}};", 8, {1, 0, 2, 3, 4}},
                        {".b8 x[2][2][2] = {{{1}}, {2, 3}};", 8, {1, 0, 0, 0, 2, 3}},
                        {".b16 x[3] = {1, 2,};", 6, {1, 0, 2, 0}},
                        {".b8 x[] = {};", 0, {}},
                        {".b8 x[][3] = {1, 2, 3, 4};", 6, {1, 2, 3, 4}},
                        {".b8 x[][3] = {{1}, {2}};", 6, {1, 0, 0, 2}},
                        {".v2 .b8 x[] = {{1}, {2, 3}, {4}};", 6, {1, 0, 2, 3, 4}},
                        {".v4 .b8 x = {1, 2};", 4, {1, 2}},
                        {".v4 .b16 x[2] = {{1}, {2}};", 16, {1, 0, 0, 0, 0, 0, 0, 0, 2, 0}},
                        {".b8 x[2][3] = {};", 6, {}}}) {
    const auto module = Parsed(".global " + std::string(c.text));
    ASSERT_NE(module, nullptr);
    EXPECT_EQ(module->variables[0].bytes, c.bytes) << c.text;
    EXPECT_EQ(module->variables[0].init, c.init) << c.text;
  }
}

TEST(PtxDeclaration, VectorsAreAlignedToTheirSize) {
  for (const uint32_t lanes : {2u, 4u, 8u}) {
    const auto module = Parsed(".global .v" + std::to_string(lanes) + " .b16 x;");
    ASSERT_NE(module, nullptr);
    EXPECT_EQ(module->variables[0].bytes, 2u * lanes);
    EXPECT_EQ(module->variables[0].align, 2u * lanes);
  }
  const auto module = Parsed(".global .attribute(.unified(1, (2))) .b32 a;\n.global .attribute(.managed) .b32 b, c;");
  ASSERT_NE(module, nullptr);
  EXPECT_FALSE(module->variables[0].is_managed);
  EXPECT_TRUE(module->variables[1].is_managed);
  EXPECT_TRUE(module->variables[2].is_managed);
}

TEST(PtxDeclaration, MasksSelectOneByteOfAnAddress) {
  for (uint32_t byte = 0; byte < 8; ++byte) {
    const auto module =
        Parsed(".global .b8 x[1] = {" + std::to_string(uint64_t{0xff} << 8 * byte) + "(y+3)};\n.global .b32 y;");
    ASSERT_NE(module, nullptr);
    const Relocation& r = module->variables[0].relocations.at(0);
    EXPECT_TRUE(r.mask);
    EXPECT_EQ(r.shift, 8 * byte);
    EXPECT_EQ(r.addend, 3);
    EXPECT_EQ(r.bytes, 1u);
    EXPECT_EQ(r.offset, 0u);
    EXPECT_FALSE(r.generic);
  }
  const auto module = Parsed(".global .b64 x[2] = {1, y-8};\n.global .b64 z = generic;\n.global .b32 y;");
  ASSERT_NE(module, nullptr);
  const Relocation& r = module->variables[0].relocations.at(0);
  EXPECT_FALSE(r.mask);
  EXPECT_EQ(r.shift, 0u);
  EXPECT_EQ(r.offset, 8u);
  EXPECT_EQ(r.bytes, 8u);
  EXPECT_EQ(r.addend, -8);
  EXPECT_EQ(module->variables[1].relocations.at(0).symbol, "generic");
  EXPECT_FALSE(module->variables[1].relocations.at(0).generic);
}

TEST(PtxDeclaration, ALaterDefinitionReplacesADeclaration) {
  const auto module = Parsed(".extern .global .b32 x;\n.global .b32 x = 5;\n.extern .global .b32 x;");
  ASSERT_NE(module, nullptr);
  ASSERT_EQ(module->variables.size(), 1u);
  EXPECT_FALSE(module->variables[0].is_extern);
  EXPECT_EQ(module->variables[0].init, (std::vector<uint8_t>{5, 0, 0, 0}));
  // Inside a function a variable hides that of the module.
  const auto local = Parsed(".global .b8 x;\n.entry k() { .reg .b64 a; .shared .b64 x[3]; mov.b64 a, x[2]; }");
  ASSERT_NE(local, nullptr);
  const Operand& operand = local->functions[0]->code[0].operands[1];
  EXPECT_TRUE(operand.local_variable);
  EXPECT_EQ(operand.offset, 16);
}

TEST(PtxDeclaration, RegistersHaveTheirNamesAndTypes) {
  const auto module = Parsed(".entry k() { .reg .pred p, q; .reg .f64 %fd<3>; .reg .v4 .b16 v; .reg .v2 .b32 w; }");
  ASSERT_NE(module, nullptr);
  std::vector<std::string> names;
  for (const Register& r : module->functions[0]->registers) names.push_back(r.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"p", "q", "%fd0", "%fd1", "%fd2", "v.x", "v.y", "v.z", "v.w", "w.x", "w.y"}));
  EXPECT_EQ(module->functions[0]->registers[1].type, Type::kPred);
  EXPECT_EQ(module->functions[0]->registers[4].type, Type::kF64);
  EXPECT_EQ(module->functions[0]->registers[8].type, Type::kB16);
}

TEST(PtxDeclaration, OperandsNameWhatWasDeclared) {
  struct Case {
    const char* text;
    const char* dump;
  };
  for (const Case& c : {
           Case{"mov.b32 a, v.y;", "mov.b32 a, v.y"},
           {"mov.b32 a, v.r;", "mov.b32 a, v.x"},
           {"mov.b32 a, v.b;", "mov.b32 a, v.z"},
           {"mov.b32 a, v.a;", "mov.b32 a, v.w"},
           {"mov.b32 a, v.w;", "mov.b32 a, v.w"},
           {"st.b64 [a], w;", "st.b64 [a], {w.x, w.y}"},
           {"mov.b64 a, g[3];", "mov.b64 a, module:g+12"},
           {"mov.b64 a, g[2]+1;", "mov.b64 a, module:g+9"},
           {"mov.b64 a, l[3];", "mov.b64 a, local:l+6"},
           {"mov.b64 a, x[3];", "mov.b64 a, param:x+3"},
           {"ld.b32 a, [g[1]];", "ld.b32 a, [module:g+4]"},
           {"ld.b32 a, [g+4-1];", "ld.b32 a, [module:g+3]"},
           {"ld.b32 a, [8+4];", "ld.b32 a, [12]"},
           {"call f;", "call function:f"},
           {"call f, ();", "call function:f, ()"},
           {"call (a), f, (a, 5), p;", "call (a), function:f, (a, 5), proto:p"},
           {"setp.eq.b32 q|r, a, !q;", "setp.eq.b32 q|r, a, !q"},
           {"setp.eq.b32 q|_, a, a;", "setp.eq.b32 q, a, a"},
           {"bra.uni ret_;", "bra.uni @0"},
           {"@!q brx.idx a, t;", "@!q brx.idx a, (@0, @1)"},
           {"vadd a.b0, a.h1, a;", "vadd a.b0, a.h1, a"},
       }) {
    const auto module = Parsed(
        ".global .b32 g[4];\n.func f();\n.entry k(.param .b64 x) { .reg .b32 a; .reg .v4 .b32 v; .reg .v2 .b32 w; "
        ".reg .pred q, r; .local .b16 l[4]; p: .callprototype _ (); t: .branchtargets ret_, end; ret_: " +
        std::string(c.text) + " end: }");
    ASSERT_NE(module, nullptr);
    const Function& k = *module->functions[1];
    ASSERT_EQ(k.code.size(), 1u);
    EXPECT_EQ(Dump(*module, k, k.code[0]), c.dump) << c.text;
  }
}

TEST(PtxDeclaration, SourceLinesAreKeptWhereTheyChange) {
  const auto module = Parsed(
      ".loc 9 9 9\n.file 7 \"seven\"\n.file 8 \"eight\", 1, 2;\n.entry k() {\n.loc 7 1 1\n.loc 8 2 1\nret;\n.loc 8 2 "
      "5\nret;\n"
      ".loc 8 3 5;\nret;\n.loc 7 3 1\nret;\n.loc 5 4294967296 1\nret;\n.loc 5 4294967295 1\n}\n.file 7 \"again\"");
  ASSERT_NE(module, nullptr);
  std::vector<std::string> lines;
  for (const SourceLine& s : module->functions[0]->source_lines)
    lines.push_back(fmt::format("{}: {}:{}", s.ptx_line, module->files.at(s.file), s.line));
  EXPECT_EQ(lines, (std::vector<std::string>{"9: eight:2", "13: eight:3", "15: seven:3", "17: :0", "19: :4294967295"}));
}

}  // namespace
}  // namespace vgpud::ptx
