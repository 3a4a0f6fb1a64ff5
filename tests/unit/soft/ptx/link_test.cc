// SPDX-License-Identifier: Apache-2.0
// Programs of several PTX modules: what one part declares and another defines.
#include "tests/unit/soft/rig/fatbin_builder.h"
#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

std::string Image(const std::vector<std::string>& parts) {
  FatbinBuilder image;
  for (const std::string& part : parts)
    image.Add(FatbinBuilder::kPart, 0,
              FatbinBuilder{}.Add(FatbinBuilder::kPtx, 75, ".version 7.5\n.target sm_75\n" + part).Build());
  return image.Build();
}

// A function of no parameters that returns a number.
std::string Function(const std::string& name, uint32_t value, const std::string& linkage) {
  return linkage + " .func (.param .b32 r) " + name + "() { st.param.b32 [r], " + std::to_string(value) + "; ret; }\n";
}
// A kernel that writes what `calls` (names of functions) return, one word each.
std::string Kernel(const std::string& name, const std::vector<std::string>& calls, const std::string& more = "") {
  std::string text = ".visible .entry " + name + "(.param .u64 out) {\n.reg .b64 %rd<4>; .reg .b32 %r<4>;\n";
  text += "ld.param.u64 %rd1, [out];\n";
  for (size_t n = 0; n < calls.size(); ++n)
    text += "{ .param .b32 v; call.uni (v), " + calls[n] + ", (); ld.param.b32 %r1, [v]; st.global.u32 [%rd1+" +
            std::to_string(4 * n) + "], %r1; }\n";
  return text + more + "ret; }\n";
}
std::string Declared(const std::string& name) { return ".extern .func (.param .b32 r) " + name + "();\n"; }

std::vector<uint32_t> Written(const std::string& image, uint32_t words) {
  SoftMachine m;
  const Outcome loaded = m.Load(image);
  EXPECT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  if (loaded.status != CuStatus::kSuccess) return {};
  const GpuVa out = m.Alloc(words * 4);
  const Outcome ran = m.Run("k", {{1, 1, 1}, {1, 1, 1}, 0}, Params().Add(out));
  EXPECT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
  return m.Download<uint32_t>(out, words);
}

TEST(PtxLink, ADeclarationFindsTheDefinitionOfAnotherPart) {
  EXPECT_EQ(Written(Image({Declared("f") + Kernel("k", {"f"}), Function("f", 7, ".visible")}), 1),
            std::vector<uint32_t>{7});
  EXPECT_EQ(Written(Image({Function("f", 7, ".visible"), Declared("f") + Kernel("k", {"f"})}), 1),
            std::vector<uint32_t>{7});
}

TEST(PtxLink, EachPartHasItsOwnOfWhatIsNotVisible) {
  const std::string second = Function("local", 2, "") +
                             ".visible .func (.param .b32 r) f() { .reg .b32 %r<2>; { .param .b32 v; call.uni (v), "
                             "local, (); ld.param.b32 %r1, [v]; } st.param.b32 [r], %r1; ret; }\n";
  EXPECT_EQ(Written(Image({Function("local", 1, "") + Declared("f") + Kernel("k", {"local", "f"}), second}), 2),
            (std::vector<uint32_t>{1, 2}));
}

TEST(PtxLink, TheFirstWeakOneStaysUnlessOneIsNotWeak) {
  const std::string kernel = Declared("f") + Kernel("k", {"f"});
  EXPECT_EQ(Written(Image({kernel, Function("f", 1, ".weak"), Function("f", 2, ".weak")}), 1),
            std::vector<uint32_t>{1});
  EXPECT_EQ(Written(Image({kernel, Function("f", 1, ".weak"), Function("f", 2, ".visible")}), 1),
            std::vector<uint32_t>{2});
}

TEST(PtxLink, VariablesAndTheirInitialisersFindEachOther) {
  const std::string first = ".extern .global .u32 there;\n.global .u32 own = 3;\n" +
                            Kernel("k", {},
                                   "ld.global.u32 %r1, [there]; st.global.u32 [%rd1], %r1;\n"
                                   "ld.global.u32 %r1, [own]; st.global.u32 [%rd1+4], %r1;\n"
                                   "ld.global.u64 %rd2, [pointer]; ld.global.u32 %r1, [%rd2];\n"
                                   "st.global.u32 [%rd1+8], %r1;\n");
  const std::string second =
      ".global .u32 own = 5;\n.visible .global .u32 there = 9;\n"
      ".visible .global .u64 pointer = own;\n";
  EXPECT_EQ(Written(Image({".extern .global .u64 pointer;\n" + first, second}), 3), (std::vector<uint32_t>{9, 3, 5}));
}

TEST(PtxLink, WhatCannotBeLinkedIsSaidByName) {
  const auto refused = [](const std::vector<std::string>& parts) {
    SoftMachine m;
    const Outcome loaded = m.Load(Image(parts));
    EXPECT_EQ(loaded.status, CuStatus::kInvalidPtx);
    return loaded.text;
  };
  const std::string f = Function("f", 1, ".visible");
  EXPECT_EQ(refused({f, f}), "linking PTX modules: `f` is defined twice");
  EXPECT_EQ(refused({f, ".visible .global .u32 f;\n"}),
            "linking PTX modules: `f` is a function in one and a variable in another");
  EXPECT_EQ(refused({".extern .global .u32 v;\n", ".visible .const .u32 v = 1;\n"}),
            "linking PTX modules: `v` lies in different state spaces");
  EXPECT_EQ(refused({f, ".extern .func (.param .b32 r) f(.param .b32 a);\n"}),
            "linking PTX modules: `f` has different parameters");
}

TEST(PtxLink, WhatIsCalledMustBeDefined) {
  SoftMachine m;
  const Outcome loaded = m.Load(Image({Declared("f") + Kernel("k", {"f"}), Kernel("other", {})}));
  EXPECT_EQ(loaded.status, CuStatus::kInvalidPtx);
  EXPECT_EQ(loaded.text, "Unresolved extern function 'f'");
  EXPECT_EQ(m.Load(Image({Declared("f") + Kernel("k", {"f"}), Function("f", 1, ".visible")})).status,
            CuStatus::kSuccess);
  EXPECT_EQ(m.Load(Image({Declared("f") + Kernel("k", {}), Kernel("other", {})})).status, CuStatus::kSuccess);
  EXPECT_EQ(m.Load(Image({Declared("f") + "// call f, (x);\n" + Kernel("k", {})})).status, CuStatus::kSuccess);
}

TEST(PtxLink, WhatTheDeviceRuntimeLacksIsAnErrorOfTheKernelThatCallsIt) {
  SoftMachine m;
  const Outcome loaded = m.Load(Image({Declared("cudaNew") + Kernel("k", {"cudaNew"}), Kernel("other", {})}));
  ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  const Outcome ran = m.Run("k", {{1, 1, 1}, {1, 1, 1}, 0}, Params().Add(m.Alloc(4)));
  EXPECT_EQ(ran.status, CuStatus::kIllegalInstruction);
  EXPECT_NE(ran.text.find("function cudaNew is not provided"), std::string::npos) << ran.text;
}

}  // namespace
}  // namespace vgpud::soft
