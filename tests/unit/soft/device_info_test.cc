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
  expected.resize(160);
  expected[106] = 16;  // blocks of a multiprocessor
  expected[131] = -1;  // NUMA
  expected[134] = -1;
  const Gpu::DeviceInfo info = gpu.Info();
  EXPECT_EQ(info.name, "vgpud soft GPU");
  ASSERT_EQ(info.attributes.size(), expected.size());
  for (size_t n = 0; n < expected.size(); ++n) EXPECT_EQ(info.attributes[n], expected[n]) << "attribute " << n;
}

}  // namespace
}  // namespace vgpud::soft
