// SPDX-License-Identifier: Apache-2.0
// A GPU that does what every GPU does, and nothing else: what a guest is told that asks for more.
#include "guest-driver-shim/include/uapi/vgpu_tensor_map.h"
#include "tests/unit/exec/fakes/exec_rig.h"

namespace vgpud::exec {
namespace {

constexpr uint32_t kInvalidValue = 1, kInvalidHandle = 400, kNotSupported = 801;

struct BareGpu : ExecRig {
  BareGpu() { script->bare = true; }
  uint32_t Answer(uint32_t op, std::vector<uint64_t> args = {}) { return Status(guest.Submit({op, std::move(args)})); }
};

TEST(BareGpu, MemoryIsNotMappedLater) {
  BareGpu rig;
  EXPECT_EQ(kNotSupported, rig.Answer(VGPU_OP_MEM_CREATE, {2 << 20}));
  EXPECT_EQ(kInvalidHandle, rig.Answer(VGPU_OP_MEM_RELEASE, {1}));
  EXPECT_EQ(kInvalidHandle, rig.Answer(VGPU_OP_MEM_MAP, {1, 0, VGPU_MAPPED_VA, 2 << 20}));
  EXPECT_EQ(kInvalidValue, rig.Answer(VGPU_OP_MEM_UNMAP, {VGPU_MAPPED_VA, 2 << 20}));
  EXPECT_EQ(0u, rig.vf_used) << "no VRAM was taken for it";
}

TEST(BareGpu, TensorMapsAreTheGuests) {
  BareGpu rig;
  const auto request = rig.guest.Take(sizeof(vgpu_tensor_map_request));
  EXPECT_EQ(kNotSupported, rig.Status(rig.guest.Submit({VGPU_OP_TENSOR_MAP, {}, 0, request})));
  EXPECT_TRUE(rig.script->tensor_maps.empty());
}

TEST(BareGpu, LimitsAreTakenAndNothingIsPrinted) {
  BareGpu rig;
  rig.script->printed = "nobody hears it";
  EXPECT_EQ(0u, rig.Answer(VGPU_OP_LIMIT_SET, {VGPU_LIMIT_MALLOC_HEAP, 4 << 20}));
  EXPECT_EQ(0u, rig.Answer(VGPU_OP_LIMIT_SET, {VGPU_LIMIT_PRINTF_FIFO, 4096}));
  const vgpu_cqe read = rig.Done(rig.guest.Submit({VGPU_OP_PRINT_READ, {}, 0, rig.guest.Take(64)}));
  EXPECT_EQ(0u, read.status);
  EXPECT_EQ(0u, read.value[0]);
  EXPECT_EQ(uint64_t{1} << 20, rig.script->heap) << "there is no heap to be set";
}

TEST(BareGpu, KernelsRunToTheirEnd) {
  BareGpu rig;
  rig.script->room_for_launch = 4096;
  rig.script->launches_behind = true;
  rig.Load(7, "kernel k 10 heap\n");
  const uint64_t kernel = rig.Function(7, "k");
  rig.Grant();
  const uint64_t first = rig.guest.Launch(kernel, 0), second = rig.guest.Launch(kernel, 0);
  EXPECT_EQ(0u, rig.Status(second));
  EXPECT_EQ(0u, rig.Status(first));
  EXPECT_TRUE(rig.script->rooms.empty());
  EXPECT_TRUE(rig.script->behind.empty());
  EXPECT_FALSE(rig.script->heap_made);
}

TEST(BareGpu, AContextCanBeReset) {
  BareGpu rig;
  EXPECT_EQ(0u, rig.Answer(VGPU_OP_CONTEXT_RESET));
  EXPECT_NE(0u, rig.Alloc(512));
}

}  // namespace
}  // namespace vgpud::exec
