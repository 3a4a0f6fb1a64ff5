// SPDX-License-Identifier: Apache-2.0
// gpu/cuda against a driver of a few calls (fake_driver.cc): what it does when the driver refuses, and what it never
// passes on to one.
#include "gpu/cuda/memory/ranges.h"
#include "tests/unit/cuda/cuda_fixture.h"

namespace vgpud::driver {
namespace {

std::string WhyNot(const Card::Choice& choice) {
  const auto card = Card::Open(choice);
  return card ? "it works" : card.error().context;
}

TEST(Card, WithoutADriverItSaysWhatToInstall) {
  EXPECT_THAT(WhyNot({"/nowhere/libcuda.so.1", {}}), testing::AllOf(HasSubstr("no CUDA driver"), HasSubstr("install")));
}

TEST(Card, ALibraryThatIsNoDriverIsRefused) {
  EXPECT_THAT(WhyNot({"libm.so.6", {}}), HasSubstr("no CUDA driver: it does not tell its version"));
}

TEST(Card, ADriverThatIsTooOldIsNamedWithBothVersions) {
  const Told told("version=11040");
  EXPECT_THAT(WhyNot({Library(), {}}), testing::AllOf(HasSubstr("too old"), HasSubstr("11.4"), HasSubstr("12.4")));
}

TEST(Card, ACallThatTheDriverLacksIsNamed) {
  const Told told("lacks:cuLaunchKernelEx");
  EXPECT_THAT(WhyNot({Library(), {}}), HasSubstr("has no cuLaunchKernelEx of version 11.6"));
}

struct Refusal {
  const char* told;
  const char* says;
};
class Refused : public testing::TestWithParam<Refusal> {};
TEST_P(Refused, SaysWhatHelps) {
  const Told told(GetParam().told);
  EXPECT_THAT(WhyNot({Library(), {}}), HasSubstr(GetParam().says));
}
INSTANTIATE_TEST_SUITE_P(
    Card, Refused,
    testing::Values(Refusal{"init=100", "nvidia-smi -L"}, Refusal{"init=803", "restart the machine"},
                    Refusal{"init=802", "fabricmanager"}, Refusal{"init=999", "dmesg"},
                    Refusal{"init=304", "modprobe nvidia"}, Refusal{"retain=2", "no memory left"},
                    Refusal{"retain=46", "nvidia-smi -c DEFAULT"}, Refusal{"retain=214", "uncorrectable memory error"},
                    Refusal{"compute_mode=3", "EXCLUSIVE_PROCESS"}, Refusal{"compute_mode=2", "PROHIBITED"}));

TEST(Card, AnAddressWithoutAGpuIsNamed) {
  EXPECT_THAT(WhyNot({Library(), "0000:01:00.0"}), HasSubstr("no GPU at 0000:01:00.0"));
  EXPECT_EQ("it works", WhyNot({Library(), "0000:65:00.0"}));
}

TEST(Card, AMigInstanceIsWhatTheDriverGivesByThatName) {
  const std::string own = "MIG-00000000-0000-0000-0000-00000000000a",
                    other = "MIG-00000000-0000-0000-0000-00000000000b";
  for (const char* told : {"mig=10", "mig=10 blind=1"}) {
    const Told like(told);
    EXPECT_EQ("it works", WhyNot({Library(), own})) << told;
    EXPECT_THAT(WhyNot({Library(), other}), HasSubstr("no MIG instance " + other)) << told;
  }
  const Told whole("blind=1");
  EXPECT_THAT(WhyNot({Library(), own}), HasSubstr("no MIG instance " + own)) << "a whole card is none";
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST(Card, SaysWhichMigInstanceItIs) {
  const auto name = [](const char* told) {
    const Told like(told);
    return (*Card::Open({Library(), {}}))->mig_name();
  };
  EXPECT_EQ("", name("mig=0"));
  EXPECT_EQ("MIG-00000000-0000-0000-0000-00000000000a", name("mig=10"));
  EXPECT_EQ("MIG-00000000-0000-0000-0000-00000000000a", name("mig=10 card_uuid=801")) << "by what it is called";
  EXPECT_EQ("", name("mig=0 card_uuid=801"));
}

TEST(Ranges, OnlyWhatIsInsideOfOneRangeCounts) {
  Ranges ranges;
  ranges.Add(0x1000, 0x100, Ranges::Kind::kAllocation);
  ranges.Add(0x1100, 0x100, Ranges::Kind::kVariable);
  EXPECT_TRUE(ranges.Contains(0x1000, 0x100));
  EXPECT_TRUE(ranges.Contains(0x10ff, 1));
  EXPECT_FALSE(ranges.Contains(0x1000, 0x101)) << "two ranges side by side are not one";
  EXPECT_FALSE(ranges.Contains(0xfff, 2));
  EXPECT_FALSE(ranges.Contains(0x1010, UINT64_MAX - 8)) << "the end wraps";
  EXPECT_FALSE(ranges.Contains(0x1000, 0));
  EXPECT_FALSE(ranges.Remove(0x1100, Ranges::Kind::kAllocation)) << "a variable can't be freed";
  EXPECT_EQ(0x100u, ranges.Remove(0x1000, Ranges::Kind::kAllocation));
  EXPECT_FALSE(ranges.Contains(0x1000, 1));
}

TEST(MeasureImage, AnImageIsNeverShorterThanItSays) {
  struct {
    uint32_t magic = 0xba55ed50;
    uint16_t version = 1, header = 16;
    uint64_t body = 16;
    uint64_t rest[2] = {};
  } fatbin;
  EXPECT_TRUE(MeasureImage(Bytes(&fatbin, sizeof fatbin)));
  EXPECT_FALSE(MeasureImage(Bytes(&fatbin, sizeof fatbin - 1)));
  EXPECT_FALSE(MeasureImage(Bytes(&fatbin, 8)));
  fatbin.body = UINT64_MAX - 3;
  EXPECT_FALSE(MeasureImage(Bytes(&fatbin, sizeof fatbin))) << "header and body together wrap";
  EXPECT_TRUE(MeasureImage(Bytes(".version 8.0\n", 13)));
  EXPECT_FALSE(MeasureImage(Bytes("\x01\x02\x03\x04\x05", 5)));
  EXPECT_FALSE(MeasureImage({}));
}

// The first 64 bytes of machine code with one table of sections.
std::vector<std::byte> Elf(uint64_t sections_at, uint16_t sections, uint64_t section_bytes, size_t total) {
  std::vector<std::byte> image(total);
  const auto put = [&](size_t at, auto value) { std::memcpy(image.data() + at, &value, sizeof value); };
  std::memcpy(image.data(),
              "\x7f"
              "ELF",
              4);
  put(0x28, sections_at);
  put(0x3a, uint16_t{64});
  put(0x3c, sections);
  if (sections != 0 && sections_at <= total - 64) {
    put(sections_at + 4, uint32_t{1});  // SHT_PROGBITS
    put(sections_at + 0x20, section_bytes);
  }
  return image;
}

TEST(MeasureImage, MachineCodeHasItsTablesAndSections) {
  EXPECT_TRUE(MeasureImage(Elf(64, 1, 128, 128)));
  EXPECT_FALSE(MeasureImage(Elf(64, 1, 129, 128)));
  EXPECT_FALSE(MeasureImage(Elf(65, 1, 0, 128)));
  EXPECT_FALSE(MeasureImage(Elf(UINT64_MAX - 8, 1, 0, 128)));
}

TEST_F(CudaGpuTest, CopiesStayInsideOfAllocations) {
  const GpuVa a = *gpu_->Alloc(16);
  const uint64_t value = 0x1122334455667788;
  EXPECT_TRUE(gpu_->CopyIn(a, std::as_bytes(std::span{&value, 1})));
  EXPECT_EQ(value, *gpu_->ReadWord(a, 8));
  EXPECT_TRUE(gpu_->CopyDev(GpuVa{Raw(a) + 8}, a, 8));
  EXPECT_EQ(value, *gpu_->ReadWord(GpuVa{Raw(a) + 8}, 8));
  EXPECT_TRUE(gpu_->Fill(a, 0xabcd, 2, 4));
  EXPECT_EQ(0xabcdabcdabcdabcd, *gpu_->ReadWord(a, 8));
  EXPECT_TRUE(gpu_->WriteWord(a, 4, 5));
  EXPECT_EQ(5u, *gpu_->ReadWord(a, 4));
  EXPECT_EQ(CuStatus::kInvalidValue, gpu_->CopyDev(a, GpuVa{Raw(a) + 9}, 8).error().status);
  EXPECT_EQ(CuStatus::kInvalidValue, gpu_->Fill(a, 0, 4, 5).error().status);
  EXPECT_EQ(CuStatus::kInvalidValue, gpu_->Fill(a, 0, 4, uint64_t{1} << 62).error().status);
  EXPECT_EQ(CuStatus::kInvalidValue, gpu_->ReadWord(GpuVa{Raw(a) + 12}, 8).error().status);
  EXPECT_EQ(512u, *gpu_->Free(a));
  EXPECT_EQ(CuStatus::kInvalidValue, gpu_->Free(a).error().status);
  EXPECT_EQ(CuStatus::kInvalidValue, gpu_->ReadWord(a, 8).error().status);
}

TEST_F(CudaGpuTest, TexturesAreOfMemoryThatIsThere) {
  const GpuVa a = *gpu_->Alloc(4096);
  TextureDesc desc;
  desc.width = 16;
  desc.height = 8;
  desc.format = cuda_enum::CU_AD_FORMAT_FLOAT;
  desc.levels = {{a, 512, 0}};
  const auto texture = gpu_->CreateTexture(desc);
  ASSERT_TRUE(texture);
  EXPECT_TRUE(gpu_->DestroyTexture(*texture));
  EXPECT_EQ(CuStatus::kInvalidHandle, gpu_->DestroyTexture(*texture).error().status);
  const auto refused = [&](auto change) {
    TextureDesc other = desc;
    change(other);
    const auto result = gpu_->CreateTexture(other);
    return result ? CuStatus::kSuccess : result.error().status;
  };
  EXPECT_EQ(CuStatus::kSuccess, refused([](TextureDesc& d) {
              d.shape = TextureDesc::Shape::kBuffer;
              d.height = 1;
            }));
  EXPECT_EQ(CuStatus::kInvalidValue, refused([](TextureDesc& d) { d.height = 9; }));
  EXPECT_EQ(CuStatus::kInvalidValue, refused([](TextureDesc& d) { d.levels[0].pitch = 32; })) << "rows that overlap";
  EXPECT_EQ(CuStatus::kInvalidValue, refused([](TextureDesc& d) { d.levels[0].pitch = UINT64_MAX / 2; }));
  EXPECT_EQ(CuStatus::kInvalidValue, refused([](TextureDesc& d) { d.format = 99; }));
  EXPECT_EQ(CuStatus::kInvalidValue, refused([](TextureDesc& d) {
              d.levels.clear();
              d.shape = TextureDesc::Shape::kBuffer;
            }));
}

TEST_F(CudaGpuTest, AQuotaCountsWhatADriverTakes) {
  EXPECT_EQ(512u, gpu_->AllocationBytes(1));
  EXPECT_EQ(uint64_t{4} << 20, gpu_->AllocationBytes((uint64_t{2} << 20) + 1));
  EXPECT_EQ(UINT64_MAX, gpu_->AllocationBytes(UINT64_MAX - 1));
  EXPECT_EQ(CuStatus::kOutOfMemory, gpu_->Alloc(uint64_t{1} << 40).error().status);
}

TEST_F(CudaGpuTest, AVariableIsReachedOnceItsAddressWasAsked) {
  (void)Kernel();
  const auto global = module_->FindGlobal("variable");
  ASSERT_TRUE(global);
  EXPECT_TRUE(gpu_->Contains(global->address, 64));
  EXPECT_EQ(CuStatus::kInvalidValue, gpu_->Free(global->address).error().status);
  EXPECT_EQ(CuStatus::kNotFound, module_->FindGlobal("other").error().status);
  const GpuVa address = global->address;
  module_.reset();
  EXPECT_FALSE(gpu_->Contains(address, 1));
}

TEST_F(CudaGpuTest, AKernelIsDescribedAsTheDriverDoes) {
  const FunctionInfo& kernel = Kernel();
  ASSERT_EQ(2u, kernel.params.size());
  EXPECT_EQ(12u, kernel.param_bytes);
  EXPECT_EQ(512u, kernel.max_threads);
  EXPECT_EQ(nullptr, module_->Function("other"));
  EXPECT_EQ(&kernel, module_->Function("kernel"));
  EXPECT_EQ(std::vector<std::string>{"kernel"}, module_->FunctionNames());
}

TEST_F(CudaGpuTest, WhatTheCompilerSaidIsInTheError) {
  const Told told("load=218");
  const auto module = gpu_->Load(Bytes(".version 8.0\n", 13));
  ASSERT_FALSE(module);
  EXPECT_EQ(CuStatus::kInvalidPtx, module.error().status);
  EXPECT_THAT(module.error().text, HasSubstr("ptxas: line 3 is wrong"));
}

TEST_F(CudaGpuTest, AKernelThatEndsIsDoneAndWhatItPrintedIsThere) {
  const auto grid = Launch();
  ASSERT_TRUE(grid);
  EXPECT_TRUE(Busy());
  EXPECT_EQ(GpuGrid::Progress::kDone, *(*grid)->Run(go_on_, 1));
  EXPECT_FALSE(Busy());
  EXPECT_EQ("launched\n", Printed());
}

TEST_F(CudaGpuTest, ALongKernelLeavesTheOthersTheirTurn) {
  const Told told("queries=1000000000");
  const auto grid = Launch();
  EXPECT_EQ(GpuGrid::Progress::kYield, *(*grid)->Run(go_on_, 1));
  EXPECT_TRUE(Busy());
}

TEST_F(CudaGpuTest, AKernelThatCantBeStoppedIsWaitedFor) {
  const Told told("queries=1000000000");
  const auto grid = Launch();
  EXPECT_EQ(GpuGrid::Progress::kDone, *(*grid)->Run(stopped_, 1));
  EXPECT_EQ("launched\nwaited for a kernel\n", Printed());
}

TEST_F(CudaGpuTest, AFaultIsThatOfTheDriver) {
  const Told told("kernel=700");
  const auto grid = Launch();
  const auto progress = (*grid)->Run(go_on_, 1);
  ASSERT_FALSE(progress);
  EXPECT_EQ(CuStatus::kIllegalAddress, progress.error().status);
  EXPECT_FALSE(Busy());
}

TEST_F(CudaGpuTest, WrongLaunchesNeverReachTheDriver) {
  EXPECT_EQ(CuStatus::kInvalidValue, Launch(0, 11).error().status);
  EXPECT_EQ(CuStatus::kInvalidValue, Launch((48 << 10) + 1).error().status);
  EXPECT_EQ("", Printed());
  EXPECT_FALSE(Busy());
}

TEST_F(CudaGpuTest, ALaunchThatTheDriverRefusesLeavesNothingOnTheGpu) {
  const Told told("launch=701");
  EXPECT_EQ(CuStatus::kLaunchOutOfResources, Launch().error().status);
  EXPECT_FALSE(Busy());
}

}  // namespace
}  // namespace vgpud::driver
