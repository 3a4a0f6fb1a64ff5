// SPDX-License-Identifier: Apache-2.0
// Where the figures come from, against hosts and guest drivers that answer well and badly.
#include "guest-driver-shim/libnvidia-ml/source.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>

#include "tests/scratch_dir.h"
#include "tests/unit/nvml/status_server.h"

namespace vgpud::nvml {
namespace {

vgpu_status Figures() {
  vgpu_status status{};
  status.bytes = sizeof status;
  status.vram_bytes = 300;
  status.vram_used_bytes = 100;
  status.gpu_percent = 42;
  strcpy(status.gpu_name, "a GPU");
  status.channel[0] = {.id = 7, .pid = 4711, .flags = VGPU_STATUS_CONTEXT, .vram_bytes = 100, .gpu_ns = 5};
  return status;
}

int Read(const std::string& answer, vgpu_status* status) {
  StatusServer server([&](const vgpu_sock_request&) { return answer; });
  return OpenSocket(server.path())->Read(status);
}

TEST(Source, AsksTheSocketOnceForEachReading) {
  vgpu_sock_request asked{};
  StatusServer server([&](const vgpu_sock_request& request) {
    asked = request;
    return StatusServer::Reply(Figures());
  });
  const auto source = OpenSocket(server.path());
  for (int i = 0; i < 3; ++i) {
    vgpu_status status;
    ASSERT_EQ(0, source->Read(&status));
    EXPECT_EQ(42u, status.gpu_percent);
    EXPECT_EQ(4711u, status.channel[0].pid);
  }
  EXPECT_EQ(VGPU_SOCK_STATUS, asked.op);
  EXPECT_EQ(0u, asked.bytes);
  EXPECT_EQ(0u, asked.buffer);
  EXPECT_EQ(0u, asked.mbz | asked.offset);
  EXPECT_FALSE(source->pci) << "on no bus";
  EXPECT_FALSE(source->number);
}

TEST(Source, WhatTheSocketAnswersIsChecked) {
  vgpu_status status;
  const vgpu_sock_status good{VGPU_SOCK_STATUS, 0, 0, Figures()};
  const auto cut = [&](size_t bytes) { return StatusServer::Bytes(good, bytes); };
  EXPECT_EQ(0, Read(cut(sizeof good), &status));
  EXPECT_EQ(0, Read(cut(sizeof good) + "more that a later host says", &status));
  EXPECT_EQ(0, Read(cut(0x10 + 0x100), &status)) << "no list of channels";
  EXPECT_EQ(EPROTO, Read(cut(0x10 + 0xff), &status));
  EXPECT_EQ(EPROTO, Read(cut(0x10), &status));
  EXPECT_EQ(EPROTO, Read(cut(8), &status));
  EXPECT_EQ(EPROTO, Read(cut(7), &status));
  EXPECT_EQ(ECONNRESET, Read("", &status));
  vgpu_sock_reply refused{VGPU_SOCK_STATUS, -ENOSYS, 0, 0, {}};
  EXPECT_EQ(ENOSYS, Read(StatusServer::Bytes(refused), &status)) << "a host that does not know it";
  refused.status = 5;
  EXPECT_EQ(EPROTO, Read(StatusServer::Bytes(refused), &status));
  refused.op = VGPU_SOCK_OPEN;
  EXPECT_EQ(EPROTO, Read(StatusServer::Bytes(refused), &status));
  vgpu_sock_status little = good;
  little.vf.bytes = 0xff;
  EXPECT_EQ(EPROTO, Read(StatusServer::Bytes(little), &status));
}

TEST(Source, TextsThatDoNotEndAreCut) {
  vgpu_sock_status reply{VGPU_SOCK_STATUS, 0, 0, Figures()};
  memset(reply.vf.name, 'n', sizeof reply.vf.name);
  memset(reply.vf.gpu_name, 'g', sizeof reply.vf.gpu_name);
  vgpu_status status;
  ASSERT_EQ(0, Read(StatusServer::Bytes(reply), &status));
  EXPECT_EQ(std::string(63, 'n'), status.name);
  EXPECT_EQ(std::string(63, 'g'), status.gpu_name);
}

TEST(Source, NoSocketIsAnError) {
  vgpu_status status;
  EXPECT_EQ(ENOENT, OpenSocket("/tmp/there is no such socket")->Read(&status));
  EXPECT_EQ(ENAMETOOLONG, OpenSocket(std::string(200, 'x'))->Read(&status));
}

class Devices : public testing::Test {
 protected:
  void Make(const std::string& name, const std::string& address) {
    std::filesystem::create_directories(folder_ + "/" + name);
    if (!address.empty()) std::filesystem::create_symlink("../../../" + address, folder_ + "/" + name + "/device");
  }
  const ScratchDir scratch_;
  const std::string& folder_ = scratch_.path();
};

TEST_F(Devices, AreFoundByNumberWithTheirAddresses) {
  EXPECT_TRUE(FindDevices(folder_, folder_).empty());
  EXPECT_TRUE(FindDevices(folder_ + "/nothing", folder_).empty());
  Make("vgpu1", "pci0000:00/0000:00:05.0");
  Make("vgpu15", "1234:ab:1f.0");
  Make("vgpu16", "0000:00:06.0");
  const auto found = FindDevices(folder_, folder_);
  ASSERT_EQ(2u, found.size());
  EXPECT_EQ(1u, found[0]->number);
  EXPECT_EQ(5u, found[0]->pci->device);
  EXPECT_EQ(15u, found[1]->number);
  EXPECT_EQ(0x1234u, found[1]->pci->domain);
  EXPECT_EQ(0xabu, found[1]->pci->bus);
  EXPECT_EQ(0x1fu, found[1]->pci->device);
}

// What a driver answers: tests/vm/nvml_test.py.
TEST_F(Devices, ADriverThatTellsNothingIsAnError) {
  Make("vgpu0", "0000:00:05.0");
  Make("vgpu1", "");
  const auto found = FindDevices(folder_, "/dev/fd");
  ASSERT_EQ(2u, found.size());
  vgpu_status status;
  EXPECT_EQ(ENOENT, found[0]->Read(&status));
  std::filesystem::create_directories(folder_ + "/files");
  std::ofstream(folder_ + "/files/vgpu0") << "no device";
  EXPECT_EQ(ENOSYS, FindDevices(folder_, folder_ + "/files")[0]->Read(&status)) << "too old to know the question";
}

}  // namespace
}  // namespace vgpud::nvml
