// SPDX-License-Identifier: Apache-2.0
#include "vfio/device/config_space.h"

#include <gtest/gtest.h>

#include <cstring>

#include "guest-driver-shim/include/uapi/vgpu_abi.h"

namespace vgpud::vfio {
namespace {

template <class T>
T Get(const ConfigSpace& config, size_t offset) {
  T value{};
  config.Read(offset, std::as_writable_bytes(std::span{&value, 1}));
  return value;
}

template <class T>
bool Put(ConfigSpace& config, size_t offset, T value) {
  return config.Write(offset, std::as_bytes(std::span{&value, 1}));
}

TEST(ConfigSpaceTest, SaysWhatItIs) {
  const ConfigSpace config;
  EXPECT_EQ(VGPU_PCI_VENDOR_ID | (VGPU_PCI_DEVICE_ID << 16), Get<uint32_t>(config, 0));
  EXPECT_EQ(0x030200u, Get<uint32_t>(config, 8) >> 8);
  EXPECT_EQ(1, Get<uint8_t>(config, 0x3d));
  EXPECT_NE(0, Get<uint16_t>(config, 6) & 0x10);
}

TEST(ConfigSpaceTest, CapabilityListHoldsPmMsiExpressAndNoMsix) {
  const ConfigSpace config;
  std::vector<int> ids;
  for (uint8_t at = Get<uint8_t>(config, 0x34); at != 0 && ids.size() < 48; at = Get<uint8_t>(config, at + 1u))
    ids.push_back(Get<uint8_t>(config, at));
  EXPECT_EQ((std::vector<int>{0x01, 0x05, 0x10}), ids);
  EXPECT_EQ(0x0080, Get<uint16_t>(config, kMsiCap + 2)) << "64-bit, one vector";
  EXPECT_EQ(1u, (Get<uint32_t>(config, kExpressCap + 4) >> 28) & 1) << "FLR capable";
  EXPECT_EQ(0u, Get<uint32_t>(config, 0x100)) << "no extended capabilities";
}

TEST(ConfigSpaceTest, Bar0Sizes64KiBAndTheOthersAreAbsent) {
  ConfigSpace config;
  for (size_t bar = 0x10; bar <= 0x24; bar += 4) EXPECT_FALSE(Put(config, bar, 0xffffffffu));
  EXPECT_EQ(0xffff0000u, Get<uint32_t>(config, 0x10));
  for (size_t bar = 0x14; bar <= 0x24; bar += 4) EXPECT_EQ(0u, Get<uint32_t>(config, bar));
  EXPECT_FALSE(Put(config, 0x30, 0xfffff800u));
  EXPECT_EQ(0u, Get<uint32_t>(config, 0x30)) << "no expansion ROM";
}

TEST(ConfigSpaceTest, OnlyWritableBitsChange) {
  ConfigSpace config;
  const std::vector<std::byte> ones(kConfigBytes, std::byte{0xff});
  EXPECT_TRUE(config.Write(0, ones)) << "the write covers Device Control bit 15";
  EXPECT_EQ(VGPU_PCI_VENDOR_ID, Get<uint16_t>(config, 0));
  EXPECT_EQ(0x0546, Get<uint16_t>(config, 4));
  EXPECT_EQ(0x0010, Get<uint16_t>(config, 6));
  EXPECT_EQ(0x00f1, Get<uint16_t>(config, kMsiCap + 2));
  EXPECT_EQ(0x000b, Get<uint16_t>(config, kPmCap + 4));
  EXPECT_EQ(0x7fff, Get<uint16_t>(config, kExpressCap + 8)) << "the FLR bit always reads 0";
  EXPECT_EQ(0u, Get<uint32_t>(config, 0x200));
}

// PCI Local Bus 3.0, 6.1 and 6.8; PCI Express Base 4.0, 7.5.3. What a guest may read and write, 16 bits at a time; all
// else is 0 and stays so.
TEST(ConfigSpaceTest, EveryRegisterIsWhatTheSpecificationsSayAndNothingElseIsThere) {
  struct Register {
    size_t at;
    uint16_t reset, writable;
  };
  std::vector<uint16_t> reset(kConfigBytes / 2), writable(kConfigBytes / 2);
  for (const Register& r : {
           Register{0x00, VGPU_PCI_VENDOR_ID, 0},
           {0x02, VGPU_PCI_DEVICE_ID, 0},
           {0x04, 0, 0x0546},
           {0x06, 0x0010, 0},
           {0x08, VGPU_ABI_VERSION, 0},
           {0x0a, 0x0302, 0},
           {0x0c, 0, 0x00ff},
           {0x12, 0, 0xffff},
           {0x2c, VGPU_PCI_VENDOR_ID, 0},
           {0x2e, VGPU_PCI_DEVICE_ID, 0},
           {0x34, 0x40, 0},
           {0x3c, 0x0100, 0x00ff},
           {0x40, 0x5001, 0},
           {0x42, 0x0003, 0},
           {0x44, 0x0008, 0x0003},
           {0x50, 0x6005, 0},
           {0x52, 0x0080, 0x0071},
           {0x54, 0, 0xfffc},
           {0x56, 0, 0xffff},
           {0x58, 0, 0xffff},
           {0x5a, 0, 0xffff},
           {0x5c, 0, 0xffff},
           {0x60, 0x0010, 0},
           {0x62, 0x0002, 0},
           {0x64, 0x8000, 0},
           {0x66, 0x1000, 0},
           {0x68, 0x2810, 0x7fff},
           {0x6c, 0x0011, 0},
           {0x70, 0, 0x01c3},
           {0x72, 0x0011, 0},
           {0x88, 0, 0x001f},
           {0x8c, 0x0002, 0},
       }) {
    reset[r.at / 2] = r.reset;
    writable[r.at / 2] = r.writable;
  }
  ConfigSpace config;
  for (size_t i = 0; i < kConfigBytes / 2; ++i) EXPECT_EQ(reset[i], Get<uint16_t>(config, 2 * i)) << std::hex << 2 * i;
  for (size_t i = 0; i < kConfigBytes / 2; ++i) Put<uint16_t>(config, 2 * i, 0xffff);
  for (size_t i = 0; i < kConfigBytes / 2; ++i)
    EXPECT_EQ(reset[i] | writable[i], Get<uint16_t>(config, 2 * i)) << std::hex << 2 * i;
  for (size_t i = 0; i < kConfigBytes / 2; ++i) Put<uint16_t>(config, 2 * i, 0);
  for (size_t i = 0; i < kConfigBytes / 2; ++i)
    EXPECT_EQ(reset[i] & ~writable[i], Get<uint16_t>(config, 2 * i)) << std::hex << 2 * i;
}

TEST(ConfigSpaceTest, FlrIsDeviceControlBit15InAnyAccessSize) {
  ConfigSpace config;
  EXPECT_FALSE(Put<uint16_t>(config, kExpressCap + 8, 0x2810));
  EXPECT_TRUE(Put<uint16_t>(config, kExpressCap + 8, 0x8000));
  EXPECT_TRUE(Put<uint8_t>(config, kExpressCap + 9, 0x80));
  EXPECT_TRUE(Put<uint32_t>(config, kExpressCap + 8, 0x8000));
  EXPECT_FALSE(Put<uint8_t>(config, kExpressCap + 8, 0x80));
}

// The VF as a PCI function has checked that: nothing outside is ever touched.
TEST(ConfigSpaceTest, AccessesEndWithTheSpace) {
  ConfigSpace config;
  EXPECT_EQ(0u, Get<uint32_t>(config, 0xffc));
  EXPECT_FALSE(Put<uint32_t>(config, 0xffc, 1));
  config.Read(0x1000, {});
  EXPECT_FALSE(config.Write(0x1000, {}));
  for (const size_t offset : {size_t{0xffd}, size_t{0x1000}, size_t{0x1001}, ~size_t{0}}) {
    EXPECT_DEATH((void)Get<uint32_t>(config, offset), "");
    EXPECT_DEATH(Put<uint32_t>(config, offset, 0), "");
  }
}

TEST(ConfigSpaceTest, ResetIsPowerOn) {
  ConfigSpace config;
  Put(config, 0x10, 0xfebe0000u);
  Put<uint16_t>(config, 4, 0x0406);
  config.Reset();
  EXPECT_EQ(0u, Get<uint32_t>(config, 0x10));
  EXPECT_EQ(0, Get<uint16_t>(config, 4));
}

}  // namespace
}  // namespace vgpud::vfio
