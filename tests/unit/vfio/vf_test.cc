// SPDX-License-Identifier: Apache-2.0
#include "vfio/vf.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "base/message.h"
#include "base/slice_memory.h"
#include "tests/scratch_dir.h"
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

// A VF in this process, and the ends of vgpud and of QEMU.
class VfTest : public testing::Test {
 protected:
  void StartVf(const vf_link::Configure& configure, const std::string& slice_pages) {
    SocketPair link = *MakeSeqpacketPair();
    vgpud_ = std::move(link.a);
    {
      const SliceMemory memory = *MakeSliceMemory(slice_pages);
      const int fds[] = {memory.grant_fd.get(), memory.slots_fd.get()};
      ASSERT_TRUE(SendStruct(vgpud_.get(), configure, fds));
    }
    auto vf = Vf::Start(loop_, "a",
                        {std::move(link.b), Listen(vfio_socket(), SOCK_STREAM), Listen(folder_ + "/b", SOCK_SEQPACKET)},
                        kDefaultEventBudgets, false);
    ASSERT_TRUE(vf) << vf.error().context;
    vf_ = std::move(*vf);
  }
  std::string vfio_socket() const { return folder_ + "/a"; }

  const ScratchDir scratch_;
  const std::string& folder_ = scratch_.path();
  EventLoop loop_;
  UniqueFd vgpud_;
  std::unique_ptr<Vf> vf_;
};

TEST_F(VfTest, WhoServesAVfHasTheFilesOfItsSlicePagesNoMore) {
  StartVf({}, "given-up");
  EXPECT_EQ(0, OpenFilesNamed("given-up"));
}

TEST_F(VfTest, ItsJailIsWatchedWhereVgpudWantsThat) {
  for (const uint32_t watched : {0u, 1u}) {
    vf_link::Configure configure;
    configure.watched = watched;
    StartVf(configure, "watched");
    EXPECT_EQ(watched != 0, vf_->watched());
    const auto hello = ReceiveMessage(vgpud_.get());
    ASSERT_TRUE(hello);
    EXPECT_EQ(vf_link::Kind::kHello, *hello->As<vf_link::Kind>());
    vf_.reset();
  }
}

TEST_F(VfTest, NewQuotasAreAnswered) {
  vf_link::Configure configure;
  configure.vram_bytes = 64 << 20;
  StartVf(configure, "quotas");
  ASSERT_TRUE(ReceiveMessage(vgpud_.get()));  // kHello
  const auto set = [&](const auto& quotas) -> std::optional<vf_link::QuotasSet> {
    EXPECT_TRUE(SendStruct(vgpud_.get(), quotas));
    event_base_loop(loop_.base(), EVLOOP_NONBLOCK);
    const auto answer = ReceiveMessage(vgpud_.get());
    return answer ? std::optional(*answer->As<vf_link::QuotasSet>()) : std::nullopt;
  };
  for (const uint64_t vram : {uint64_t{1} << 40, uint64_t{1} << 20}) {
    const auto answer = set(vf_link::Quotas{.sequence = vram + 1, .vram_bytes = vram, .host_memory_bytes = 1 << 20});
    ASSERT_TRUE(answer);
    EXPECT_EQ(vf_link::Kind::kQuotasSet, answer->kind);
    EXPECT_EQ(1u, answer->ok);
    EXPECT_EQ(vram + 1, answer->sequence);
    EXPECT_EQ(0u, answer->vram_used + answer->host_memory_used);
  }
  EXPECT_EQ(std::nullopt, set(vf_link::Plain{vf_link::Kind::kQuotas})) << "too short";
}

// QEMU stops a virtual CPU for 5 s when nobody answers what it reads.
TEST_F(VfTest, WhatAGuestReadsWhileItsVfEndsIsAnswered) {
  StartVf({}, "ends");
  TestClient client(vfio_socket());
  client.Send(TestClient::Message(1, Op::kVersion, Bytes(wire::Version{})));
  while (!client.Next()) event_base_loop(loop_.base(), EVLOOP_NONBLOCK);

  ASSERT_TRUE(SendStruct(vgpud_.get(), vf_link::Plain{vf_link::Kind::kShutdown}));
  client.Send(TestClient::Message(2, Op::kRegionRead, Bytes(wire::RegionAccess{0, 0, 4})));
  loop_.Run();
  const auto answer = client.Next();
  ASSERT_TRUE(answer);
  EXPECT_EQ(~0u, As<uint32_t>(answer->body, sizeof(wire::RegionAccess)));
  EXPECT_TRUE(client.Ended());
}

}  // namespace
}  // namespace vgpud::vfio
