// SPDX-License-Identifier: Apache-2.0
// Modules of several parts go through the driver's linker.
#include "gpu/cuda/module/linker.h"
#include "guest-driver-shim/include/uapi/vgpu_abi.h"
#include "tests/unit/cuda/cuda_fixture.h"

namespace vgpud::driver {
namespace {

constexpr uint16_t kPtx = 1, kCubin = 2;
constexpr char kText[] = ".version 8.0\n.target sm_75\n";

// docs/fatbin.md
std::string Entry(uint16_t kind, uint32_t sm, const std::string& payload) {
  std::string entry(64, '\0');
  const auto put = [&](size_t at, auto value) { std::memcpy(entry.data() + at, &value, sizeof value); };
  put(0, kind);
  put(2, uint16_t{0x101});
  put(4, uint32_t{64});
  put(8, uint64_t{payload.size()});
  put(28, sm);
  return entry + payload;
}
std::string Fatbin(const std::string& entries) {
  std::string fatbin(16, '\0');
  const auto put = [&](size_t at, auto value) { std::memcpy(fatbin.data() + at, &value, sizeof value); };
  put(0, uint32_t{0xba55ed50});
  put(4, uint16_t{1});
  put(6, uint16_t{16});
  put(8, uint64_t{entries.size()});
  return fatbin + entries;
}
std::string Part(const std::string& entries, uint32_t most_registers = 0) {
  std::string part = Entry(VGPU_FATBIN_KIND_PART, 0, Fatbin(entries));
  std::memcpy(part.data() + 48, &most_registers, sizeof most_registers);
  return part;
}

class CudaLinkTest : public CudaGpuTest {
 protected:
  void SetUp() override {
    CudaGpuTest::SetUp();
    Notes();
  }
  GpuResult<std::unique_ptr<GpuModule>> Load(const std::string& image) {
    return gpu_->Load(Bytes(image.data(), image.size()));
  }
};

TEST_F(CudaLinkTest, PtxGoesInAsTextAndMachineCodeInItsFatbin) {
  const std::string with_code = Entry(kCubin, 91,
                                      "\x7f"
                                      "ELF" +
                                          std::string(32, '\1')) +
                                Entry(kPtx, 75, kText);
  const std::string image =
      Fatbin(Part(Entry(kPtx, 75, kText)) + Part(with_code) + Part(Entry(kPtx, 120, kText)) + Part(""));
  const auto loaded = Load(image);
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ("link part 1: type 1, " + std::to_string(sizeof kText) + " bytes, with its end\n" +  //
                "link part 2: type 2, " + std::to_string(Fatbin(with_code).size()) + " bytes\n" +
                "link forgotten\nload what was linked\n",
            Notes());
}

TEST_F(CudaLinkTest, TheLeastBoundOnRegistersIsTheLinkers) {
  const std::string text = Entry(kPtx, 75, kText);
  ASSERT_TRUE(Load(Fatbin(Part(text) + Part(text, 40) + Part(text, 32))));
  EXPECT_THAT(Notes(), StartsWith("link with 32 registers\nlink part 1: "));
}

TEST_F(CudaLinkTest, WhatTheLinkerRefusesIsSaid) {
  const Told told("link=209");
  const auto loaded = Load(Fatbin(Part(Entry(kPtx, 75, kText)) + Part(Entry(kPtx, 75, kText))));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(209u, static_cast<uint32_t>(loaded.error().status));
  EXPECT_THAT(loaded.error().text, StartsWith("cuLinkAddData: "));
  EXPECT_THAT(Notes(), testing::EndsWith("link forgotten\n"));
}

TEST_F(CudaLinkTest, ADamagedPartNeverReachesTheDriver) {
  for (const std::string& wrong : {Entry(kPtx, 75, kText).substr(0, 40), std::string(3, 'x')}) {
    const auto loaded = Load(Fatbin(Part(Entry(kPtx, 75, kText)) + Part(wrong)));
    ASSERT_FALSE(loaded);
    EXPECT_EQ(CuStatus::kInvalidImage, loaded.error().status);
    EXPECT_EQ("", Notes());
  }
}

TEST_F(CudaLinkTest, AModuleOfOnePieceIsNotLinked) {
  ASSERT_TRUE(Load(Fatbin(Entry(kPtx, 75, kText))));
  EXPECT_EQ("", Notes());
}

}  // namespace
}  // namespace vgpud::driver
