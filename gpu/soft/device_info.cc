// SPDX-License-Identifier: Apache-2.0
// What the soft GPU says about itself: a device of compute capability 7.5 (index = CUdevice_attribute of cuda.h).
#include "gpu/soft/code/special_registers.h"
#include "gpu/soft/run/occupancy.h"
#include "gpu/soft/soft_gpu.h"

namespace vgpud::soft {
namespace {

struct Attribute {
  uint32_t index;
  int32_t value;
};

constexpr Attribute kAttributes[] = {
    {1, 1024},         // max threads per block
    {2, 1024},         // max block dim x
    {3, 1024},         // max block dim y
    {4, 64},           // max block dim z
    {5, 0x7fffffff},   // max grid dim x
    {6, 65535},        // max grid dim y
    {7, 65535},        // max grid dim z
    {8, 48 << 10},     // shared memory per block
    {9, 64 << 10},     // constant memory
    {10, 32},          // warp size
    {11, 0x7fffffff},  // max pitch
    {12, 65536},       // registers per block
    {13, 1000000},     // clock rate, kHz: %clock counts nanoseconds
    {14, 512},         // texture alignment
    {15, 1},           // GPU overlap
    {16, static_cast<int32_t>(kMultiprocessors)},
    {17, 0},                            // kernel timeout
    {18, 0},                            // integrated
    {19, 1},                            // can map host memory
    {20, 0},                            // compute mode: default
    {21, 131072},                       // texture 1D width
    {22, 131072},                       // texture 2D width
    {23, 65536},                        // texture 2D height
    {24, 16384},                        // texture 3D width
    {25, 16384},                        // texture 3D height
    {26, 16384},                        // texture 3D depth
    {27, 32768},                        // layered texture 2D width
    {28, 32768},                        // layered texture 2D height
    {29, 2048},                         // layered texture 2D layers
    {30, 512},                          // surface alignment
    {31, 1},                            // concurrent kernels
    {32, 0},                            // ECC
    {33, 0},                            // PCI bus
    {34, 0},                            // PCI device
    {35, 0},                            // TCC driver
    {36, 1000000},                      // memory clock rate, kHz
    {37, 64},                           // memory bus width
    {38, 1 << 20},                      // L2 cache size
    {39, kThreadsPerMultiprocessor},    // max threads per multiprocessor
    {40, 1},                            // copy engines
    {41, 1},                            // unified addressing
    {42, 32768},                        // layered texture 1D width
    {43, 2048},                         // layered texture 1D layers
    {45, 32768},                        // gather texture width
    {46, 32768},                        // gather texture height
    {47, 8192},                         // texture 3D width alternate
    {48, 8192},                         // texture 3D height alternate
    {49, 32768},                        // texture 3D depth alternate
    {50, 0},                            // PCI domain
    {51, 32},                           // texture pitch alignment
    {52, 32768},                        // cubemap width
    {53, 32768},                        // layered cubemap width
    {54, 2046},                         // layered cubemap layers
    {55, 32768},                        // surface 1D width
    {56, 131072},                       // surface 2D width
    {57, 65536},                        // surface 2D height
    {58, 16384},                        // surface 3D width
    {59, 16384},                        // surface 3D height
    {60, 16384},                        // surface 3D depth
    {61, 32768},                        // layered surface 1D width
    {62, 2048},                         // layered surface 1D layers
    {63, 32768},                        // layered surface 2D width
    {64, 32768},                        // layered surface 2D height
    {65, 2048},                         // layered surface 2D layers
    {66, 32768},                        // surface cubemap width
    {67, 32768},                        // layered surface cubemap width
    {68, 2046},                         // layered surface cubemap layers
    {69, 268435456},                    // linear texture 1D width
    {70, 131072},                       // linear texture 2D width
    {71, 65000},                        // linear texture 2D height
    {72, 2097120},                      // linear texture 2D pitch
    {73, 32768},                        // mipmapped texture 2D width
    {74, 32768},                        // mipmapped texture 2D height
    {75, 7},                            // compute capability major
    {76, 5},                            // compute capability minor
    {77, 32768},                        // mipmapped texture 1D width
    {78, 0},                            // stream priorities
    {79, 1},                            // L1 caches globals
    {80, 1},                            // L1 caches locals
    {81, kSharedPerMultiprocessor},     // shared memory per multiprocessor
    {82, kRegistersPerMultiprocessor},  // registers per multiprocessor
    {83, 0},                            // managed memory
    {84, 0},                            // multi-GPU board
    {85, 0},                            // multi-GPU board group
    {86, 0},                            // native host atomics
    {87, 2},                            // single to double performance ratio
    {88, 0},                            // pageable memory access
    {89, 0},                            // concurrent managed access
    {90, 1},                            // compute preemption
    {91, 0},                            // host pointer for registered memory
    {95, 1},                            // cooperative launch
    {97, 64 << 10},                     // shared memory per block, opt-in
    {99, 0},                            // host register
    {106, kBlocksPerMultiprocessor},    // max blocks per multiprocessor
    {111, 0},                           // reserved shared memory per block
    {115, 0},                           // memory pools
    {125, 0},                           // IPC events
    {131, -1},                          // NUMA id
    {134, -1},                          // host NUMA id
};

}  // namespace

Gpu::DeviceInfo SoftGpu::Info() const {
  DeviceInfo info;
  info.name = "vgpud soft GPU";
  info.attributes.assign(160, 0);
  for (const Attribute& a : kAttributes) info.attributes[a.index] = a.value;
  return info;
}

}  // namespace vgpud::soft
