// SPDX-License-Identifier: Apache-2.0
// What the device says of itself: every attribute by its number in cuda.h (CUdevice_attribute), those of compute
// capability 7.5 in the CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

constexpr int32_t kMost = 2147483647;

TEST(SoftDeviceInfo, EveryAttributeIsWhatItIsDocumentedToBe) {
  const SoftGpu gpu(1 << 20, BestIsa());
  std::vector<int32_t> expected = {
      0,                                           // unused
      1024, 1024, 1024, 64, kMost, 65535, 65535,   // 1: threads and dimensions of a block, of a grid
      49152, 65536, 32, kMost, 65536, 1000000,     // 8: shared, constant, warp, pitch, registers, clock
      512, 1, 8, 0, 0, 1, 0,                       // 14: alignment, overlap, multiprocessors, timeout, ...
                                                   // mode
      131072, 131072, 65536, 16384, 16384, 16384,  // 21: textures 1D, 2D, 3D
      32768, 32768, 2048, 512,                     // 27: layered 2D, alignment of surfaces
      1, 0, 0, 0, 0, 1000000, 64, 1048576, 1024,   // 31: concurrent kernels ... threads of
                                                   // a multiprocessor
      1, 1, 32768, 2048, 0, 32768, 32768,          // 40: engines, one address space, layered 1D, gather
      8192, 8192, 32768, 0, 32, 32768,             // 47: other 3D, PCI domain, pitch alignment, cubes
      32768, 2046,                                 // 53: layered cubes
      32768, 131072, 65536, 16384, 16384, 16384,   // 55: surfaces 1D, 2D, 3D
      32768, 2048, 32768, 32768, 2048,             // 61: layered surfaces
      32768, 32768, 2046,                          // 66: cube surfaces
      268435456, 131072, 65000, 2097120,           // 69: linear memory
      32768, 32768, 7, 5, 32768,                   // 73: levels, compute capability, 1D with levels
      0, 1, 1, 65536, 65536, 0, 0, 0, 0, 2, 0, 0,  // 78: priorities, caches, multiprocessor, managed, ... pageable
      1, 0, 0, 0, 0, 1, 0, 65536,                  // 90: preemption, ... cooperative, shared
                                                   // memory by choice
  };
  expected.resize(256);  // none after them: it shares no memory with a host
  expected[106] = 16;    // blocks of a multiprocessor
  expected[131] = -1;    // NUMA
  expected[134] = -1;
  const Gpu::DeviceInfo info = gpu.Info();
  EXPECT_EQ(info.name, "vgpud soft GPU");
  ASSERT_EQ(info.attributes.size(), expected.size());
  for (size_t n = 0; n < expected.size(); ++n) EXPECT_EQ(info.attributes[n], expected[n]) << "attribute " << n;
}

TEST(SoftDeviceInfo, WhatDiffersBetweenCapabilities) {
  struct Case {
    const char* name;
    // By attribute: capability (75, 76), of a multiprocessor threads (39), blocks (106) and shared memory (81), of a
    // block shared memory (97) and the reserved part (111), clusters (120) and with them tensor maps (127).
    int32_t major, minor, threads, blocks, shared, block_shared, reserved, clusters;
  };
  constexpr int32_t kKi = 1024;
  for (const Case& c : {Case{"7.5", 7, 5, 1024, 16, 64 * kKi, 64 * kKi, 0, 0},
                        Case{"8.0", 8, 0, 2048, 32, 164 * kKi, 163 * kKi, kKi, 0},
                        Case{"8.6", 8, 6, 1536, 16, 100 * kKi, 99 * kKi, kKi, 0},
                        Case{"8.9", 8, 9, 1536, 24, 100 * kKi, 99 * kKi, kKi, 0},
                        Case{"9.0", 9, 0, 2048, 32, 228 * kKi, 227 * kKi, kKi, 1},
                        Case{"10.0", 10, 0, 2048, 32, 228 * kKi, 227 * kKi, kKi, 1},
                        Case{"12.0", 12, 0, 1536, 24, 100 * kKi, 99 * kKi, kKi, 1},
                        Case{"12.1", 12, 1, 1536, 24, 100 * kKi, 99 * kKi, kKi, 1}}) {
    const SoftGpu gpu(1 << 20, BestIsa(), 1, nullptr, **FindComputeCapability(c.name));
    auto expected = SoftGpu(1 << 20, BestIsa()).Info().attributes;
    const std::pair<size_t, int32_t> differing[] = {{75, c.major},     {76, c.minor},     {39, c.threads},
                                                    {106, c.blocks},   {81, c.shared},    {97, c.block_shared},
                                                    {111, c.reserved}, {120, c.clusters}, {127, c.clusters}};
    for (const auto& [index, value] : differing) expected[index] = value;
    EXPECT_EQ(gpu.Info().attributes, expected) << c.name;
  }
}

}  // namespace
}  // namespace vgpud::soft
