// SPDX-License-Identifier: Apache-2.0
// What kernels print on its way to the guest, and the heap that they allocate from.
#include "tests/unit/exec/fakes/exec_rig.h"

namespace vgpud::exec {
namespace {

std::string ReadPrinted(ExecRig& rig, uint32_t length) {
  const auto out = rig.guest.Take(length);
  const vgpu_cqe done = rig.Done(rig.guest.Submit({VGPU_OP_PRINT_READ, {}, 0, out}));
  EXPECT_EQ(0u, done.status);
  EXPECT_EQ(VGPU_PRINT_STDOUT, done.value[1]);
  EXPECT_LE(done.value[0], length);
  return std::string(reinterpret_cast<const char*>(out.at), done.value[0]);
}

TEST(Printed, IsToldWhenItsKernelIsDoneAndFetchedInPieces) {
  ExecRig rig;
  const uint64_t kernel = rig.Kernel("a");
  rig.Grant();
  EXPECT_EQ(0u, rig.guest.header().printed);
  rig.script->printed = "hello world";
  rig.Done(rig.guest.Launch(kernel, 0));
  EXPECT_EQ(11u, rig.guest.header().printed);
  EXPECT_EQ("hello ", ReadPrinted(rig, 6));
  EXPECT_EQ(5u, rig.guest.header().printed);
  EXPECT_EQ("world", ReadPrinted(rig, 100));
  EXPECT_EQ(0u, rig.guest.header().printed);
  EXPECT_EQ("", ReadPrinted(rig, 100));
}

TEST(Printed, CanBeFetchedAfterAFault) {
  ExecRig rig;
  rig.Load(7, "kernel bad 3 fault\n");
  const uint64_t bad = rig.Function(7, "bad");
  rig.Grant();
  rig.script->printed = "last words";
  EXPECT_EQ(700u, rig.Status(rig.guest.Launch(bad, 0)));
  EXPECT_EQ(700u, rig.Status(rig.guest.Submit({VGPU_OP_NOP})));
  EXPECT_EQ("last words", ReadPrinted(rig, 100));
  EXPECT_EQ(700u, rig.guest.sticky());
}

// The error of an operation that nobody waited for belongs to the next call of the program, not to this one.
TEST(Printed, FetchingDoesNotSwallowAPostedError) {
  ExecRig rig;
  rig.Grant();
  rig.script->printed = "text";
  rig.guest.Submit({VGPU_OP_FILL, {0x1234, 0, 4, 1}, 0, {}, 0});
  rig.Settle();
  EXPECT_EQ("text", ReadPrinted(rig, 100));
  EXPECT_EQ(1u, rig.Status(rig.guest.Submit({VGPU_OP_NOP})));
}

TEST(Printed, IsGoneAfterAReset) {
  ExecRig rig;
  const uint64_t kernel = rig.Kernel("a");
  rig.Grant();
  rig.script->printed = "text";
  rig.Done(rig.guest.Launch(kernel, 0));
  EXPECT_EQ(4u, rig.guest.header().printed);
  rig.script->printed.clear();
  rig.Done(rig.guest.Submit({VGPU_OP_CONTEXT_RESET}));
  EXPECT_EQ(0u, rig.guest.header().printed);
}

TEST(Heap, IsMadeAndChargedAtTheFirstLaunchThatNeedsIt) {
  ExecRig rig;
  rig.Load(7, "kernel plain 3\nkernel allocates 3 heap\n");
  const uint64_t plain = rig.Function(7, "plain");
  const uint64_t allocates = rig.Function(7, "allocates");
  rig.Grant();
  const auto free_bytes = [&] { return rig.Done(rig.guest.Submit({VGPU_OP_MEM_INFO})).value[0]; };
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_LIMIT_SET, {VGPU_LIMIT_MALLOC_HEAP, 4 << 20}})));
  rig.Done(rig.guest.Launch(plain, 0));
  EXPECT_FALSE(rig.script->heap_made);
  const uint64_t before = free_bytes();
  EXPECT_EQ(0u, rig.Status(rig.guest.Launch(allocates, 0)));
  EXPECT_TRUE(rig.script->heap_made);
  EXPECT_EQ(before - (4u << 20), free_bytes());
  EXPECT_EQ(0u, rig.Status(rig.guest.Launch(allocates, 0)));
  EXPECT_EQ(before - (4u << 20), free_bytes());
  EXPECT_EQ(1u, rig.Status(rig.guest.Submit({VGPU_OP_LIMIT_SET, {VGPU_LIMIT_MALLOC_HEAP, 8 << 20}})));
  EXPECT_NE(std::string::npos, rig.error_text().find("before the first kernel that allocates")) << rig.error_text();
}

// As a driver makes it, which tells nobody when.
TEST(Heap, IsChargedWhenItsSizeIsSetWhereTheGpuTakesItThen) {
  ExecRig rig;
  rig.script->heap_at_once = true;
  rig.Grant();
  const auto free_bytes = [&] { return rig.Done(rig.guest.Submit({VGPU_OP_MEM_INFO})).value[0]; };
  const auto set = [&](uint64_t bytes) {
    return rig.Status(rig.guest.Submit({VGPU_OP_LIMIT_SET, {VGPU_LIMIT_MALLOC_HEAP, bytes}}));
  };
  const uint64_t before = free_bytes();
  EXPECT_EQ(0u, set(1 << 20)) << "no more than it has";
  EXPECT_EQ(before, free_bytes());
  EXPECT_EQ(0u, set(4 << 20));
  EXPECT_EQ(before - (3u << 20), free_bytes());
  rig.Alloc(rig.vf_quota / 2);
  EXPECT_EQ(2u, set(rig.vf_quota / 2 + (8 << 20)));
  EXPECT_EQ(4u << 20, rig.script->heap) << "not the driver's then";
}

TEST(Heap, LargerThanTheVramIsRefused) {
  ExecRig rig;
  rig.Grant();
  EXPECT_EQ(1u, rig.Status(rig.guest.Submit({VGPU_OP_LIMIT_SET, {VGPU_LIMIT_MALLOC_HEAP, uint64_t{1} << 60}})));
  EXPECT_EQ(1u, rig.Status(rig.guest.Submit({VGPU_OP_LIMIT_SET, {99, 1}})));
  EXPECT_NE(std::string::npos, rig.error_text().find("no limit 99"));
  // Fits the VF, but others have taken the rest of it.
  const uint64_t half = rig.vf_quota / 2;
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_LIMIT_SET, {VGPU_LIMIT_MALLOC_HEAP, half + 1}})));
  rig.Alloc(half);
  rig.Load(7, "kernel allocates 3 heap\n");
  EXPECT_EQ(2u, rig.Status(rig.guest.Launch(rig.Function(7, "allocates"), 0)));
  EXPECT_FALSE(rig.script->heap_made);
}

}  // namespace
}  // namespace vgpud::exec
