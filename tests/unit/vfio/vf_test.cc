// SPDX-License-Identifier: Apache-2.0
#include "vfio/vf.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>

#include "base/message.h"
#include "base/slice_memory.h"
#include "tests/unit/vfio/vfio_server_rig.h"

namespace vgpud::vfio {
namespace {

namespace fs = std::filesystem;

// Descriptors of this process whose file has `name` in its name.
int OpenFilesNamed(const std::string& name) {
  int count = 0;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd"))
    count += fs::read_symlink(entry, gone).string().find(name) != std::string::npos;
  return count;
}

UniqueFd Listen(const std::string& path, int type) { return *ListenUnix(path, type); }

TEST(VfTest, WhoServesAVfHasTheFilesOfItsSlicePagesNoMore) {
  std::string folder = (fs::temp_directory_path() / "vgpud-vf-XXXXXX").string();
  ASSERT_NE(nullptr, ::mkdtemp(folder.data()));
  SocketPair link = *MakeSeqpacketPair();
  {
    const SliceMemory memory = *MakeSliceMemory("given-up");
    const int fds[] = {memory.grant_fd.get(), memory.slots_fd.get()};
    ASSERT_TRUE(SendStruct(link.a.get(), vf_link::Configure{}, fds));
  }
  EventLoop loop;
  const auto vf = Vf::Start(
      loop, "a", {std::move(link.b), Listen(folder + "/a", SOCK_STREAM), Listen(folder + "/b", SOCK_SEQPACKET)},
      kDefaultEventBudgets, false);
  EXPECT_TRUE(vf) << vf.error().context;
  EXPECT_EQ(0, OpenFilesNamed("given-up"));
  fs::remove_all(folder);
}

TEST(VfTest, ItsJailIsWatchedWhereVgpudWantsThat) {
  for (const uint32_t watched : {0u, 1u}) {
    std::string folder = (fs::temp_directory_path() / "vgpud-vf-XXXXXX").string();
    ASSERT_NE(nullptr, ::mkdtemp(folder.data()));
    SocketPair link = *MakeSeqpacketPair();
    const SliceMemory memory = *MakeSliceMemory("watched");
    const int fds[] = {memory.grant_fd.get(), memory.slots_fd.get()};
    vf_link::Configure configure;
    configure.watched = watched;
    ASSERT_TRUE(SendStruct(link.a.get(), configure, fds));
    EventLoop loop;
    const auto vf = Vf::Start(
        loop, "a", {std::move(link.b), Listen(folder + "/a", SOCK_STREAM), Listen(folder + "/b", SOCK_SEQPACKET)},
        kDefaultEventBudgets, false);
    ASSERT_TRUE(vf) << vf.error().context;
    EXPECT_EQ(watched != 0, (*vf)->watched());
    const auto hello = ReceiveMessage(link.a.get());
    ASSERT_TRUE(hello);
    EXPECT_EQ(vf_link::Kind::kHello, *hello->As<vf_link::Kind>());
    fs::remove_all(folder);
  }
}

// QEMU stops a virtual CPU for 5 s when nobody answers what it reads.
TEST(VfTest, WhatAGuestReadsWhileItsVfEndsIsAnswered) {
  std::string folder = (fs::temp_directory_path() / "vgpud-vf-XXXXXX").string();
  ASSERT_NE(nullptr, ::mkdtemp(folder.data()));
  SocketPair link = *MakeSeqpacketPair();
  const SliceMemory memory = *MakeSliceMemory("ends");
  const int fds[] = {memory.grant_fd.get(), memory.slots_fd.get()};
  ASSERT_TRUE(SendStruct(link.a.get(), vf_link::Configure{}, fds));
  EventLoop loop;
  const auto vf = Vf::Start(
      loop, "a", {std::move(link.b), Listen(folder + "/a", SOCK_STREAM), Listen(folder + "/b", SOCK_SEQPACKET)},
      kDefaultEventBudgets, false);
  ASSERT_TRUE(vf) << vf.error().context;
  TestClient client(folder + "/a");
  client.Send(TestClient::Message(1, Op::kVersion, Bytes(wire::Version{})));
  while (!client.Next()) event_base_loop(loop.base(), EVLOOP_NONBLOCK);

  ASSERT_TRUE(SendStruct(link.a.get(), vf_link::Plain{vf_link::Kind::kShutdown}));
  client.Send(TestClient::Message(2, Op::kRegionRead, Bytes(wire::RegionAccess{0, 0, 4})));
  loop.Run();
  const auto answer = client.Next();
  ASSERT_TRUE(answer);
  EXPECT_EQ(~0u, As<uint32_t>(answer->body, sizeof(wire::RegionAccess)));
  EXPECT_TRUE(client.Ended());
  fs::remove_all(folder);
}

}  // namespace
}  // namespace vgpud::vfio
