// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/topology.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "tests/scratch_dir.h"
#include "vgpud/host/thread_priority.h"

namespace vgpud::daemon {
namespace {

namespace fs = std::filesystem;
using Numbers = std::vector<int>;

// A sysfs of our own.
class TopologyTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) const {
    fs::create_directories((sys_ / path).parent_path());
    std::ofstream(sys_ / path) << text << "\n";
  }
  void AddDevice(const std::string& address, const std::string& vendor, const std::string& device,
                 const std::string& device_class, const std::string& node) const {
    const std::string path = "bus/pci/devices/" + address + "/";
    Write(path + "vendor", vendor);
    Write(path + "device", device);
    Write(path + "class", device_class);
    Write(path + "numa_node", node);
    Write(path + "irq", "0");
    Write(path + "resource", "0x0000000000000000 0x0000000000000000 0x0000000000000000");
  }

  const ScratchDir scratch_;
  const fs::path sys_ = scratch_.path();
};

TEST_F(TopologyTest, NodesWithTheirProcessors) {
  Write("devices/system/node/node1/cpulist", "4-5,7");
  Write("devices/system/node/node0/cpulist", "0-3");
  Write("devices/system/node/possible", "0-1");
  const Topology topology = ReadTopology(sys_);
  ASSERT_EQ(2u, topology.nodes.size());
  EXPECT_EQ(0, topology.nodes[0].number);
  EXPECT_EQ((Numbers{0, 1, 2, 3}), topology.nodes[0].processors);
  EXPECT_EQ((Numbers{4, 5, 7}), topology.Find(1)->processors);
  EXPECT_EQ(nullptr, topology.Find(2));
}

TEST_F(TopologyTest, WithoutNodesThereIsOneWithAllProcessors) {
  const Topology topology = ReadTopology(sys_);
  ASSERT_EQ(1u, topology.nodes.size());
  const cpu_set_t all = AllProcessors();
  EXPECT_EQ(static_cast<size_t>(CPU_COUNT(&all)), topology.nodes[0].processors.size());
  EXPECT_EQ("this host has no PCI bus", topology.pci_problem);
}

TEST_F(TopologyTest, GpusAreWhatIsOfTheirClasses) {
  AddDevice("0000:65:00.0", "0x10de", "0x2330", "0x030200", "1");
  AddDevice("0000:00:1f.2", "0x8086", "0x2922", "0x010601", "0");
  AddDevice("0001:02:03.1", "0x1234", "0x1111", "0x120000", "-1");
  AddDevice("0000:00:02.0", "0x1af4", "0x1050", "0x038000", "0");
  const Topology topology = ReadTopology(sys_);
  EXPECT_EQ("", topology.pci_problem);
  ASSERT_EQ(3u, topology.gpus.size());
  EXPECT_EQ("0000:00:02.0", topology.gpus[0].address);
  EXPECT_EQ(0, topology.gpus[0].node);
  EXPECT_EQ("0000:65:00.0", topology.gpus[1].address);
  EXPECT_EQ(0x10de, topology.gpus[1].vendor);
  EXPECT_EQ(0x0302, topology.gpus[1].device_class);
  EXPECT_EQ(1, topology.gpus[1].node);
  EXPECT_NE("", topology.gpus[1].name);
  EXPECT_EQ("0001:02:03.1", topology.gpus[2].address);
  EXPECT_FALSE(topology.gpus[2].node) << "the firmware does not say";
}

TEST_F(TopologyTest, BarsAndDriverOfAGpu) {
  AddDevice("0000:65:00.0", "0x10de", "0x2330", "0x030200", "1");
  const std::string path = "bus/pci/devices/0000:65:00.0/";
  Write(path + "resource",
        "0x00000000de000000 0x00000000deffffff 0x0000000000040200\n"
        "0x0000002000000000 0x0000003fffffffff 0x000000000014220c\n"
        "0x0000000000000000 0x0000000000000000 0x0000000000000000");
  fs::create_directories(sys_ / "bus/pci/drivers/nvidia");
  fs::create_directory_symlink("../../drivers/nvidia", sys_ / (path + "driver"));
  AddDevice("0000:66:00.0", "0x10de", "0x2330", "0x030200", "0");
  const Topology topology = ReadTopology(sys_);
  ASSERT_EQ("", topology.pci_problem);
  ASSERT_EQ(2u, topology.gpus.size());
  EXPECT_EQ("nvidia", topology.gpus[0].kernel_driver);
  EXPECT_EQ((std::array<uint64_t, 6>{16u << 20, uint64_t{128} << 30}), topology.gpus[0].bar_bytes);
  EXPECT_EQ("", topology.gpus[1].kernel_driver);
  EXPECT_EQ((std::array<uint64_t, 6>{}), topology.gpus[1].bar_bytes);
}

TEST(FindGpuTest, AddressesInEachSpelling) {
  Topology topology;
  topology.gpus.resize(2);
  topology.gpus[0].address = "0000:0a:00.0";
  topology.gpus[1].address = "0001:65:00.1";
  for (const char* address : {"0000:0a:00.0", "0000:0A:00.0", "00000000:0A:00.0", "0a:00.0"})
    EXPECT_EQ(&topology.gpus[0], topology.FindGpu(address)) << address;
  EXPECT_EQ(&topology.gpus[1], topology.FindGpu("00000001:65:00.1"));
  for (const char* other : {"", "0a", "0000:0b:00.0", "65:00.1", "MIG-0a:00.0"})
    EXPECT_EQ(nullptr, topology.FindGpu(other)) << other;
}

TEST(CpuListTest, IsReadAndWritten) {
  for (const char* text : {"", "0", "0-3", "0,2-3,8", "1023"}) {
    const auto list = ParseCpuList(text);
    ASSERT_TRUE(list) << text;
    EXPECT_EQ(text, CpuListText(*list));
  }
  for (const char* wrong : {"a", "1-", "-1", "3-2", "0,,1", "1024", "99999999999999999999", "0 1", "0-4294967296"})
    EXPECT_FALSE(ParseCpuList(wrong)) << wrong;
}

TEST(ProcessorsNearTest, OnlyWhereThereIsAChoice) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  for (const int cpu : {1, 2, 3}) CPU_SET(static_cast<size_t>(cpu), &allowed);
  Topology topology;
  topology.nodes = {{0, {0, 1}}, {1, {2, 3}}, {2, {4}}};
  const auto near = ProcessorsNear(topology, 0, allowed);
  ASSERT_TRUE(near);
  EXPECT_EQ(1, CPU_COUNT(&*near));
  EXPECT_TRUE(CPU_ISSET(1, &*near));
  const auto both = ProcessorsNear(topology, 1, allowed);
  ASSERT_TRUE(both);
  EXPECT_EQ(2, CPU_COUNT(&*both));
  EXPECT_FALSE(ProcessorsNear(topology, 2, allowed)) << "none of them is allowed";
  EXPECT_FALSE(ProcessorsNear(topology, 3, allowed)) << "there is no such node";
  EXPECT_FALSE(ProcessorsNear(topology, {}, allowed));
  topology.nodes = {{0, {0, 1, 2, 3}}};
  EXPECT_FALSE(ProcessorsNear(topology, 0, allowed)) << "one node only";
}

}  // namespace
}  // namespace vgpud::daemon
