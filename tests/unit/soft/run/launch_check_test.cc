// SPDX-License-Identifier: Apache-2.0
// What can be launched and how much of it is resident, against the tables of the CUDA C++ Programming Guide, most of
// it for compute capability 7.5.
#include "gpu/soft/run/launch_check.h"

#include <gmock/gmock.h>

#include "gpu/soft/run/cta_set.h"
#include "gpu/soft/run/occupancy.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;

struct ShapeCase {
  LaunchShape shape;
  CuStatus status;
  const char* text;
};

constexpr auto kFine = CuStatus::kSuccess;
constexpr auto kInvalid = CuStatus::kInvalidValue;

TEST(LaunchCheck, ShapesHaveTheLimitsOfTheDevice) {
  constexpr uint32_t kMost = 0x7fffffff;
  const ShapeCase cases[] = {
      {{{1, 1, 1}, {1, 1, 1}, 0}, kFine, ""},
      {{{kMost, 65535, 65535}, {1024, 1, 1}, 0}, kFine, ""},
      {{{1, 1, 1}, {1, 1024, 1}, 0}, kFine, ""},
      {{{1, 1, 1}, {16, 1, 64}, 0}, kFine, ""},
      {{{1, 1, 1}, {32, 32, 1}, 0}, kFine, ""},
      {{{0, 1, 1}, {1, 1, 1}, 0}, kInvalid, "launch of it: grid dimension 0 is 0, allowed 1..2147483647"},
      {{{1, 0, 1}, {1, 1, 1}, 0}, kInvalid, "grid dimension 1 is 0, allowed 1..65535"},
      {{{1, 1, 0}, {1, 1, 1}, 0}, kInvalid, "grid dimension 2 is 0, allowed 1..65535"},
      {{{kMost + 1, 1, 1}, {1, 1, 1}, 0}, kInvalid, "grid dimension 0 is 2147483648"},
      {{{1, 65536, 1}, {1, 1, 1}, 0}, kInvalid, "grid dimension 1 is 65536"},
      {{{1, 1, 65536}, {1, 1, 1}, 0}, kInvalid, "grid dimension 2 is 65536"},
      {{{1, 1, 1}, {0, 1, 1}, 0}, kInvalid, "block dimension 0 is 0, allowed 1..1024"},
      {{{1, 1, 1}, {1, 0, 1}, 0}, kInvalid, "block dimension 1 is 0, allowed 1..1024"},
      {{{1, 1, 1}, {1, 1, 0}, 0}, kInvalid, "block dimension 2 is 0, allowed 1..64"},
      {{{1, 1, 1}, {1025, 1, 1}, 0}, kInvalid, "block dimension 0 is 1025"},
      {{{1, 1, 1}, {1, 1025, 1}, 0}, kInvalid, "block dimension 1 is 1025"},
      {{{1, 1, 1}, {1, 1, 65}, 0}, kInvalid, "block dimension 2 is 65"},
      {{{1, 1, 1}, {513, 2, 1}, 0}, kInvalid, "1026 threads in a block, at most 1024"},
      {{{1, 1, 1}, {1024, 1024, 64}, 0}, kInvalid, "67108864 threads in a block"},
      {{{1, 1, 1}, {1, 1, 1}, 1000}, kFine, ""},
      {{{1, 1, 1}, {1, 1, 1}, 1001}, kInvalid, "1001 bytes of dynamic shared memory, at most 1000"},
  };
  CodeFunction function;
  function.info.name = "it";
  for (const ShapeCase& c : cases) {
    const auto checked = CheckLaunch(kDefaultCapability, function, c.shape, 1000);
    EXPECT_EQ(checked ? kFine : checked.error().status, c.status) << c.text;
    if (!checked) {
      EXPECT_THAT(checked.error().text, HasSubstr(c.text));
    }
  }
}

