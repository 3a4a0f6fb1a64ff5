// SPDX-License-Identifier: Apache-2.0
// An operand that is declared shared reaches shared memory and nothing else, whatever is in its register: the sum of
// the shared window and an address that was made for it never leads into global memory.
#include <gmock/gmock.h>

#include "tests/unit/soft/rig/tensor_fixture.h"

namespace vgpud::soft {
namespace {

struct OperandCase {
  const char* name;
  const char* text;  // ADDRESS: the operand, or what stands in its place
};
void PrintTo(const OperandCase& c, std::ostream* out) { *out << c.name; }

#define BULK "cp.async.bulk."
#define TELLS "mbarrier::complete_tx::bytes"
constexpr OperandCase kOperands[] = {
    {"BulkFrom", BULK "global.shared::cta.bulk_group [%rd1], [ADDRESS], 16;"},
    {"BulkMaskedFrom", BULK "global.shared::cta.bulk_group.cp_mask [%rd1], [ADDRESS], 16, %rs1;"},
    {"BulkTo", BULK "shared::cluster.global." TELLS " [ADDRESS], [%rd1], 16, [%r2];"},
    {"BulkBarrier", BULK "shared::cluster.global." TELLS " [%r1], [%rd1], 16, [ADDRESS];"},
    {"BulkBetweenTo", BULK "shared::cluster.shared::cta." TELLS " [ADDRESS], [%r1], 16, [%r2];"},
    {"BulkBetweenFrom", BULK "shared::cluster.shared::cta." TELLS " [%r1], [ADDRESS], 16, [%r2];"},
    {"MulticastTo", BULK "shared::cluster.global." TELLS ".multicast::cluster [ADDRESS], [%rd1], 16, [%r2], %rs1;"},
    {"MulticastBarrier",
     BULK "shared::cluster.global." TELLS ".multicast::cluster [%r1], [%rd1], 16, [ADDRESS], %rs1;"},
    {"ReduceFrom", "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [ADDRESS], 16;"},
    {"ReduceTo", "cp.reduce.async.bulk.shared::cluster.shared::cta." TELLS ".add.u32 [ADDRESS], [%r1], 16, [%r2];"},
    {"ReduceBarrier",
     "cp.reduce.async.bulk.shared::cluster.shared::cta." TELLS ".add.u32 [%r1], [%r1], 16, [ADDRESS];"},
    {"TensorLoadTo", BULK "tensor.1d.shared::cluster.global." TELLS " [ADDRESS], [%rd3, {0}], [%r2];"},
    {"TensorLoadBarrier", BULK "tensor.1d.shared::cluster.global." TELLS " [%r1], [%rd3, {0}], [ADDRESS];"},
    {"TensorMulticastTo",
     BULK "tensor.1d.shared::cluster.global." TELLS ".multicast::cluster [ADDRESS], [%rd3, {0}], [%r2], %rs1;"},
    {"TensorStoreFrom", BULK "tensor.1d.global.shared::cta.bulk_group [%rd3, {0}], [ADDRESS];"},
    {"TensorReduceFrom", "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [%rd3, {0}], [ADDRESS];"},
    {"TensorMapReplace", "tensormap.replace.tile.rank.shared::cta.b1024.b32 [ADDRESS], 1;"},
    {"TensorMapCopy",
     "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd3], [ADDRESS], 128;"},
    {"StoreAsync", "st.async." TELLS ".shared::cluster.u32 [ADDRESS], %r5, [%r2];"},
    {"StoreAsyncBarrier", "st.async." TELLS ".shared::cluster.u32 [%r1], %r5, [ADDRESS];"},
    {"ReduceAsync", "red.async.relaxed.cluster." TELLS ".shared::cluster.add.u32 [ADDRESS], %r5, [%r2];"},
    {"ReduceAsyncBarrier", "red.async.relaxed.cluster." TELLS ".shared::cluster.add.u32 [%r1], %r5, [ADDRESS];"},
    {"ArriveInCluster", "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [ADDRESS];"},
    {"Arrive", "mbarrier.arrive.shared.b64 %rd8, [ADDRESS];"},
    {"LoadInCluster", "ld.shared::cluster.u32 %r5, [ADDRESS];"},
    {"StoreInCluster", "st.shared::cluster.v2.u32 [ADDRESS], {%r5, %r5};"},
    {"AtomicInCluster", "atom.shared::cluster.add.u32 %r5, [ADDRESS], 1;"},
    {"Load", "ld.shared.u32 %r5, [ADDRESS];"},
    {"Store", "st.shared.u32 [ADDRESS], %r5;"},
    {"Atomic", "atom.shared.add.u32 %r5, [ADDRESS], 1;"},
    {"Copy", "cp.async.ca.shared.global [ADDRESS], [%rd1], 16;"},
    {"Commit", "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [ADDRESS];"},
    {"LoadMatrix", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r5}, [ADDRESS];"},
};

class SharedOperands : public testing::TestWithParam<OperandCase> {
 protected:
  // Global memory whose address, with the shared window added, comes out of the sum.
  Outcome RunWith(const std::string& address) {
    std::string text = GetParam().text;
    text.replace(text.find("ADDRESS"), 7, address);
    SoftMachine m(BestIsa(), 64 << 20, 1, **FindComputeCapability("10.0"));
    const GpuVa memory = m.Upload(std::vector<uint32_t>(1024, 7));
    const TensorCase c = {"", VGPU_TENSOR_U32, 4, {32}, {32}, {0}};
    const GpuVa map = m.Upload(std::vector<vgpu_tensor_map>{MapOf(c, m.Alloc(128))});
    const Outcome loaded = m.LoadBody(".param .u64 memory, .param .u64 map", R"(
      .shared .align 1024 .b8 tile[1024]; .shared .align 128 .b8 bar[128];
      ld.param.u64 %rd1, [memory]; ld.param.u64 %rd3, [map]; mov.u32 %r1, tile; mov.u32 %r2, bar; mov.u16 %rs1, 1;
      mbarrier.init.shared.b64 [%r2], 1;
      mov.u64 %rd9, 0x6e0000000000; sub.u64 %rd4, %rd1, %rd9; sub.u64 %rd5, %rd4, 4096;
    )" + text);
    if (loaded.status != CuStatus::kSuccess) return loaded;
    Outcome ran = m.Run("k", {{1, 1, 1}, {1, 1, 1}, 0}, Params().Add(memory).Add(map));
    EXPECT_EQ(m.Download<uint32_t>(memory, 1024), std::vector<uint32_t>(1024, 7)) << "global memory was written";
    return ran;
  }
};

TEST_P(SharedOperands, NeverReachGlobalMemory) {
  for (const char* address : {"%rd4", "%rd5+4096", "0x20000001000", "%rd9"}) {
    const Outcome ran = RunWith(address);
    EXPECT_EQ(ran.status, CuStatus::kIllegalAddress) << address << ": " << ran.text;
  }
}

INSTANTIATE_TEST_SUITE_P(, SharedOperands, testing::ValuesIn(kOperands),
                         [](const auto& p) { return std::string(p.param.name); });

}  // namespace
}  // namespace vgpud::soft
