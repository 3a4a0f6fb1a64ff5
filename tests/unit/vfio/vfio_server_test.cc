// SPDX-License-Identifier: Apache-2.0
// The vfio-user messages of a VF: what each command takes and answers.
#include "vfio/vfio_server.h"

#include "tests/unit/vfio/vfio_server_rig.h"

namespace vgpud::vfio {
namespace {

constexpr size_t kLongestText = 4096;

class VfioServerTest : public VfioServerRig {};

// vfio-user 0.9.2 and linux/vfio.h.
TEST_F(VfioServerTest, EveryCommandTakesBodiesOfItsSizesAndNoOthers) {
  struct {
    Op command;
    std::string body;
    size_t least, most;
  } const rows[] = {
      {Op::kDmaMap, Map(0x4000'0000, 0x1000), 32, 32},
      {Op::kDmaUnmap, Unmap(0x4000'0000, 0x1000), 24, 24},
      {Op::kDeviceGetInfo, Bytes(wire::DeviceInfo{16}), 16, 64},
      {Op::kDeviceGetRegionInfo, Bytes(wire::RegionInfo{32}), 32, 4096},
      {Op::kDeviceGetIrqInfo, Bytes(wire::IrqInfo{16}), 16, 64},
      {Op::kDeviceSetIrqs, Bytes(wire::SetIrqs{20, 0x21, 1, 0, 1}), 20, 20},
      {Op::kRegionRead, Access(0, 0, 4), 16, 16},
      {Op::kRegionWrite, Access(0, 0, 4) + "abcd", 20, 20},
      {Op::kDeviceReset, "", 0, 0},
  };
  const auto client = Connect();
  EXPECT_EQ(0u, Error(*client, Op::kDeviceReset)) << "the first one, behind the VERSION in our memory";
  for (const auto& row : rows) {
    const int command = static_cast<int>(row.command);
    ASSERT_EQ(row.least, row.body.size());
    if (row.least > 0) {
      EXPECT_EQ(uint32_t{EINVAL}, Error(*client, row.command, row.body.substr(0, row.least - 1))) << command;
    }
    EXPECT_EQ(uint32_t{EINVAL}, Error(*client, row.command, row.body + std::string(row.most + 1 - row.least, '\0')))
        << command;
    EXPECT_EQ(0u, Error(*client, row.command, row.body)) << command;
    if (row.most > row.least) {
      EXPECT_EQ(0u, Error(*client, row.command, row.body + std::string(row.most - row.least, '\xff'))) << command;
    }
  }
}

TEST_F(VfioServerTest, DescriptorsComeWithTheCommandsThatTakeThem) {
  struct {
    Op command;
    std::string body;
    size_t most;
  } const rows[] = {
      {Op::kDmaMap, Map(0x4000'0000, 0x1000), 1},
      {Op::kDmaUnmap, Unmap(0x4000'0000, 0x1000), 0},
      {Op::kDeviceGetInfo, Bytes(wire::DeviceInfo{16}), 0},
      {Op::kDeviceGetRegionInfo, Bytes(wire::RegionInfo{32}), 0},
      {Op::kDeviceGetIrqInfo, Bytes(wire::IrqInfo{16}), 0},
      {Op::kDeviceSetIrqs, Bytes(wire::SetIrqs{20, 0x24, 1, 0, 1}), 1},
      {Op::kRegionRead, Access(0, 0, 4), 0},
      {Op::kRegionWrite, Access(0, 0, 4) + "abcd", 0},
      {Op::kDeviceReset, "", 0},
  };
  const auto client = Connect(false);
  EXPECT_EQ(uint32_t{EINVAL}, Error(*client, Op::kVersion, Bytes(wire::Version{}), {ram.get()}));
  EXPECT_EQ(0u, Error(*client, Op::kVersion, Bytes(wire::Version{})));
  for (const auto& row : rows) {
    const int fd = row.command == Op::kDeviceSetIrqs ? msi.get() : ram.get();
    EXPECT_EQ(uint32_t{EINVAL}, Error(*client, row.command, row.body, std::vector<int>(row.most + 1, fd)))
        << static_cast<int>(row.command);
    EXPECT_EQ(0u, Error(*client, row.command, row.body, std::vector<int>(row.most, fd)))
        << static_cast<int>(row.command);
  }
  EXPECT_EQ(uint32_t{EINVAL}, Error(*client, Op::kDmaMap, Map(0x5000'0000, 0x1000), std::vector<int>(16, ram.get())));
}

TEST_F(VfioServerTest, VersionComesFirstOnceAndWithATextThatEnds) {
  const auto client = Connect(false);
  const auto version = [&](const std::string& text, uint16_t major = 0, uint16_t minor = 0) {
    return Error(*client, Op::kVersion, Bytes(wire::Version{major, minor}) + text);
  };
  for (const Op command : {Op{0}, Op::kDmaMap, Op::kDeviceReset, Op{14}, Op{0xffff}})
    EXPECT_EQ(uint32_t{EINVAL}, Error(*client, command)) << static_cast<int>(command);
  EXPECT_EQ(uint32_t{EPROTONOSUPPORT}, version("", 1));
  EXPECT_EQ(uint32_t{EINVAL}, version("{}"));
  EXPECT_EQ(uint32_t{EINVAL}, version(std::string("{}\0\0", 4)));
  EXPECT_EQ(uint32_t{EINVAL}, version(std::string("\0\0", 2)));
  EXPECT_EQ(uint32_t{EINVAL}, version(std::string("{}\0x", 4)));
  EXPECT_EQ(uint32_t{EINVAL}, Error(*client, Op::kVersion, std::string(3, '\0')));
  const std::string longest = "{\"a\":\"" + std::string(kLongestText - 8, 'x') + "\"}";
  EXPECT_EQ(uint32_t{EINVAL}, version(longest + " " + '\0'));
  const Answer answer = Call(*client, Op::kVersion, Bytes(wire::Version{0, 7}) + longest + '\0');
  EXPECT_EQ(
      Bytes(wire::Version{0, 0}) +
          R"({"capabilities":{"max_msg_fds":16,"max_data_xfer_size":65536,"max_dma_maps":65535,"pgsizes":4096}})" +
          '\0',
      answer.body);
  EXPECT_EQ(uint32_t{EINVAL}, version("")) << "said already";
  EXPECT_EQ(uint32_t{ENOSYS}, Error(*client, Op{14}));
  EXPECT_EQ(0u, Error(*client, Op::kDeviceReset));
}

TEST_F(VfioServerTest, AVersionWithoutATextOrWithAnEmptyOneWillDo) {
  for (const std::string& text : {std::string(), std::string(1, '\0'), std::string("{}\0", 3)}) {
    const auto client = Connect(false);
    EXPECT_EQ(0u, Error(*client, Op::kVersion, Bytes(wire::Version{}) + text)) << text.size();
    client->Close();
    Pump();
  }
}

TEST_F(VfioServerTest, StructsThatSayTheyAreTooShortAreRefused) {
  const auto client = Connect();
  const std::pair<Op, std::string> rows[] = {
      {Op::kDmaMap, Map(0x4000'0000, 0x1000)},         {Op::kDmaUnmap, Unmap(0x4000'0000, 0x1000)},
      {Op::kDeviceGetInfo, Bytes(wire::DeviceInfo{})}, {Op::kDeviceGetRegionInfo, Bytes(wire::RegionInfo{})},
      {Op::kDeviceGetIrqInfo, Bytes(wire::IrqInfo{})}, {Op::kDeviceSetIrqs, Bytes(wire::SetIrqs{0, 0x21, 1, 0, 1})},
  };
  for (const auto& [command, good] : rows) {
    std::string body = good;
    for (const uint32_t argsz : {uint32_t{0}, static_cast<uint32_t>(body.size()) - 1}) {
      std::memcpy(body.data(), &argsz, sizeof argsz);
      EXPECT_EQ(uint32_t{EINVAL}, Error(*client, command, body)) << static_cast<int>(command) << " " << argsz;
    }
    for (const uint32_t argsz : {static_cast<uint32_t>(body.size()), ~uint32_t{0}}) {
      std::memcpy(body.data(), &argsz, sizeof argsz);
      if (command == Op::kDmaMap && argsz == ~uint32_t{0}) continue;  // it is there already
      if (command == Op::kDmaUnmap && argsz == ~uint32_t{0}) continue;
      EXPECT_EQ(0u, Error(*client, command, body)) << static_cast<int>(command) << " " << argsz;
    }
  }
}

TEST_F(VfioServerTest, TheDeviceIsDescribed) {
  const auto client = Connect();
  EXPECT_EQ(Bytes(wire::DeviceInfo{16, 3, 9, 5}), Call(*client, Op::kDeviceGetInfo, Bytes(wire::DeviceInfo{16})).body);
  const uint64_t sizes[9] = {0x10000, 0, 0, 0, 0, 0, 0, 4096, 0};
  for (uint32_t index = 0; index < 9; ++index)
    EXPECT_EQ(Bytes(wire::RegionInfo{32, sizes[index] != 0 ? 3u : 0u, index, 0, sizes[index], 0}),
              Call(*client, Op::kDeviceGetRegionInfo, Bytes(wire::RegionInfo{32, 0, index})).body);
  EXPECT_EQ(uint32_t{EINVAL}, Error(*client, Op::kDeviceGetRegionInfo, Bytes(wire::RegionInfo{32, 0, 9})));
  EXPECT_EQ(Bytes(wire::IrqInfo{16, 7, 0, 1}),
            Call(*client, Op::kDeviceGetIrqInfo, Bytes(wire::IrqInfo{16, 0, 0, 0})).body);
  EXPECT_EQ(uint32_t{EINVAL}, Error(*client, Op::kDeviceGetIrqInfo, Bytes(wire::IrqInfo{16, 0, 5, 0})));
}

TEST_F(VfioServerTest, RegionsAreReadAndWrittenWithinTheirBounds) {
  const auto client = Connect();
  const Answer word = Call(*client, Op::kRegionRead, Access(0x010, 0, 4));
  EXPECT_EQ(Access(0x010, 0, 4) + std::string("\x40\0\0\0", 4), word.body);
  const Answer all = Call(*client, Op::kRegionRead, Access(0, 0, 65536));
  EXPECT_EQ(16u + 65536u, all.body.size());
  struct {
    uint64_t offset;
    uint32_t region, bytes;
    uint32_t error;
  } const cases[] = {
      {0, 0, 0, EINVAL},      {0, 0, 65537, EINVAL},   {1, 0, 65536, EINVAL}, {0xffff, 0, 1, 0},
      {0xffff, 0, 2, EINVAL}, {0x10000, 0, 1, EINVAL}, {~0ull, 0, 1, EINVAL}, {4095, 7, 1, 0},
      {4095, 7, 2, EINVAL},   {4096, 7, 1, EINVAL},    {0, 7, 4096, 0},       {0, 1, 1, EINVAL},
      {0, 6, 1, EINVAL},      {0, 8, 1, EINVAL},       {0, 9, 1, EINVAL},     {0, ~0u, 1, EINVAL},
  };
  for (const auto& c : cases) {
    const std::string access = Access(c.offset, c.region, c.bytes);
    EXPECT_EQ(c.error, Error(*client, Op::kRegionRead, access)) << c.region << ":" << c.offset << "+" << c.bytes;
    if (c.bytes <= 65536) {
      EXPECT_EQ(c.error, Error(*client, Op::kRegionWrite, access + std::string(c.bytes, '\0')))
          << c.region << ":" << c.offset << "+" << c.bytes;
    }
  }
  EXPECT_EQ(Access(0x100, 0, 4), Call(*client, Op::kRegionWrite, Access(0x100, 0, 4) + "abcd").body);
  EXPECT_EQ(Access(0x100, 0, 4) + "abcd", Call(*client, Op::kRegionRead, Access(0x100, 0, 4)).body);
  EXPECT_EQ(uint32_t{EINVAL}, Error(*client, Op::kRegionWrite, Access(0x100, 0, 4) + "abc"));
  EXPECT_EQ(uint32_t{EINVAL}, Error(*client, Op::kRegionWrite, Access(0x100, 0, 4) + "abcde"));
}

TEST_F(VfioServerTest, WhatIsAskedOfADeviceThatGoesIsAnsweredAndThenTheConnectionEnds) {
  const auto client = Connect();
  client->Send(TestClient::Message(1, Op::kRegionRead, Access(0, 0, 4)));
  function->Vanish();
  server_->Retire();
  Pump();
  const auto sent_before = client->Next();
  ASSERT_TRUE(sent_before);
  EXPECT_EQ(~0u, As<uint32_t>(sent_before->body, sizeof(wire::RegionAccess)));
  const Answer config = Call(*client, Op::kRegionRead, Access(0, 7, 4));
  EXPECT_EQ(~0u, As<uint32_t>(config.body, sizeof(wire::RegionAccess)));
  EXPECT_EQ(0u, Error(*client, Op::kRegionWrite, Access(0, 7, 4) + std::string(4, '\0')));
  EXPECT_EQ(uint32_t{EINVAL}, Error(*client, Op::kRegionRead, Access(0, 7, 65536))) << "not inside";
  TestClient late(path_);
  while (!client->Ended()) event_base_loop(loop.base(), EVLOOP_ONCE);
  EXPECT_EQ((std::vector<bool>{true, false}), changes_);
  EXPECT_FALSE(late.Next()) << "nobody is let in any more";
}

TEST_F(VfioServerTest, MemoryIsMappedAsTheFlagsSayAndUnmapped) {
  const auto client = Connect();
  const auto resolves = [&](uint64_t at, bool write) {
    return function->dma.Resolve({Iova{at}, 0x1000}, write).has_value();
  };
  for (const uint32_t flags : {4u, 7u, 8u, ~0u})
    EXPECT_EQ(uint32_t{EINVAL}, Error(*client, Op::kDmaMap, Map(0x4000'0000, 0x1000, flags), {ram.get()})) << flags;
  EXPECT_EQ("", Call(*client, Op::kDmaMap, Map(0x4000'0000, 0x1000, 1), {ram.get()}).body);
  EXPECT_TRUE(resolves(0x4000'0000, false));
  EXPECT_FALSE(resolves(0x4000'0000, true));
  EXPECT_EQ(0u, Error(*client, Op::kDmaMap, Map(0x4000'1000, 0x1000, 3, 0x5000), {ram.get()}));
  EXPECT_TRUE(resolves(0x4000'1000, true));
  EXPECT_EQ(0x5000u, (*function->dma.Resolve({Iova{0x4000'1000}, 1}, true))[0].offset);
  EXPECT_EQ(0u, Error(*client, Op::kDmaMap, Map(0x4000'2000, 0x1000, 2), {ram.get()}));
  EXPECT_FALSE(resolves(0x4000'2000, false)) << "not to be read";
  EXPECT_EQ(0u, Error(*client, Op::kDmaMap, Map(0x4000'3000, 0x1000, 0)));
  EXPECT_FALSE(resolves(0x4000'3000, false)) << "nothing behind it";

  for (const uint32_t flags : {1u, 3u, 4u, ~0u})
    EXPECT_EQ(uint32_t{EINVAL}, Error(*client, Op::kDmaUnmap, Unmap(0x4000'0000, 0x1000, flags))) << flags;
  EXPECT_EQ(uint32_t{EINVAL}, Error(*client, Op::kDmaUnmap, Unmap(0, 0x1000, 2)));
  EXPECT_EQ(uint32_t{EINVAL}, Error(*client, Op::kDmaUnmap, Unmap(0x4000'0000, 0, 2)));
  EXPECT_EQ(uint32_t{EINVAL}, Error(*client, Op::kDmaUnmap, Unmap(1, 0, 2)));
  EXPECT_EQ(uint32_t{EINVAL}, Error(*client, Op::kDmaUnmap, Unmap(0, 1, 2)));
  EXPECT_EQ(uint32_t{ENOENT}, Error(*client, Op::kDmaUnmap, Unmap(0x8000'0000, 0x1000)));
  EXPECT_EQ(5u, function->dma.regions());
  EXPECT_EQ(Unmap(0x4000'0000, 0x1000), Call(*client, Op::kDmaUnmap, Unmap(0x4000'0000, 0x1000)).body);
  EXPECT_EQ(4u, function->dma.regions());
  EXPECT_EQ(Unmap(0, 0, 2), Call(*client, Op::kDmaUnmap, Unmap(0, 0, 2)).body);
  EXPECT_EQ(0u, function->dma.regions());
}

}  // namespace
}  // namespace vgpud::vfio