TEST(LaunchCheck, AKernelMayHaveLimitsOfItsOwn) {
  CodeFunction function;
  function.info.name = "it";
  const auto status = [&](const LaunchShape& shape, uint32_t most = UINT32_MAX) {
    const auto checked = CheckLaunch(kDefaultCapability, function, shape, most);
    return checked ? kFine : checked.error().status;
  };
  function.info.max_threads = 100;
  EXPECT_EQ(status({{1, 1, 1}, {10, 10, 1}, 0}), kFine);
  EXPECT_EQ(status({{1, 1, 1}, {101, 1, 1}, 0}), CuStatus::kLaunchOutOfResources);
  for (uint32_t d = 0; d < 3; ++d) {
    function.required_threads[d] = 4;
    LaunchShape shape{{1, 1, 1}, {1, 1, 1}, 0};
    EXPECT_EQ(status(shape), kInvalid) << d;
    for (uint32_t set = 0; set <= d; ++set) shape.block[set] = 4;
    EXPECT_EQ(status(shape), kFine) << d;
    shape.block[d] = 5;
    EXPECT_EQ(status(shape), kInvalid) << d;
  }
  function.required_threads[0] = function.required_threads[1] = function.required_threads[2] = 0;
  function.shared_bytes = 1024;
  EXPECT_EQ(status({{1, 1, 1}, {1, 1, 1}, 63 << 10}), kFine) << "64 KiB in all";
  EXPECT_EQ(status({{1, 1, 1}, {1, 1, 1}, (63 << 10) + 1}), kInvalid);
  EXPECT_EQ(status({{1, 1, 1}, {1, 1, 1}, 0xffffffff}, 0xffffffff), kInvalid);
  function.error = GpuError{CuStatus::kUnknown, "PTX line 7: no such instruction"};
  EXPECT_EQ(status({{1, 1, 1}, {1, 1, 1}, 0}), CuStatus::kIllegalInstruction);
}

TEST(LaunchCheck, SharedMemoryOfABlockIsThatOfTheCapability) {
  const std::pair<const char*, uint32_t> cases[] = {{"7.5", 64},  {"8.0", 163},  {"8.6", 99},  {"8.9", 99},
                                                    {"9.0", 227}, {"10.0", 227}, {"12.0", 99}, {"12.1", 99}};
  ASSERT_EQ(std::size(cases), std::size(kComputeCapabilities));
  for (const auto& [name, kib] : cases) {
    const auto capability = FindComputeCapability(name);
    ASSERT_TRUE(capability) << name;
    CodeFunction function;
    const auto fits = [&](uint32_t dynamic) {
      return CheckLaunch(**capability, function, {{1, 1, 1}, {1, 1, 1}, dynamic}).has_value();
    };
    EXPECT_TRUE(fits(kib << 10)) << name;
    EXPECT_FALSE(fits((kib << 10) + 1)) << name;
    function.shared_bytes = 4096;
    EXPECT_TRUE(fits((kib - 4) << 10)) << name;
    EXPECT_FALSE(fits(((kib - 4) << 10) + 1)) << name;
    function.shared_bytes = (kib << 10) + 1;
    EXPECT_FALSE(fits(0)) << name;
  }
}

struct OccupancyCase {
  uint32_t registers, threads, static_shared, dynamic_shared;
  uint64_t blocks;  // of one multiprocessor: 1024 threads, 16 blocks, 64 KiB, 65536 registers
};

TEST(Occupancy, IsThatOfTheScarcestResource) {
  const OccupancyCase cases[] = {
      {1, 32, 0, 0, 16},    {1, 64, 0, 0, 16},       {1, 65, 0, 0, 10},       {1, 96, 0, 0, 10},
      {1, 97, 0, 0, 8},     {1, 128, 0, 0, 8},       {1, 512, 0, 0, 2},       {1, 513, 0, 0, 1},
      {1, 1024, 0, 0, 1},   {1, 1, 0, 0, 16},        {64, 1024, 0, 0, 1},     {65, 1024, 0, 0, 0},
      {72, 896, 0, 0, 1},   {128, 128, 0, 0, 4},     {121, 128, 0, 0, 4},     {129, 128, 0, 0, 3},
      {255, 32, 0, 0, 8},   {0, 32, 0, 0, 16},       {8, 256, 0, 0, 4},       {1, 32, 4096, 0, 16},
      {1, 32, 4097, 0, 15}, {1, 32, 2048, 2048, 16}, {1, 32, 2048, 2049, 15}, {1, 32, 0, 65536, 1},
      {1, 32, 1, 65536, 0}, {1, 32, 32768, 0, 2},    {1, 32, 32769, 0, 1},    {255, 64, 8192, 8192, 4},
  };
  for (const OccupancyCase& c : cases) {
    FunctionInfo info;
    info.registers = c.registers;
    info.static_shared_bytes = c.static_shared;
    EXPECT_EQ(MostResident(kDefaultCapability, info, c.threads, c.dynamic_shared), 8 * c.blocks)
        << c.registers << " registers, " << c.threads << " threads, " << c.static_shared << " + " << c.dynamic_shared;
  }
}

