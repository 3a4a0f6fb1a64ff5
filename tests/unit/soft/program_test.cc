// SPDX-License-Identifier: Apache-2.0
// The kernels of tests/cuda on the soft GPU, against the CPU.
#include <cmath>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

class SoftProgram : public testing::TestWithParam<Isa> {};

TEST_P(SoftProgram, VectorAddIsExactBeyondTheLastWholeWarp) {
  SoftMachine m(GetParam());
  const Outcome loaded = m.Load(ReadPtx("vectoradd"));
  ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  constexpr uint32_t kCount = 100'003;
  std::vector<float> a(kCount);
  std::vector<float> b(kCount);
  for (uint32_t n = 0; n < kCount; ++n) {
    a[n] = 0.1f * static_cast<float>(n);
    b[n] = 1.0f / static_cast<float>(n + 1);
  }
  const GpuVa da = m.Upload(a);
  const GpuVa db = m.Upload(b);
  const GpuVa dc = m.Alloc(kCount * 4 + 64);
  const Outcome ran =
      m.Run("vectoradd", {{(kCount + 255) / 256, 1, 1}, {256, 1, 1}, 0}, Params().Add(da).Add(db).Add(dc).Add(kCount));
  ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
  const auto c = m.Download<float>(dc, kCount + 16);
  for (uint32_t n = 0; n < kCount; ++n) ASSERT_EQ(c[n], a[n] + b[n]) << n;
  for (uint32_t n = kCount; n < kCount + 16; ++n) ASSERT_EQ(c[n], 0.0f);
}

TEST_P(SoftProgram, TiledMatrixMultiplyIsBitExact) {
  SoftMachine m(GetParam());
  const Outcome loaded = m.Load(ReadPtx("matmul"));
  ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  constexpr uint32_t kM = 32;
  constexpr uint32_t kN = 48;
  constexpr uint32_t kK = 64;
  std::vector<float> a(kM * kK);
  std::vector<float> b(kK * kN);
  for (size_t n = 0; n < a.size(); ++n) a[n] = std::sin(static_cast<float>(n));
  for (size_t n = 0; n < b.size(); ++n) b[n] = std::cos(static_cast<float>(3 * n));
  const GpuVa dc = m.Alloc(kM * kN * 4);
  const Outcome ran = m.Run("matmul", {{kN / 16, kM / 16, 1}, {16, 16, 1}, 0},
                            Params().Add(m.Upload(a)).Add(m.Upload(b)).Add(dc).Add(kN).Add(kK));
  ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
  const auto c = m.Download<float>(dc, kM * kN);
  for (uint32_t y = 0; y < kM; ++y) {
    for (uint32_t x = 0; x < kN; ++x) {
      float sum = 0;
      for (uint32_t k = 0; k < kK; ++k) sum = std::fma(a[y * kK + k], b[k * kN + x], sum);
      ASSERT_EQ(c[y * kN + x], sum) << x << "," << y;
    }
  }
}

TEST_P(SoftProgram, EveryCheckedInKernelDecodes) {
  for (const char* name : {"vectoradd", "matmul", "reduction", "collatz", "stencil", "endless", "meter"}) {
    SoftMachine m(GetParam());
    const Outcome loaded = m.Load(ReadPtx(name));
    EXPECT_EQ(loaded.status, CuStatus::kSuccess) << name << ": " << loaded.text;
  }
}

INSTANTIATE_TEST_SUITE_P(, SoftProgram, testing::ValuesIn(AvailableIsas()),
                         [](const auto& p) { return std::string(NameOf(p.param)); });

}  // namespace
}  // namespace vgpud::soft
