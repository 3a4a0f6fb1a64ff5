// SPDX-License-Identifier: Apache-2.0
// What several modules become when they are linked: which declaration stays, and under what name.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gpu/ptx/link.h"
#include "tests/unit/soft/rig/ptx_dump.h"

namespace vgpud::ptx {
namespace {

GpuResult<std::unique_ptr<Module>> Linked(const std::vector<std::string>& parts) {
  std::vector<std::string> texts;
  for (const std::string& part : parts) texts.push_back(fmt::format(".version 8.0\n.target sm_75\n{}", part));
  return ParseParts(texts);
}

TEST(PtxMerge, NothingIsNoModule) {
  const auto none = ParseParts({});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().text, "a module without PTX");
}

TEST(PtxMerge, OnePartStaysAsItIs) {
  const auto module = Linked({".global .b8 x;\n.func f() { }"});
  ASSERT_TRUE(module);
  EXPECT_TRUE((*module)->parts.empty());
  EXPECT_EQ((*module)->variables.at(0).name, "x");
}

TEST(PtxMerge, VersionAndTargetAreTheHighest) {
  const std::vector<std::string> texts = {".version 7.1\n.target sm_90\n", ".version 8.3\n.target sm_75\n",
                                          ".version 6.0\n.target sm_60\n"};
  const auto module = ParseParts(texts);
  ASSERT_TRUE(module);
  EXPECT_EQ((*module)->version, 83u);
  EXPECT_EQ((*module)->target.sm, 90u);
  EXPECT_EQ((*module)->parts.size(), 3u);
}

// Of one name in two parts: which of them stays, by what the parts say of it.
TEST(PtxMerge, TheStrongerDefinitionStays) {
  struct Case {
    const char* first;
    const char* second;
    const char* stays;  // "": defined twice
  };
  for (const Case& c : {Case{".extern", ".extern", "first"},
                        {".extern", ".weak", "second"},
                        {".extern", ".visible", "second"},
                        {".weak", ".extern", "first"},
                        {".weak", ".weak", "first"},
                        {".weak", ".visible", "second"},
                        {".visible", ".extern", "first"},
                        {".visible", ".weak", "first"},
                        {".visible", ".visible", ""}}) {
    const auto variables = Linked({fmt::format("{} .global .align 2 .b8 x[{}];", c.first, 4),
                                   fmt::format("{} .global .align 16 .u8 x[{}];", c.second, 4)});
    const auto function = [](const char* linkage, const char* name) {
      const bool declared = std::string(linkage) == ".extern";
      return fmt::format("{} .func f(.param .b32 {}) {}", linkage, name, declared ? ";" : "{ }");
    };
    const auto functions = Linked({function(c.first, "first"), function(c.second, "second")});
    ASSERT_EQ(variables.has_value(), c.stays[0] != '\0') << c.first << c.second;
    ASSERT_EQ(functions.has_value(), c.stays[0] != '\0') << c.first << c.second;
    if (!variables) {
      EXPECT_EQ(variables.error().text, "linking PTX modules: `x` is defined twice");
      EXPECT_EQ(functions.error().text, "linking PTX modules: `f` is defined twice");
      continue;
    }
    ASSERT_EQ((*variables)->variables.size(), 1u);
    const Variable& x = (*variables)->variables[0];
    EXPECT_EQ(x.type == Type::kB8 ? "first" : "second", std::string(c.stays)) << c.first << c.second;
    EXPECT_EQ(x.align, 16u) << "the larger of both";
    ASSERT_EQ((*functions)->functions.size(), 1u);
    EXPECT_EQ((*functions)->functions[0]->params[0].name, c.stays) << c.first << c.second;
  }
}

TEST(PtxMerge, OfEqualOnesTheLargerStays) {
  for (const char* linkage : {".weak", ".common", ".extern"}) {
    const auto bytes = [&](int first, int second) {
      const auto module = Linked({fmt::format("{} .global .align 8 .b8 x[{}];", linkage, first),
                                  fmt::format("{} .global .align 4 .b8 x[{}];", linkage, second)});
      EXPECT_TRUE(module);
      EXPECT_EQ((*module)->variables.at(0).align, 8u);
      return (*module)->variables.at(0).bytes;
    };
    EXPECT_EQ(bytes(4, 12), 12u) << linkage;
    EXPECT_EQ(bytes(12, 4), 12u) << linkage;
  }
}

TEST(PtxMerge, WhatDoesNotFitIsSaid) {
  struct Case {
    const char* first;
    const char* second;
    const char* why;
  };
  for (const Case& c : {Case{".extern .func f();", ".visible .global .b8 f;", "is a function in one and a variable"},
                        {".visible .global .b8 f;", ".extern .func f();", "is a function in one and a variable"},
                        {".extern .global .b8 x;", ".visible .shared .b8 x;", "lies in different state spaces"},
                        {".extern .entry f();", ".visible .func f() { }", "is a kernel in one and a function"},
                        {".extern .func f(.param .b8 a);", ".visible .func f() { }", "has different parameters"},
                        {".extern .func (.param .b8 a) f();", ".visible .func f() { }", "has different parameters"}}) {
    const auto module = Linked({c.first, c.second});
    ASSERT_FALSE(module) << c.first;
    EXPECT_NE(module.error().text.find(c.why), std::string::npos) << module.error().text;
  }
}

// What a part has for itself keeps its name if nobody else has it.
TEST(PtxMerge, OwnSymbolsGetNamesOfTheirOwn) {
  const std::string part =
      ".global .b32 x = 5;\n.func f() { .reg .b64 a; mov.b64 a, x; mov.b64 a, f; ld.global.b64 a, [x+4]; call f; ret; "
      "}\n"
      ".global .b64 p[2] = {x, f};\n";
  const auto module = Linked({part, part, part, ".visible .global .b8 x.2;"});
  ASSERT_FALSE(module) << "a dot ends a name";
  const auto linked = Linked({part, part, part});
  ASSERT_TRUE(linked) << linked.error().text;
  std::vector<std::string> names;
  for (const Variable& v : (*linked)->variables) names.push_back(v.name);
  EXPECT_EQ(names, (std::vector<std::string>{"x", "p", "x.2", "p.2", "x.3", "p.3"}));
  const char* const functions[] = {"f", "f.2", "f.3"};
  const char* const variables[] = {"x", "x.2", "x.3"};
  for (size_t n = 0; n < 3; ++n) {
    const Function& f = *(*linked)->functions.at(n);
    EXPECT_EQ(f.name, functions[n]);
    EXPECT_EQ(Dump(**linked, f, f.code[0]), fmt::format("mov.b64 a, module:{}", variables[n]));
    EXPECT_EQ(Dump(**linked, f, f.code[1]), fmt::format("mov.b64 a, function:{}", functions[n]));
    EXPECT_EQ(Dump(**linked, f, f.code[2]), fmt::format("ld.global.b64 a, [module:{}+4]", variables[n]));
    EXPECT_EQ(Dump(**linked, f, f.code[3]), fmt::format("call function:{}", functions[n]));
    const auto& relocations = (*linked)->variables.at(2 * n + 1).relocations;
    EXPECT_EQ(relocations.at(0).symbol, variables[n]);
    EXPECT_EQ(relocations.at(1).symbol, functions[n]);
  }
}

TEST(PtxMerge, AnOwnSymbolGivesWayToASharedOne) {
  const auto linked = Linked({".global .b8 x[3];", ".visible .global .b8 x[7];"});
  ASSERT_TRUE(linked);
  ASSERT_EQ((*linked)->variables.size(), 2u);
  EXPECT_EQ((*linked)->variables[0].name, "x.2");
  EXPECT_EQ((*linked)->variables[0].bytes, 3u);
  EXPECT_EQ((*linked)->variables[1].name, "x");
  EXPECT_EQ((*linked)->variables[1].bytes, 7u);
}

TEST(PtxMerge, SourceFilesAreThoseOfTheirPart) {
  const auto part = [](const std::string& name, const std::string& file) {
    return fmt::format(".func {}() {{\n.loc 2 5 0\nret;\n.loc 1 6 0\nret; }}\n.file 1 \"{}\"\n", name, file);
  };
  const auto linked = Linked({part("f", "a.cu"), part("g", "b.cu")});
  ASSERT_TRUE(linked);
  const auto file = [&](size_t function, size_t line) {
    return (*linked)->files.at((*linked)->functions.at(function)->source_lines.at(line).file);
  };
  EXPECT_EQ(file(0, 1), "a.cu");
  EXPECT_EQ(file(1, 1), "b.cu");
  EXPECT_EQ(file(1, 0), "");
}

}  // namespace
}  // namespace vgpud::ptx
