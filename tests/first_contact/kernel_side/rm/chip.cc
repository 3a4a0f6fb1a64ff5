// SPDX-License-Identifier: Apache-2.0
#include "tests/first_contact/kernel_side/rm/chip.h"

namespace vgpud::kernel_side {
namespace {

// NV0080_CTRL_GR_INFO_INDEX_*
enum Gr : uint32_t {
  kPipes = 7,
  kStackScaling = 8,
  kSubPipes = 9,
  kRegisterBanks = 0xa,
  kBankRegisters = 0xb,
  kGrSmVersion = 0xc,
  kWarpsPerSm = 0xd,
  kThreadsPerWarp = 0xe,
  kMemoryGranularity = 0x11,
  kHostGranularity = 0x12,
  kLanesPerSm = 0x13,
  kGpcs = 0x14,
  kMemoryParts = 0x15,
  kTpcsPerGpc = 0x17,
  kTimeslices = 0x1a,
  kPesPerGpc = 0x1c,
  kCores = 0x1d,
  kTpcsPerPes = 0x1e,
  kSmsPerTpc = 0x20,
  kRtCores = 0x22,
  kTensorCores = 0x23,
  kCaches = 0x25,
  kCacheSlices = 0x26,
};
// NV2080_CTRL_FB_INFO_INDEX_*, in KiB where they are bytes
enum Fb : uint32_t {
  kPartitions = 4,
  kBar1 = 5,
  kRam = 7,
  kTotalRam = 8,
  kHeap = 9,
  kMappableHeap = 0xa,
  kBusWidth = 0xb,
  kRamType = 0xd,
  kPartitionMask = 0x14,
  kFbParts = 0x19,
  kL2Bytes = 0x1b,
  kBar1Free = 0x1d,
  kBar1Contiguous = 0x1f,
  kUsableRam = 0x20,
  kLtcs = 0x22,
  kLtSlices = 0x23,
};
// NV2080_CTRL_BUS_INFO_INDEX_*
enum Bus : uint32_t {
  kType = 0,
  kCaps = 2,
  kLinkCaps = 3,
  kCoherentFlags = 0xb,
  kNoncoherentFlags = 0xc,
  kInterface = 0x13,
  kGpuInterface = 0x2e,
  kGartHigh = 0x32,
};
// NV2080_CTRL_GPU_INFO_INDEX_*
enum Gpu : uint32_t { kGpuSmVersion = 0x2c, kProfiling = 0x36, kDebugging = 0x37 };

constexpr Info kBusTable[] = {
    {kType, 3},      {kCaps, 2},         {kLinkCaps, 0x1a103}, {kCoherentFlags, 0xf}, {kNoncoherentFlags, 0xf},
    {kInterface, 3}, {kGpuInterface, 3}, {kGartHigh, 0x100}};

// TU104, a T4.
constexpr uint64_t kT4Kib = uint64_t{15} << 20;
constexpr Info kT4Gr[] = {
    {kPipes, 5},           {kStackScaling, 1}, {kSubPipes, 20},       {kRegisterBanks, 2},      {kBankRegisters, 512},
    {kGrSmVersion, 0x705}, {kWarpsPerSm, 32},  {kThreadsPerWarp, 32}, {kMemoryGranularity, 32}, {kHostGranularity, 32},
    {kLanesPerSm, 64},     {kGpcs, 6},         {kMemoryParts, 8},     {kTpcsPerGpc, 4},         {kTimeslices, 1},
    {kPesPerGpc, 2},       {kCores, 2560},     {kTpcsPerPes, 2},      {kSmsPerTpc, 2},          {kRtCores, 40},
    {kTensorCores, 320},   {kCaches, 8},       {kCacheSlices, 4}};
constexpr Info kT4Fb[] = {{kPartitions, 8},       {kBar1, 256 << 10},
                          {kRam, kT4Kib},         {kTotalRam, kT4Kib},
                          {kHeap, kT4Kib},        {kMappableHeap, kT4Kib},
                          {kBusWidth, 256},       {kRamType, 15},
                          {kPartitionMask, 0xff}, {kHeapFree, kT4Kib - (200 << 10)},
                          {kFbParts, 8},          {kL2Bytes, 4 << 20},
                          {kBar1Free, 250 << 10}, {kBar1Contiguous, 250 << 10},
                          {kUsableRam, kT4Kib},   {kLtcs, 16},
                          {kLtSlices, 32}};
constexpr Info kT4Gpu[] = {{kGpuSmVersion, 0x705}, {kProfiling, 1}, {kDebugging, 1}};
constexpr uint32_t kT4Classes[] = {0xc365, 0x9067, 0x902d, 0x90f1, 0x844c, 0x9072, 0x90ec, 0x90e7, 0x90e6,
                                   0x9074, 0x9096, 0xc076, 0xa06c, 0xa080, 0xa140, 0xc369, 0x60,   0x70,
                                   0x73,   0x7d,   0x5080, 0x50a0, 0x503b, 0x503c, 0xa081, 0xa084, 0xde,
                                   0xc597, 0xc46f, 0xc5c0, 0xc5b5, 0xc461, 0xc36f, 0xc361};
constexpr uint32_t kT4Engines[] = {0xc5c0, 0xc597, 0xa140, 0x902d}, kT4Copies[] = {0xc5b5};

// GH100, an H100.
constexpr uint64_t kH100Kib = uint64_t{80} << 20;
constexpr Info kH100Gr[] = {
    {kPipes, 8},           {kStackScaling, 1}, {kSubPipes, 66},       {kRegisterBanks, 2},      {kBankRegisters, 512},
    {kGrSmVersion, 0x900}, {kWarpsPerSm, 64},  {kThreadsPerWarp, 32}, {kMemoryGranularity, 32}, {kHostGranularity, 32},
    {kLanesPerSm, 128},    {kGpcs, 8},         {kMemoryParts, 8},     {kTpcsPerGpc, 9},         {kTimeslices, 1},
    {kPesPerGpc, 3},       {kCores, 16896},    {kTpcsPerPes, 3},      {kSmsPerTpc, 2},          {kTensorCores, 528},
    {kCaches, 8},          {kCacheSlices, 4}};
constexpr Info kH100Fb[] = {{kPartitions, 8},       {kBar1, 128 << 20},
                            {kRam, kH100Kib},       {kTotalRam, kH100Kib},
                            {kHeap, kH100Kib},      {kMappableHeap, kH100Kib},
                            {kBusWidth, 5120},      {kRamType, 15},
                            {kPartitionMask, 0xff}, {kHeapFree, kH100Kib - (400 << 10)},
                            {kFbParts, 8},          {kL2Bytes, 50 << 20},
                            {kBar1Free, 127 << 20}, {kBar1Contiguous, 127 << 20},
                            {kUsableRam, kH100Kib}, {kLtcs, 16},
                            {kLtSlices, 32}};
constexpr Info kH100Gpu[] = {{kGpuSmVersion, 0x900}, {kProfiling, 1}, {kDebugging, 1}};
constexpr uint32_t kH100Classes[] = {0xc365, 0xc56f, 0xc561, 0x9067, 0x902d, 0x90f1, 0x844c, 0x90e7, 0x90e6, 0x9074,
                                     0x9096, 0xc076, 0xcb97, 0xc86f, 0xcbc0, 0xc8b5, 0xcba2, 0xc661, 0xa06c, 0xa080,
                                     0xa140, 0xc369, 0x60,   0x70,   0x7d,   0x5080, 0x50a0, 0x503b, 0x503c, 0xa081,
                                     0xa084, 0xcb33, 0xde,   0xc46f, 0xc461, 0xc36f, 0xc361};
constexpr uint32_t kH100Engines[] = {0xcbc0, 0xcb97, 0xa140, 0x902d}, kH100Copies[] = {0xc8b5};

constexpr Chip kChips[] = {
    {"t4", "Tesla T4", "TU104", 0x1eb8, 0x160, 4, 5, 4, 40, kT4Kib, kT4Classes, kT4Engines, kT4Copies, kT4Gr, kT4Fb,
     kBusTable, kT4Gpu},
    {"h100", "NVIDIA H100 80GB HBM3", "GH100", 0x2330, 0x180, 0, 8, 9, 132, kH100Kib, kH100Classes, kH100Engines,
     kH100Copies, kH100Gr, kH100Fb, kBusTable, kH100Gpu},
};

}  // namespace

const Chip* FindChip(std::string_view option) {
  for (const Chip& chip : kChips)
    if (chip.option == option) return &chip;
  return nullptr;
}

uint32_t ValueOf(std::span<const Info> table, uint32_t index) {
  for (const Info& info : table)
    if (info.index == (index & 0xff'ffff)) return info.value;
  return 0;
}

}  // namespace vgpud::kernel_side
