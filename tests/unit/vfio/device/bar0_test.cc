// SPDX-License-Identifier: Apache-2.0
// Every register of BAR0, in every way in which a guest can get at it.
#include "vfio/device/bar0.h"

#include <cstring>
#include <map>
#include <string>

#include "base/signal_socket.h"
#include "tests/unit/vfio/vf_rig.h"

namespace vgpud::vfio {
namespace {

class Bar0Test : public VfRig {
 protected:
  Bar0Test() {
    figures.name = "rig";
    for (uint8_t i = 0; i < 16; ++i) figures.uuid[i] = static_cast<uint8_t>(0xa0 + i);
    figures.vram_bytes = 0x12'3456'7000;
    figures.slice_us = 2'000;
    figures.weight = 300;
    figures.vf_state = VGPU_VF_PARKED;
  }
  std::vector<std::byte> Read(uint64_t offset, size_t bytes) {
    std::vector<std::byte> out(bytes, std::byte{0xee});
    EXPECT_TRUE(function->Read(wire::kBar0, offset, out)) << offset << "+" << bytes;
    return out;
  }
  void Write(uint64_t offset, std::vector<uint8_t> bytes) {
    EXPECT_TRUE(function->Write(wire::kBar0, offset, std::as_bytes(std::span{bytes})));
  }
  uint64_t Rings() const { return guard.count(GuardedEvent::kDoorbell); }
};

// As vgpu_abi.h has it; what is not listed reads 0.
TEST_F(Bar0Test, EveryRegisterReadsAsTheAbiSays) {
  const std::map<uint32_t, uint32_t> registers = {
      {0x000, 0x55504756},                  // "VGPU"
      {0x004, 1},                           // the oldest version
      {0x008, 0xbf00ff},                    // features
      {0x010, 64},                          // channels
      {0x014, 2},                           // parked
      {0x018, 0x3456'7000}, {0x01c, 0x12},  // VRAM
      {0x020, 2'000},                       // slice
      {0x024, 300},                         // weight
      {0x028, 1},                           // the newest version
      {0x030, 0xa3a2a1a0},  {0x034, 0xa7a6a5a4}, {0x038, 0xabaaa9a8},
      {0x03c, 0xafaeadac},  {0x040, 0x00676972},  // "rig"
  };
  for (uint32_t at = 0; at < VGPU_BAR0_BYTES; at += 4) {
    const auto found = registers.find(at);
    ASSERT_EQ(found == registers.end() ? 0 : found->second, ReadRegister(at)) << std::hex << at;
  }
}

TEST_F(Bar0Test, ANameFillsItsRegistersButForTheNulAtTheEnd) {
  figures.name.clear();
  for (int i = 0; i < 70; ++i) figures.name += static_cast<char>('0' + i % 10);
  std::string shown(64, '\0');
  std::memcpy(shown.data(), Read(0x040, 64).data(), 64);
  EXPECT_EQ(figures.name.substr(0, 63) + '\0', shown);
  EXPECT_EQ(0u, ReadRegister(0x080));
  figures.name.resize(63);
  EXPECT_EQ(0x00323130u, ReadRegister(0x07c));
  figures.name.resize(4);
  EXPECT_EQ(0x33323130u, ReadRegister(0x040));
  EXPECT_EQ(0u, ReadRegister(0x044));
}

TEST_F(Bar0Test, AnySizeAndAlignmentCanBeRead) {
  figures.name = "a name of more than sixteen letters";
  const std::vector<std::byte> all = Read(0, 0x100);
  for (size_t at = 0; at < 0x60; ++at)
    for (size_t bytes = 1; bytes <= 13; ++bytes)
      ASSERT_EQ(std::vector<std::byte>(all.begin() + at, all.begin() + at + bytes), Read(at, bytes)) << at << bytes;
}

TEST_F(Bar0Test, WhatTheGuestWritesItReadsUntilAReset) {
  const std::map<uint32_t, uint32_t> written = {
      {0x100, 0xdeadb000}, {0x104, 0x1234'5678}, {0x118, 77}, {0x120, 0x0000'00fd}, {0x124, 0}};
  for (const auto& [at, value] : written) EXPECT_EQ(0u, ReadRegister(at)) << std::hex << at;
  WriteRegister(0x100, 0xdeadb000);
  WriteRegister(0x104, 0x1234'5678);
  WriteRegister(0x118, 77);
  WriteRegister(0x120, 0xffff'ffff);  // those that the host has
  WriteRegister(0x124, 0xffff'ffff);  // none
  for (const auto& [at, value] : written) EXPECT_EQ(value, ReadRegister(at)) << std::hex << at;
  WriteRegister(0x100, 0x1000);
  EXPECT_EQ(0x1234'5678u, ReadRegister(0x104)) << "the other half stays";
  WriteRegister(0x104, 1);
  EXPECT_EQ(0x1000u, ReadRegister(0x100));
  function->Reset();
  for (const auto& [at, value] : written) EXPECT_EQ(0u, ReadRegister(at)) << std::hex << at;
}

TEST_F(Bar0Test, OnlyWholeRegistersAndPairsCanBeWritten) {
  for (const size_t bytes : {1, 2, 3, 5, 6, 7, 12, 16}) Write(0x100, std::vector<uint8_t>(bytes, 0xff));
  for (const uint64_t at : {0x0fd, 0x0fe, 0x0ff, 0x101, 0x102, 0x103}) {
    Write(at, std::vector<uint8_t>(4, 0xff));
    Write(at, std::vector<uint8_t>(8, 0xff));
  }
  EXPECT_EQ(0u, ReadRegister(0x100));
  EXPECT_EQ(0u, ReadRegister(0x104));
  Write(0x100, {0, 0x10, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(0x03021000u, ReadRegister(0x100));
  EXPECT_EQ(0x07060504u, ReadRegister(0x104));
}

TEST_F(Bar0Test, EachChannelHasADoorbellAndThereAreNoMore) {
  for (uint32_t channel = 0; channel < 64; ++channel) WriteRegister(0x1000 + 4 * channel, 1);
  EXPECT_EQ(64u, Rings());
  WriteRegister(0x0ffc, 1);
  WriteRegister(0x1100, 1);
  EXPECT_EQ(64u, Rings());
  SetControlPage();
  const auto first = OpenWithExecutor(0);
  FillHeader();
  ASSERT_EQ(0, Command(VGPU_CTRL_CHANNEL_CREATE, 63, 0, ChannelSegments()));
  const auto last = SendExecutor();
  for (const auto& [offset, rung] : std::map<uint32_t, FakeExecutor*>{{0x1000, first.get()}, {0x10fc, last.get()}}) {
    WriteRegister(offset, 1);
    for (FakeExecutor* executor : {first.get(), last.get()}) {
      executor->Drain();
      EXPECT_EQ(executor == rung ? Signals::kSome : Signals::kNone, TakeSignals(executor->messages[0].fds[0].get()));
    }
  }
}

// The VF as a PCI function has checked that: nothing outside is ever touched.
TEST_F(Bar0Test, AccessesEndWithTheBar) {
  ControlPage control(loop, *channels, function->dma, function->irqs, figures, guard);
  Bar0 bar(figures, function->irqs, *channels, control);
  std::byte bytes[4] = {};
  const std::span<std::byte> four{bytes}, none;
  bar.Read(0xfffc, four);
  bar.Write(0xfffc, four);
  bar.Read(0x10000, none);
  bar.Write(0x10000, none);
  for (const uint32_t offset : {0xfffdu, 0x10000u, 0x10001u, ~0u}) {
    EXPECT_DEATH(bar.Read(offset, four), "");
    EXPECT_DEATH(bar.Write(offset, four), "");
  }
  EXPECT_DEATH(bar.Read(0x10001, none), "");
}

}  // namespace
}  // namespace vgpud::vfio
