// SPDX-License-Identifier: Apache-2.0
#include "gpu/ptx/parser.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/soft/rig/ptx_dump.h"

namespace vgpud::ptx {
namespace {

constexpr std::string_view kHeader = ".version 9.0\n.target sm_75\n.address_size 64\n";
constexpr std::string_view kModule = R"(
.global .align 4 .b8 table[64];
.extern .shared .align 16 .b8 dynamic[];
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.func (.param .b32 result) twice (.param .b32 x) ;
.visible .entry k(.param .u64 first, .param .align 8 .b8 second[24])
{
  .reg .pred %p<4>;
  .reg .b16 %rs<3>;
  .reg .b32 %r<20>;
  .reg .b64 %rd<10>;
  .reg .f32 %f<10>;
  .reg .v4 .f32 v;
  .reg .pred q;
  .local .align 8 .b8 depot[16];
)";

GpuResult<std::unique_ptr<Module>> ParseText(const std::string& text) { return Parse(text); }

std::string DumpBody(const Module& module, const Function& function) {
  std::string out;
  for (const Instruction& instruction : function.code)
    out += fmt::format("{}{}", out.empty() ? "" : "; ", Dump(module, function, instruction));
  return out;
}

const Function* Find(const Module& module, std::string_view name) {
  for (const auto& function : module.functions)
    if (function->name == name) return function.get();
  return nullptr;
}

const Variable* FindVariable(const Module& module, std::string_view name) {
  for (const Variable& variable : module.variables)
    if (variable.name == name) return &variable;
  return nullptr;
}

// --- statements ---

struct BodyCase {
  const char* name;
  const char* body;
  const char* expected;
};
class BodyTest : public testing::TestWithParam<BodyCase> {};

TEST_P(BodyTest, Parses) {
  const BodyCase& c = GetParam();
  const auto module = ParseText(std::string(kHeader) + std::string(kModule) + c.body + "\n}\n");
  ASSERT_TRUE(module) << module.error().text;
  const Function* kernel = Find(**module, "k");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(DumpBody(**module, *kernel), c.expected);
}

INSTANTIATE_TEST_SUITE_P(
    , BodyTest,
    testing::ValuesIn(std::vector<BodyCase>{
        {"plain", "add.s32 %r1, %r2, -5;", "add.s32 %r1, %r2, -5"},
        {"no_operands", "ret;", "ret"},
        {"guards", "@%p1 mov.u32 %r1, 1; @!q exit;", "@%p1 mov.u32 %r1, 1; @!q exit"},
        {"float_bits", "mov.f32 %f1, 0f3F800000;", "mov.f32 %f1, f32:3f800000"},
        {"negative_float", "mov.f32 %f1, -0f3F800000;", "mov.f32 %f1, f32:bf800000"},
        {"double_bits", "mov.f64 %rd1, 0d4000000000000000;", "mov.f64 %rd1, f64:4000000000000000"},
        {"expression", "mov.u32 %r1, (1<<4|3)*2-~0;", "mov.u32 %r1, 39"},
        {"expression_choice", "mov.u32 %r1, 3>2 && 0==0 ? 7 : 8;", "mov.u32 %r1, 7"},
        {"unsigned_division", "mov.u64 %rd1, 0xFFFFFFFFFFFFFFFE/2;", "mov.u64 %rd1, 9223372036854775807"},
        {"lowest_by_minus_one", "mov.u64 %rd1, (-9223372036854775807-1)/-1;", "mov.u64 %rd1, -9223372036854775808"},
        {"cast", "mov.u64 %rd1, (.s64)5;", "mov.u64 %rd1, 5"},
        {"warp_size", "mov.u32 %r1, WARP_SZ;", "mov.u32 %r1, special:WARP_SZ"},
        {"specials", "mov.u32 %r1, %tid.x; mov.u32 %r2, %laneid; mov.u64 %rd1, %clock64; mov.u32 %r3, %envreg2;",
         "mov.u32 %r1, special:%tid.x; mov.u32 %r2, special:%laneid; mov.u64 %rd1, special:%clock64; "
         "mov.u32 %r3, special:%envreg2"},
        {"modifier_order", "vote.ballot.sync.b32 %r1, %p1, -1;", "vote.ballot.sync.b32 %r1, %p1, -1"},
        {"scoped_modifiers", "ld.shared::cta.L2::128B.b32 %r1, [%r2];", "ld.shared::cta.L2::128B.b32 %r1, [%r2]"},
        {"pair", "setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3;", "setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3"},
        {"pair_sink", "elect.sync _|%p1, -1; shfl.sync.idx.b32 %r1|_, %r2, 0, 31, -1;",
         "elect.sync _|%p1, -1; shfl.sync.idx.b32 %r1, %r2, 0, 31, -1"},
        {"sink", "atom.add.u32 _, [%rd1], 1;", "atom.add.u32 _, [%rd1], 1"},
        {"address_offsets", "ld.global.u32 %r1, [%rd1+8]; ld.global.u32 %r1, [%rd1+-8]; ld.global.u32 %r1, [%rd1-4+1];",
         "ld.global.u32 %r1, [%rd1+8]; ld.global.u32 %r1, [%rd1-8]; ld.global.u32 %r1, [%rd1-3]"},
        {"address_symbols",
         "ld.param.u64 %rd1, [first]; ld.param.u32 %r1, [second+16]; st.local.u32 [depot+4], %r1; "
         "ld.global.u8 %rs1, [table+63]; ld.shared.u32 %r2, [dynamic];",
         "ld.param.u64 %rd1, [param:first]; ld.param.u32 %r1, [param:second+16]; "
         "st.local.u32 [local:depot+4], %r1; ld.global.u8 %rs1, [module:table+63]; "
         "ld.shared.u32 %r2, [module:dynamic]"},
        {"address_immediate", "ld.shared.u32 %r1, [16];", "ld.shared.u32 %r1, [16]"},
        {"texture_address", "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];",
         "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}]"},
        {"symbol_values", "mov.u64 %rd1, table; mov.u64 %rd2, table+8; mov.u64 %rd3, first; mov.u64 %rd4, twice;",
         "mov.u64 %rd1, module:table; mov.u64 %rd2, module:table+8; mov.u64 %rd3, param:first; "
         "mov.u64 %rd4, function:twice"},
        {"vectors", "mov.b64 %rd1, {%r1, %r2}; mov.b32 {%rs1, _}, %r1;",
         "mov.b64 %rd1, {%r1, %r2}; mov.b32 {%rs1, _}, %r1"},
        {"vector_register", "mov.f32 v.x, v.w; ld.global.v4.f32 v, [%rd1]; mov.f32 v.g, %f1;",
         "mov.f32 v.x, v.w; ld.global.v4.f32 {v.x, v.y, v.z, v.w}, [%rd1]; mov.f32 v.y, %f1"},
        {"byte_selector", "vadd.u32.u32.u32 %r1, %r2.b0, %r3.h1;", "vadd.u32.u32.u32 %r1, %r2.b0, %r3.h1"},
        {"labels", "A: bra B; bra.uni A; B:", "bra @2; bra.uni @0"},
        {"label_at_the_end", "@%p1 bra $L__end; ret; $L__end:", "@%p1 bra @2; ret"},
        {"scoped_names",
         "{ .reg .b32 a; mov.u32 a, 1; { .reg .b32 a; mov.u32 a, 2; } mov.u32 a, 3; } { .reg .b32 a; mov.u32 a, 4; }",
         "mov.u32 a, 1; mov.u32 a, 2; mov.u32 a, 3; mov.u32 a, 4"},
        {"scoped_labels", "{ L: bra L; } { bra L; bra M; L: } M: ret;", "bra @0; bra @3; bra @3; ret"},
        {"inner_register_hides_range", "{ .reg .f64 %r7; mov.f64 %r7, 0d0000000000000000; } mov.u32 %r7, 0;",
         "mov.f64 %r7, f64:0; mov.u32 %r7, 0"},
        {"call",
         "{ .param .b64 p0; st.param.b64 [p0+0], %rd1; .param .b64 p1; st.param.b64 [p1], %rd2; .param .b32 r0; "
         "call.uni (r0), vprintf, (p0, p1); ld.param.b32 %r1, [r0+0]; }",
         "st.param.b64 [call:p0], %rd1; st.param.b64 [call:p1], %rd2; "
         "call.uni (call:r0), function:vprintf, (call:p0, call:p1); ld.param.b32 %r1, [call:r0]"},
        {"indirect_call",
         "{ .param .b32 r0; .param .b32 p0; proto : .callprototype (.param .b32 _) _ (.param .b32 _) ; "
         "call (r0), %rd1, (p0), proto; call %rd1, (), proto; call twice; }",
         "call (call:r0), %rd1, (call:p0), proto:proto; call %rd1, (), proto:proto; call function:twice"},
        {"jump_table", "t: .branchtargets A, B, A; brx.idx %r1, t; A: ret; B:", "brx.idx %r1, (@1, @2, @1); ret"},
        {"noise", ".loc 1 2 3, function_name $L__info0+4, inlined_at 1 5 6\n.pragma \"nounroll\"; ; /* x */ ret;",
         "ret"},
    }),
    [](const auto& p) { return std::string(p.param.name); });

// --- errors ---

struct ErrorCase {
  const char* name;
  const char* text;  // starts on line 4, behind kHeader
  const char* message;
};
class ErrorTest : public testing::TestWithParam<ErrorCase> {};

TEST_P(ErrorTest, NamesLineAndPlace) {
  const auto module = ParseText(std::string(kHeader) + GetParam().text);
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().status, CuStatus::kInvalidPtx);
  EXPECT_EQ(module.error().text, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    , ErrorTest,
    testing::ValuesIn(std::vector<ErrorCase>{
        {"undeclared", ".entry k() {\n mov.u32 %r1, x; }", "PTX line 5: unknown register, near `%r1`"},
        {"undeclared_name", ".entry k() { .reg .b32 r;\n mov.u32 r, x; }", "PTX line 5: undeclared name, near `x`"},
        {"outside_range", ".entry k() { .reg .b32 %r<2>; mov.u32 %r2, 1; }",
         "PTX line 4: unknown register, near `%r2`"},
        {"leading_zero", ".entry k() { .reg .b32 %r<2>; mov.u32 %r01, 1; }",
         "PTX line 4: unknown register, near `%r01`"},
        {"undefined_label", ".entry k() {\n\n bra L; }", "PTX line 6: undefined label, near `L`"},
        {"label_of_another_block", ".entry k() { { L: } bra L; }", "PTX line 4: undefined label, near `L`"},
        {"label_twice", ".entry k() { L: L: }", "PTX line 4: label defined twice, near `L`"},
        {"register_twice", ".entry k() { .reg .b32 a; .reg .b32 a; }", "PTX line 4: register declared twice, near `a`"},
        {"function_twice", ".entry k() { }\n.entry k() { }", "PTX line 5: function defined twice, near `k`"},
        {"variable_twice", ".global .u32 a;\n.global .u32 a;", "PTX line 5: name declared twice, near `a`"},
        {"guard", ".entry k() { .reg .b32 a; @a ret; }", "PTX line 4: a guard must be a predicate register, near `a`"},
        {"no_semicolon", ".entry k() { bra L\n}", "PTX line 5: expected `,` or `;`, near `}`"},
        {"no_operand", ".entry k() { ret\n}", "PTX line 5: expected an operand, near `}`"},
        {"open_function", ".entry k() { ret;", "PTX line 4: function without its closing `}`, near `end of text`"},
        {"unknown_directive", ".visble .entry k() { }", "PTX line 4: unknown directive, near `.visble`"},
        {"address_32", ".address_size 32", "PTX line 4: only .address_size 64 exists here, near `32`"},
        {"bad_align", ".global .align 3 .b8 x;", "PTX line 4: an alignment must be a power of two, near `3`"},
        {"huge_array", ".global .b8 x[0x7fffffffffffffff][16];", "PTX line 4: array size, near `]`"},
        {"overflowing_array", ".global .b64 x[0x8000000000][0x8000000000];",
         "PTX line 4: variable above 1099511627776 bytes, near `[`"},
        {"too_many_registers", ".entry k() { .reg .b32 %r<1000001>; }",
         "PTX line 4: number above 1000000, near `1000001`"},
        {"too_many_initialisers", ".global .b8 x[2] = {1, 2, 3};",
         "PTX line 4: more initialisers than elements, near `3`"},
        {"division_by_zero", ".entry k() { .reg .b32 a; mov.u32 a, 1/0; }", "PTX line 4: division by zero, near `/`"},
        {"large_params", ".entry k(.param .b8 a[32765]) { }", "PTX line 4: number above 32764, near `32765`"},
        {"unprintable", "\x01\x80", "PTX line 4: unknown directive, near `?`"},
    }),
    [](const auto& p) { return std::string(p.param.name); });

TEST(Parse, VersionsAboveNineAreTheirOwnError) {
  const auto module = Parse(".version 10.0\n.target sm_75\n");
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().status, CuStatus::kUnsupportedPtxVersion);
}

TEST(Parse, WithoutVersionItIsNotPtx) {
  EXPECT_FALSE(Parse(""));
  EXPECT_FALSE(Parse("hello"));
  EXPECT_FALSE(Parse(".target sm_75"));
}

TEST(Parse, DeepNestingIsAnErrorNotAStackOverflow) {
  const std::string deep(1'000'000, '(');
  EXPECT_FALSE(ParseText(std::string(kHeader) + ".entry k() { .reg .b32 a; mov.u32 a, " + deep));
  EXPECT_FALSE(ParseText(std::string(kHeader) + ".entry k() " + std::string(1'000'000, '{')));
  EXPECT_FALSE(ParseText(std::string(kHeader) + ".entry k() { .reg .b32 a; mov.u32 a, " + std::string(1'000'000, '-')));
  EXPECT_FALSE(ParseText(std::string(kHeader) + ".global .b8 x[2] = " + std::string(1'000'000, '{')));
  EXPECT_FALSE(ParseText(std::string(kHeader) + ".section .x " + std::string(1'000'000, '{')));
}

// --- module level ---

TEST(ParseModule, HeaderAndNoise) {
  const auto module = ParseText(
      "// comment\n.version 8.7\n.target sm_90a, texmode_independent, debug\n.address_size 64\n.file 1 \"a.cu\", 12, "
      "34\n"
      ".pragma \"x\";\n.section .debug_str { .b8 1,2\nlabel: .b64 .debug_str+4 }\n.alias a, b;\n");
  ASSERT_TRUE(module) << module.error().text;
  EXPECT_EQ((*module)->version, 87u);
  EXPECT_EQ((*module)->target.sm, 90u);
}

TEST(ParseModule, ParameterLayoutIsNatural) {
  const auto module =
      ParseText(std::string(kHeader) +
                ".entry k(.param .u8 a, .param .u64 .ptr .global .align 16 b, .param .align 16 .b8 c[5], "
                ".param .u16 d) .maxntid 128, 2 .minnctapersm 4 .pragma \"x\"; { ret; }");
  ASSERT_TRUE(module) << module.error().text;
  const Function& k = *Find(**module, "k");
  ASSERT_EQ(k.params.size(), 4u);
  EXPECT_EQ(k.params[0].offset, 0u);
  EXPECT_EQ(k.params[1].offset, 8u);
  EXPECT_EQ(k.params[1].align, 8u);
  EXPECT_EQ(k.params[2].offset, 16u);
  EXPECT_EQ(k.params[2].bytes, 5u);
  EXPECT_EQ(k.params[3].offset, 22u);
  EXPECT_EQ(k.param_bytes, 24u);
  EXPECT_TRUE(k.is_kernel);
  EXPECT_EQ(k.max_threads[0], 128u);
  EXPECT_EQ(k.max_threads[1], 2u);
  EXPECT_EQ(k.max_threads[2], 1u);
  EXPECT_FALSE(k.required_threads);
}

TEST(ParseModule, DeclarationThenDefinitionIsOneFunction) {
  const auto module = ParseText(std::string(kHeader) +
                                ".func (.param .b32 r) f (.param .b32 x);\n"
                                ".func (.param .b32 r) f (.param .b32 y) { .reg .b32 %r<2>; ld.param.b32 %r1, [y]; "
                                "st.param.b32 [r], %r1; ret; }\n.func f (.param .b32 x);");
  ASSERT_TRUE(module) << module.error().text;
  ASSERT_EQ((*module)->functions.size(), 1u);
  const Function& f = *(*module)->functions[0];
  EXPECT_FALSE(f.is_extern);
  EXPECT_EQ(DumpBody(**module, f), "ld.param.b32 %r1, [param:y]; st.param.b32 [result:r], %r1; ret");
}

TEST(ParseModule, CallSpaceIsReusedByLaterBlocks) {
  const auto module = ParseText(std::string(kHeader) +
                                ".entry k() { .param .b32 a; { .param .b64 b; .param .b8 c; } { .param .b64 d; } }");
  ASSERT_TRUE(module) << module.error().text;
  const auto& params = Find(**module, "k")->body_params;
  ASSERT_EQ(params.size(), 4u);
  EXPECT_EQ(params[0].offset, 0u);
  EXPECT_EQ(params[1].offset, 8u);
  EXPECT_EQ(params[2].offset, 16u);
  EXPECT_EQ(params[3].offset, 8u);
}

struct VariableCase {
  const char* name;
  const char* text;  // declares x
  uint64_t bytes;
  uint32_t align;
  std::vector<uint8_t> init;
};
class VariableTest : public testing::TestWithParam<VariableCase> {};

TEST_P(VariableTest, HasSizeAndBytes) {
  const VariableCase& c = GetParam();
  const auto module = ParseText(std::string(kHeader) + c.text);
  ASSERT_TRUE(module) << module.error().text;
  const Variable* x = FindVariable(**module, "x");
  ASSERT_NE(x, nullptr);
  EXPECT_EQ(x->bytes, c.bytes);
  EXPECT_EQ(x->align, c.align);
  EXPECT_EQ(x->init, c.init);
}

INSTANTIATE_TEST_SUITE_P(
    , VariableTest,
    testing::ValuesIn(std::vector<VariableCase>{
        {"scalar", ".visible .global .align 8 .u32 x = 0x01020304;", 4, 8, {4, 3, 2, 1}},
        {"negative", ".global .s16 x = -2;", 2, 2, {0xfe, 0xff}},
        {"zeros", ".global .f64 x[3];", 24, 8, {}},
        {"bytes", ".const .align 4 .b8 x[8] = {1, 2, 255};", 8, 4, {1, 2, 255}},
        {"counted", ".global .u16 x[] = {1, 2};", 4, 2, {1, 0, 2, 0}},
        {"counted_rows", ".global .u8 x[][2] = {{1}, {2, 3}, {4}};", 6, 1, {1, 0, 2, 3, 4}},
        {"rows", ".global .u8 x[2][3] = {{1, 2}, {3}};", 6, 1, {1, 2, 0, 3}},
        {"flat_rows", ".global .u8 x[2][2] = {1, 2, 3};", 4, 1, {1, 2, 3}},
        {"vector", ".global .v2 .u8 x = {1, 2};", 2, 2, {1, 2}},
        {"vectors", ".global .v2 .u8 x[2] = {{1, 2}, {3, 4}};", 4, 2, {1, 2, 3, 4}},
        {"float", ".global .f32 x = 0f3F800000;", 4, 4, {0, 0, 0x80, 0x3f}},
        {"decimal_float", ".global .f32 x = 1.0;", 4, 4, {0, 0, 0x80, 0x3f}},
        {"integer_float", ".global .f32 x = 1;", 4, 4, {0, 0, 0x80, 0x3f}},
        {"double", ".global .f64 x = 0d3FF0000000000000;", 8, 8, {0, 0, 0, 0, 0, 0, 0xf0, 0x3f}},
        {"expression", ".global .u32 x[2*2] = {1+1};", 16, 4, {2, 0, 0, 0}},
        {"managed", ".visible .global .attribute(.managed) .align 4 .u32 x = 7;", 4, 4, {7, 0, 0, 0}},
        {"dynamic", ".extern .shared .align 16 .b8 x[];", 0, 16, {}},
        {"defined_later", ".extern .global .u32 x;\n.global .u32 x = 5;", 4, 4, {5, 0, 0, 0}},
        {"declared_again", ".global .u32 x = 5;\n.extern .global .u32 x;", 4, 4, {5, 0, 0, 0}},
        {"texref", ".global .texref x;", 8, 8, {}},
    }),
    [](const auto& p) { return std::string(p.param.name); });

TEST(ParseModule, AddressesInInitialisers) {
  const auto module =
      ParseText(std::string(kHeader) +
                ".global .u32 y[4];\n.global .u64 x[4] = {y, generic(y)+8, f, y-4};\n"
                ".global .b8 m[2] = {0xFF(y), 0xFF00(generic(y)+1)};\n.weak .global .attribute(.managed) .u32 w;");
  ASSERT_TRUE(module) << module.error().text;
  const Variable& x = *FindVariable(**module, "x");
  ASSERT_EQ(x.relocations.size(), 4u);
  EXPECT_EQ(x.relocations[0].symbol, "y");
  EXPECT_FALSE(x.relocations[0].generic);
  EXPECT_TRUE(x.relocations[1].generic);
  EXPECT_EQ(x.relocations[1].addend, 8);
  EXPECT_EQ(x.relocations[1].offset, 8u);
  EXPECT_EQ(x.relocations[2].symbol, "f");
  EXPECT_EQ(x.relocations[3].addend, -4);
  const Variable& m = *FindVariable(**module, "m");
  ASSERT_EQ(m.relocations.size(), 2u);
  EXPECT_EQ(m.relocations[1].shift, 8u);
  EXPECT_EQ(m.relocations[1].bytes, 1u);
  EXPECT_EQ(m.relocations[1].addend, 1);
  EXPECT_TRUE(FindVariable(**module, "w")->is_managed);
  EXPECT_TRUE(FindVariable(**module, "w")->is_weak);
}

TEST(ParseModule, StatementTextAndLineAreKept) {
  const auto module = ParseText(std::string(kHeader) + ".entry k() {\n .reg .b32 %r<2>;\n mov.u32\t%r1,\n 5 ;\n}");
  ASSERT_TRUE(module) << module.error().text;
  const Instruction& mov = Find(**module, "k")->code.at(0);
  EXPECT_EQ(mov.line, 6u);
  EXPECT_EQ(mov.text, "mov.u32\t%r1,\n 5 ");
}

}  // namespace
}  // namespace vgpud::ptx
