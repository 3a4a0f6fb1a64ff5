// SPDX-License-Identifier: Apache-2.0
#include "vfio/vf.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>

#include "base/message.h"
#include "base/slice_memory.h"

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

}  // namespace
}  // namespace vgpud::vfio