TEST(Occupancy, OfOtherCapabilities) {
  struct Case {
    const char* capability;
    uint32_t threads, dynamic_shared;
    uint64_t blocks;  // of one multiprocessor; from 8.0 on each block costs 1 KiB of shared memory more
  };
  for (const Case& c :
       {Case{"8.0", 32, 0, 32}, Case{"8.0", 1024, 0, 2}, Case{"8.0", 32, 163 << 10, 1}, Case{"8.6", 32, 0, 16},
        Case{"8.6", 768, 0, 2}, Case{"8.6", 32, 49 << 10, 2}, Case{"8.6", 32, (49 << 10) + 1, 1},
        Case{"8.9", 32, 0, 24}, Case{"9.0", 64, 0, 32}, Case{"9.0", 32, 227 << 10, 1}, Case{"9.0", 32, 113 << 10, 2},
        Case{"12.0", 64, 0, 24}, Case{"12.1", 512, 0, 3}}) {
    FunctionInfo info;
    EXPECT_EQ(MostResident(**FindComputeCapability(c.capability), info, c.threads, c.dynamic_shared), 8 * c.blocks)
        << c.capability << " " << c.threads << " threads, " << c.dynamic_shared;
  }
}

// Special registers of a warp: fifteen of 128 bytes.
constexpr size_t kWarpArea = 15 * 128;

TEST(CtaLayout, MemoryOfABlock) {
  struct Case {
    uint32_t shared, dynamic, block[3], stack, local;
    uint32_t seen;  // shared memory of the kernel
    size_t shared_bytes, stack_bytes, per_warp, warps;
  };
  const Case cases[] = {
      {0, 0, {32, 1, 1}, 64, 0, 0, 64, 64, kWarpArea + 64, kWarpArea + 64},
      {1, 0, {33, 1, 1}, 65, 1, 1, 64, 128, kWarpArea + 128 + 64, 2 * (kWarpArea + 128 + 64)},
      {65, 0, {1, 1, 1}, 128, 2, 65, 128, 128, kWarpArea + 128 + 64, kWarpArea + 128 + 64},
      {17, 5, {8, 4, 2}, 64, 100, 32 + 5, 64, 64, kWarpArea + 64 + 3200, 2 * (kWarpArea + 64 + 3200)},
      {16, 100, {8, 4, 1}, 64, 3, 116, 128, 64, kWarpArea + 64 + 128, kWarpArea + 64 + 128},
      {0, 64, {1024, 1, 1}, 64, 0, 64, 64, 64, kWarpArea + 64, 32 * (kWarpArea + 64)},
  };
  for (const Case& c : cases) {
    CodeFunction function;
    function.shared_bytes = c.shared;
    function.local_total = c.local;
    const CtaLayout layout = LayOutCta(function, {{1, 1, 1}, {c.block[0], c.block[1], c.block[2]}, c.dynamic}, c.stack);
    EXPECT_EQ(layout.shared_bytes, c.seen);
    EXPECT_EQ(layout.own_shared, c.seen);
    EXPECT_EQ(layout.shared, c.shared_bytes) << c.shared;
    EXPECT_EQ(layout.stack, c.stack_bytes);
    EXPECT_EQ(layout.per_warp, c.per_warp) << c.local;
    EXPECT_EQ(layout.warps, c.warps);
    EXPECT_EQ(layout.bytes, 4096 + (c.warps + 4095) / 4096 * 4096);
  }
}

TEST(CtaLayout, ReservedSharedMemoryLiesBehindWhatTheKernelHas) {
  CodeFunction function;
  function.warp_specials = 1u << kUsesReservedShared;
  function.shared_bytes = 17;
  const CtaLayout fixed = LayOutCta(function, {{1, 1, 1}, {32, 1, 1}, 0}, 64);
  EXPECT_EQ(fixed.own_shared, 17u);
  EXPECT_EQ(fixed.reserved_at, 32u);
  EXPECT_EQ(fixed.shared_bytes, 32u + 1024);
  const CtaLayout with_dynamic = LayOutCta(function, {{1, 1, 1}, {32, 1, 1}, 227 << 10}, 64);
  EXPECT_EQ(with_dynamic.reserved_at, 32u + (227 << 10));
  EXPECT_EQ(with_dynamic.shared_bytes, 32u + (228 << 10));
}

}  // namespace
}  // namespace vgpud::soft
