// SPDX-License-Identifier: Apache-2.0
// The same text loaded more than once: decoded once, and yet modules of their own.
#include <fmt/core.h>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

// Counts in a global of its module; another global holds that one's address.
constexpr const char* kCounter = R"(.version 7.8
.target sm_75
.address_size 64
.global .align 4 .u32 counter = 5;
.global .align 8 .u64 where = counter;
.visible .entry k(.param .u64 out)
{
.reg .b32 %r<8>;
.reg .b64 %rd<8>;
ld.param.u64 %rd1, [out];
ld.global.u32 %r1, [counter];
add.u32 %r1, %r1, 1;
st.global.u32 [counter], %r1;
ld.global.u64 %rd2, [where];
mov.u64 %rd3, counter;
sub.u64 %rd4, %rd2, %rd3;
cvt.u32.u64 %r2, %rd4;
add.u32 %r1, %r1, %r2;
st.global.u32 [%rd1], %r1;
ret;
}
)";

std::unique_ptr<GpuModule> LoadText(SoftGpu& gpu, const std::string& text) {
  auto module = gpu.Load(std::as_bytes(std::span(text.data(), text.size())));
  EXPECT_TRUE(module);
  return module ? std::move(*module) : nullptr;
}

const ProgramCode* CodeOf(const GpuModule& module) {
  return static_cast<const SoftModule&>(module).program()->shared.get();
}

class SoftImageCache : public testing::Test {
 protected:
  uint32_t Count(const GpuModule& module) {
    const GpuVa out = m.Alloc(4);
    auto grid = m.gpu.Launch(*module.Function("k"), {{1, 1, 1}, {1, 1, 1}, 0}, Params().Add(out).bytes(), 0);
    EXPECT_TRUE(grid);
    EXPECT_EQ(m.Finish(**grid).status, CuStatus::kSuccess);
    return m.Download<uint32_t>(out, 1)[0];
  }
  SoftMachine m;
};

TEST_F(SoftImageCache, TheSameTextIsDecodedOnce) {
  const auto first = LoadText(m.gpu, kCounter);
  const auto second = LoadText(m.gpu, kCounter);
  const auto third = LoadText(m.gpu, fmt::format("{}\n", kCounter));
  EXPECT_EQ(CodeOf(*first), CodeOf(*second));
  EXPECT_NE(CodeOf(*first), CodeOf(*third));
  EXPECT_EQ(m.gpu.images().hits(), 1u);
  EXPECT_EQ(m.gpu.images().images(), 2u);
}

TEST_F(SoftImageCache, ModulesOfOneTextHaveTheirOwnVariablesAndKernels) {
  const auto first = LoadText(m.gpu, kCounter);
  const auto second = LoadText(m.gpu, kCounter);
  EXPECT_NE(first->Function("k"), second->Function("k"));
  EXPECT_NE(Raw(first->FindGlobal("counter")->address), Raw(second->FindGlobal("counter")->address));
  EXPECT_EQ(Count(*first), 6u);
  EXPECT_EQ(Count(*first), 7u);
  EXPECT_EQ(Count(*second), 6u);
}

TEST_F(SoftImageCache, AModuleLoadedAgainBeginsAnew) {
  auto module = LoadText(m.gpu, kCounter);
  EXPECT_EQ(Count(*module), 6u);
  module.reset();
  module = LoadText(m.gpu, kCounter);
  EXPECT_EQ(m.gpu.images().hits(), 1u);
  EXPECT_EQ(Count(*module), 6u);
}

TEST_F(SoftImageCache, ItKeepsTheLastOnesOnly) {
  for (size_t n = 0; n < 2 * ModuleImageCache::kMaxImages; ++n)
    LoadText(m.gpu, kCounter + std::string("//") + std::to_string(n) + "\n");
  EXPECT_EQ(m.gpu.images().images(), ModuleImageCache::kMaxImages);
  EXPECT_EQ(m.gpu.images().hits(), 0u);
  LoadText(m.gpu, kCounter + std::string("//0\n"));
  EXPECT_EQ(m.gpu.images().hits(), 0u);
  LoadText(m.gpu, kCounter + std::string("//127\n"));
  EXPECT_EQ(m.gpu.images().hits(), 1u);
}

TEST_F(SoftImageCache, ItKeepsNoMoreBytesThanItMay) {
  const std::string filler(ModuleImageCache::kMaxBytes / 3, ' ');
  for (int n = 0; n < 5; ++n) LoadText(m.gpu, kCounter + filler + std::to_string(n).insert(0, "//") + "\n");
  EXPECT_EQ(m.gpu.images().images(), 2u);
  EXPECT_LE(m.gpu.images().bytes(), ModuleImageCache::kMaxBytes);
}

}  // namespace
}  // namespace vgpud::soft
