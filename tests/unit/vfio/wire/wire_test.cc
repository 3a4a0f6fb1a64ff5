// SPDX-License-Identifier: Apache-2.0
// The numbers of the vfio-user protocol, as its specification and linux/vfio.h have them.
#include "vfio/wire/wire.h"

#include <gtest/gtest.h>
#include <linux/vfio.h>

#include <cstring>
#include <vector>

namespace vgpud::vfio::wire {
namespace {

TEST(WireTest, CommandsHaveTheNumbersOfTheProtocol) {
  const std::pair<Command, int> commands[] = {
      {Command::kVersion, 1},
      {Command::kDmaMap, 2},
      {Command::kDmaUnmap, 3},
      {Command::kDeviceGetInfo, 4},
      {Command::kDeviceGetRegionInfo, 5},
      {Command::kDeviceGetIrqInfo, 7},
      {Command::kDeviceSetIrqs, 8},
      {Command::kRegionRead, 9},
      {Command::kRegionWrite, 10},
      {Command::kDeviceReset, 13},
  };
  for (const auto& [command, number] : commands) EXPECT_EQ(number, static_cast<int>(command));
}

TEST(WireTest, FlagsOfMessagesAreThoseOfTheProtocol) {
  EXPECT_EQ(0u, kTypeCommand);
  EXPECT_EQ(1u, kTypeReply);
  EXPECT_EQ(0x0fu, kTypeMask);
  EXPECT_EQ(0x10u, kNoReply);
  EXPECT_EQ(0x20u, kError);
  EXPECT_EQ(1u, kDmaRead);
  EXPECT_EQ(2u, kDmaWrite);
  EXPECT_EQ(2u, kUnmapAll);
}

TEST(WireTest, TheDeviceIsDescribedInTheNumbersOfVfio) {
  EXPECT_EQ(uint32_t{VFIO_DEVICE_FLAGS_RESET}, kDeviceReset);
  EXPECT_EQ(uint32_t{VFIO_DEVICE_FLAGS_PCI}, kDevicePci);
  EXPECT_EQ(uint32_t{VFIO_PCI_BAR0_REGION_INDEX}, uint32_t{kBar0});
  EXPECT_EQ(uint32_t{VFIO_PCI_CONFIG_REGION_INDEX}, uint32_t{kConfig});
  EXPECT_EQ(uint32_t{VFIO_PCI_NUM_REGIONS}, uint32_t{kRegions});
  EXPECT_EQ(uint32_t{VFIO_REGION_INFO_FLAG_READ}, kRegionReadable);
  EXPECT_EQ(uint32_t{VFIO_REGION_INFO_FLAG_WRITE}, kRegionWritable);
  EXPECT_EQ(uint32_t{VFIO_PCI_INTX_IRQ_INDEX}, uint32_t{kIntx});
  EXPECT_EQ(uint32_t{VFIO_PCI_MSI_IRQ_INDEX}, uint32_t{kMsi});
  EXPECT_EQ(uint32_t{VFIO_PCI_MSIX_IRQ_INDEX}, uint32_t{kMsix});
  EXPECT_EQ(uint32_t{VFIO_PCI_ERR_IRQ_INDEX}, uint32_t{kErr});
  EXPECT_EQ(uint32_t{VFIO_PCI_REQ_IRQ_INDEX}, uint32_t{kReq});
  EXPECT_EQ(uint32_t{VFIO_PCI_NUM_IRQS}, uint32_t{kIrqs});
  EXPECT_EQ(uint32_t{VFIO_IRQ_INFO_EVENTFD}, kIrqEventFd);
  EXPECT_EQ(uint32_t{VFIO_IRQ_INFO_MASKABLE}, kIrqMaskable);
  EXPECT_EQ(uint32_t{VFIO_IRQ_INFO_AUTOMASKED}, kIrqAutoMasked);
  EXPECT_EQ(uint32_t{VFIO_IRQ_SET_DATA_NONE}, kIrqDataNone);
  EXPECT_EQ(uint32_t{VFIO_IRQ_SET_DATA_BOOL}, kIrqDataBool);
  EXPECT_EQ(uint32_t{VFIO_IRQ_SET_DATA_EVENTFD}, kIrqDataEventFd);
  EXPECT_EQ(uint32_t{VFIO_IRQ_SET_ACTION_MASK}, kIrqMask);
  EXPECT_EQ(uint32_t{VFIO_IRQ_SET_ACTION_UNMASK}, kIrqUnmask);
  EXPECT_EQ(uint32_t{VFIO_IRQ_SET_ACTION_TRIGGER}, kIrqTrigger);
}

// What our answer to VERSION tells the client.
TEST(WireTest, LimitsAreThoseThatClientsHaveBeenTold) {
  EXPECT_EQ(16u, kMaxFds);
  EXPECT_EQ(65536u, kMaxTransfer);
  EXPECT_EQ(65568u, kMaxBytes);
}

template <class T>
bool IsZero() {
  const T value{};
  const std::vector<unsigned char> zero(sizeof value);
  return std::memcmp(&value, zero.data(), sizeof value) == 0;
}

TEST(WireTest, WhatAMessageDoesNotSetIsZero) {
  EXPECT_TRUE(IsZero<Header>());
  EXPECT_TRUE(IsZero<Version>());
  EXPECT_TRUE(IsZero<DmaMap>());
  EXPECT_TRUE(IsZero<DmaUnmap>());
  EXPECT_TRUE(IsZero<DeviceInfo>());
  EXPECT_TRUE(IsZero<RegionInfo>());
  EXPECT_TRUE(IsZero<IrqInfo>());
  EXPECT_TRUE(IsZero<SetIrqs>());
  EXPECT_TRUE(IsZero<RegionAccess>());
}

}  // namespace
}  // namespace vgpud::vfio::wire
