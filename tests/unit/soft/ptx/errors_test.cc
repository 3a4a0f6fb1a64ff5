// SPDX-License-Identifier: Apache-2.0
// Texts that are no PTX: what is said of each, row by row.
#include <gtest/gtest.h>

#include <string>

#include "gpu/ptx/parser.h"

namespace vgpud::ptx {
namespace {

struct Case {
  const char* text;
  const char* why;
};

void ExpectRefused(const std::string& text, const Case& c) {
  const auto module = Parse(text);
  ASSERT_FALSE(module) << c.text;
  EXPECT_EQ(module.error().status, CuStatus::kInvalidPtx) << c.text;
  EXPECT_NE(module.error().text.find(c.why), std::string::npos) << c.text << "\n" << module.error().text;
}

constexpr Case kOfTheHeader[] = {
    {".version 9", "expected a version such as 9.0, near `9`"},
    {".version", "expected a version such as 9.0, near `end of text`"},
    {".version x", "expected a version such as 9.0"},
    {".version 9.100", "expected a version such as 9.0"},
    {".version 100.0", "expected a version such as 9.0"},
    {".version 1e1.0", "expected a version such as 9.0"},
    {".version 9.", "expected a version such as 9.0"},
    {".version 9e0", "expected a version such as 9.0"},
    {".target sm_75\n.version 9.0", "expected .version first"},
    {".version 9.0\n.target sm_", "expected a target such as sm_75, near `sm_`"},
    {".version 9.0\n.target sm_75ab", "expected a target such as sm_75"},
    {".version 9.0\n.target sm_90b", "expected a target such as sm_75"},
    {".version 9.0\n.target sm_x", "expected a target such as sm_75"},
    {".version 9.0\n.target 75", "expected a name"},
    {".version 9.0\n.target sm_75,", "expected a name"},
    {".version 9.0\n.address_size 63", "only .address_size 64 exists here, near `63`"},
    {".version 9.0\n.address_size 65", "only .address_size 64 exists here"},
    {".version 9.0\n.address_size", "expected a number"},
    {".version 9.0\n.file \"x\"", "expected a number"},
    {".version 9.0\n.file 1", "expected a file name"},
    {".version 9.0\n.file 1 \"x\",", "expected a number"},
    {".version 9.0\n.loc 1 2", "expected a number"},
    {".version 9.0\n.loc 1 2 3, 4", "expected a name"},
    {".version 9.0\n.loc 1 2 3, function_name", "expected a name"},
    {".version 9.0\n.loc 1 2 3, function_name f+x", "expected a number"},
    {".version 9.0\n.loc 1 2 3, inlined_at 1 2;", "expected a number"},
    {".version 9.0\n.loc 1 2 3, other f", "unknown attribute of .loc, near `other`"},
    {".version 9.0\n.section {", "expected a section name"},
    {".version 9.0\n.section .debug", "expected `{`"},
    {".version 9.0\n.section .debug { { }", "`{` without `}`"},
    {".version 9.0\n.pragma \"x\"", "expected `;`"},
    {".version 9.0\n.alias a, b", "expected `;`"},
    {".version 9.0\n.visible .bogus", "unknown directive, near `.bogus`"},
    {".version 9.0\n.reg .b32 x;", "unknown directive"},
    {".version 9.0\n.local .b32 x;", "unknown directive"},
    {"", "no .version directive"},
    {";;", "no .version directive"},
};
TEST(PtxErrors, OfTheHeader) {
  for (const Case& c : kOfTheHeader) ExpectRefused(c.text, c);
}

constexpr Case kOfModules[] = {
    {".global x;", "expected a type, near `x`"},
    {".global .b8 .u8 x;", "unknown word in a declaration, near `.u8`"},
    {".global .v3 .b8 x;", "unknown word in a declaration, near `.v3`"},
    {".global .pred x;", "a variable can't have this type"},
    {".global .b8 x", "expected `;`"},
    {".global .b8 x, ;", "expected a name"},
    {".global .b8 x[2;", "expected `]`"},
    {".global .b8 x[2][];", "only the first dimension may be empty"},
    {".global .b8 x[2] = {1, 2;", "expected `}`"},
    {".global .b8 x[2] = 1;", "expected `{`"},
    {".global .b8 x = {1;", "expected `}`"},
    {".global .b8 x = {1, 2};", "expected `}`"},
    {".global .b8 x[2] = {{1}};", "more braces than dimensions"},
    {".global .b8 x[2][2] = {{1, 2, 3}};", "more initialisers than elements, near `3`"},
    {".global .b8 x[2][2] = {1, 2, 3, 4, 5};", "more initialisers than elements, near `5`"},
    {".global .b8 x[2][2] = {{1}, {2}, {3}};", "more initialisers than elements, near `{`"},
    {".global .b8 x[2][2] = {1, 2, 3, {4}};", "more initialisers than elements, near `{`"},
    {".global .v2 .b8 x = {1, 2, 3};", "more initialisers than elements, near `3`"},
    {".global .b8 x[1] = {y+1.0};", "an offset must be an integer"},
    {".global .b64 x[1] = {generic(5)};", "expected a name"},
    {".global .b64 x[1] = {generic(y};", "expected `)`"},
    {".global .b8 x[1] = {0xFE(y)};", "a mask must select one byte, near `0xFE`"},
    {".global .b8 x[1] = {0x1FF(y)};", "a mask must select one byte"},
    {".global .b8 x[1] = {0xFF0(y)};", "a mask must select one byte"},
    {".global .b8 x[1] = {0(y)};", "a mask must select one byte"},
    {".global .b8 x[1] = {0xFFFF(y)};", "a mask must select one byte"},
    {".global .b8 x[1] = {0xFF(y};", "expected `)`"},
    {".global .b8 x[1][4294967296] = {{1}, {y}};", "more initialisers than elements"},
    {".global .b8 x[2][4294967296] = {{1}, {y}};", "initialiser too far inside its variable"},
    {".global .b8 x[2][4294967295] = {{1}, {y}};", "initialiser too far inside its variable"},
    {".global .texref x = 5;", "expected `{`"},
    {".global .texref x = {5;", "`{` without `}`"},
    {".global .align x .b8 y;", "expected a number"},
    {".global .attribute .b8 y;", "expected `(`"},
    {".global .attribute(.managed .b8 y;", "`(` without `)`"},
    {".const .b8 x;\n.global .b8 x;", "name declared twice, near `x`"},
    {".func f();\n.global .b8 f;", "name declared twice, near `f`"},
    {".global .b8 f;\n.func f();", "name declared twice, near `f`"},
    {".func f() { }\n.func f() { }", "function defined twice, near `f`"},
    {".extern .func f() { }", ".extern function with a body, near `f`"},
    {".func 5();", "expected a name"},
    {".func f()", "expected `;`"},
    {".func f() .bogus;", "unknown directive of a function, near `.bogus`"},
    {".func f(x);", "expected .param"},
    {".func f(.reg .b32 x);", "parameters in .reg are not known"},
    {".func f(.param x);", "expected a type, near `x`"},
    {".func f(.param .b32 .b32 x);", "unknown word in a parameter, near `.b32`"},
    {".func f(.param .v8 .b32 x);", "unknown word in a parameter, near `.v8`"},
    {".func f(.param .align 3 .b32 x);", "an alignment must be a power of two"},
    {".func f(.param .b32 x[2);", "expected `]`"},
    {".func f(.param .b32 x[y]);", "expected a number"},
    {".func f(.param .b32 x .param .b32 y);", "expected `)`"},
    {".func f(.param .b32 x, .param .b32 x) { }", "parameter declared twice, near `x`"},
    {".func (.param .b32 x) f(.param .b32 x) { }", "parameter declared twice, near `x`"},
    {".entry (.param .b32 r) k() { }", "expected a name"},
    {".entry k() .maxntid { }", "expected a number"},
    {".entry k() .maxntid 1, 2, 3, 4 { }", "more than three dimensions, near `4`"},
    {".entry k() .maxntid 4294967296 { }", "number above 4294967295"},
    {".entry k() .pragma \"x\"", "expected `;`"},
};
TEST(PtxErrors, OfModules) {
  for (const Case& c : kOfModules) ExpectRefused(std::string(".version 9.0\n.target sm_75\n") + c.text, c);
}

constexpr Case kOfStatements[] = {
    {".reg x;", "expected a type"},
    {".reg .b32 5;", "expected a name"},
    {".reg .b32 x", "expected `;`"},
    {".reg .b32 x<2;", "expected `>`"},
    {".reg .b32 x<y>;", "expected a number"},
    {".reg .v2 .b32 x<2>;", "a range of vector registers, near `x`"},
    {".reg .b32 %r<2>; .reg .b32 %r<2>;", "register declared twice"},
    {".global .b32 x;", "unknown directive in a function, near `.global`"},
    {".param x;", "expected a type"},
    {".param .b32 x[2;", "expected `]`"},
    {".param .b32 x, x;", "name declared twice, near `x`"},
    {".shared .b32 x; .shared .b32 x;", "name declared twice"},
    {".local .b32 x; .shared .b32 x;", "name declared twice"},
    {".loc 1 2;", "expected a number"},
    {".pragma \"x\" }", "expected `;`"},
    {"5;", "expected an instruction, near `5`"},
    {"T: .branchtargets ;", "expected a name"},
    {"T: .branchtargets A B;", "expected `;`"},
    {"T: .branchtargets A; T: .branchtargets A; A:", "name declared twice, near `T`"},
    {"T: .callprototype _; T: .callprototype _;", "name declared twice, near `T`"},
    {"T: .callprototype ;", "expected a name"},
    {"T: .callprototype _ () .bogus;", "unknown directive of a function"},
    {"T: .callprototype _ () ret;", "expected `;`"},
    {"T: .calltargets 5;", "expected a name"},
    {"T: .calltargets f g;", "expected `;`"},
    {"@5 ret;", "expected a name"},
    {"@a ret;", "a guard must be a predicate register, near `a`"},
    {"@nobody ret;", "a guard must be a predicate register, near `nobody`"},
    {"@p .reg .b32 b;", "expected a name"},
    {"ret a b;", "expected `,` or `;`, near `b`"},
    {"mov.b32 a, ;", "expected an operand"},
    {"mov.b32 a, nobody;", "undeclared name, near `nobody`"},
    {"mov.b32 a, %nobody;", "unknown register, near `%nobody`"},
    {"mov.b32 a, %tid;", "unknown register, near `%tid`"},
    {"mov.b32 a, %tid .x;", "unknown register, near `%tid`"},
    {"mov.b32 a, %tid.q;", "unknown register, near `%tid.q`"},
    {"mov.b32 a .b0, 1;", "expected `,` or `;`, near `.b0`"},
    {"mov.b32 v.q, 1;", "no such component, near `.q`"},
    {"mov.b32 v.xy, 1;", "no such component"},
    {"mov.b32 v.z, 1;", "no such component, near `.z`"},
    {"mov.b32 v.b, 1;", "no such component, near `.b`"},
    {"mov.b32 w.e, 1;", "no such component"},
    {"mov.b32 a|, 1;", "expected a name"},
    {"mov.b32 a|5, 1;", "expected a name"},
    {"mov.b32 a|nobody, 1;", "expected a register behind `|`, near `nobody`"},
    {"mov.b32 a|v, 1;", "expected a register behind `|`, near `v`"},
    {"mov.b32 !%tid.x, 1;", "only a predicate can be negated, near `%tid`"},
    {"mov.b32 !s, 1;", "only a predicate can be negated, near `s`"},
    {"mov.b32 a, s[1.0];", "a subscript must be an integer"},
    {"mov.b32 a, s[1;", "expected `]`"},
    {"mov.b32 a, s+1.0;", "an offset must be an integer"},
    {"mov.b32 a, T; T: .branchtargets A; A:", "undeclared name, near `T`"},
    {"T: .branchtargets A; mov.b32 a, T; A:", "a branch table can't stand here, near `T`"},
    {"T: .branchtargets A; brx.idx T, T; A:", "a branch table can't stand here, near `T`"},
    {"brx.idx a, T;", "undeclared name, near `T`"},
    {"mov.b32 {a, {a}}, a;", "vectors hold plain operands"},
    {"mov.b32 {a, [a]}, a;", "vectors hold plain operands"},
    {"mov.b32 {a, a, a;", "expected `}`"},
    {"mov.b32 {}, a;", "expected an operand"},
    {"call (a, [a]), f;", "addresses are no call arguments"},
    {"call (a, a;", "expected `)`"},
    {"call (a) f;", "expected `,`"},
    {"call f, (a), proto;", "undeclared name, near `proto`"},
    {"ld.b32 a, [[a]];", "expected an address"},
    {"ld.b32 a, [{a}];", "expected an address"},
    {"ld.b32 a, [1.0];", "an address must be an integer"},
    {"ld.b32 a, [%tid.x];", "no address can start like this, near `%tid`"},
    {"ld.b32 a, [k];", "no address can start like this, near `k`"},
    {"ld.b32 a, [v];", "no address can start like this, near `v`"},
    {"ld.b32 a, [a, [a]];", "addresses can't be nested"},
    {"ld.b32 a, [a+1.0];", "an offset must be an integer"},
    {"ld.b32 a, [a;", "expected `]`"},
    {"bra 5, ;", "expected an operand"},
    {"{ ret;", "function without its closing `}`"},
};
TEST(PtxErrors, OfStatements) {
  for (const Case& c : kOfStatements)
    ExpectRefused(std::string(".version 9.0\n.target sm_75\n.entry k() { .reg .b32 a; .reg .pred p; .reg .v2 .b32 v; "
                              ".reg .v4 .b32 w; .shared .b32 s[2]; ") +
                      c.text + " }",
                  c);
}

TEST(PtxErrors, AVersionAboveNineIsNamed) {
  for (const char* version : {"10.0", "11.5", "99.99"}) {
    const auto module = Parse(".version " + std::string(version));
    ASSERT_FALSE(module) << version;
    EXPECT_EQ(module.error().status, CuStatus::kUnsupportedPtxVersion);
    EXPECT_EQ(module.error().text,
              "PTX line 1: PTX versions above 9.x are not known, near `" + std::string(version) + "`");
  }
  EXPECT_TRUE(Parse(".version 9.99"));
  EXPECT_TRUE(Parse(".version 0.0"));
}

}  // namespace
}  // namespace vgpud::ptx
