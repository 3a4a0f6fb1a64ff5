// SPDX-License-Identifier: Apache-2.0
// Stream memory operations of libcuda.so.1, call by call.
#include "tests/integration/shim_calls/wire.h"

namespace {

constexpr unsigned kFlush = 1u << 30;

// As a program lays out CUstreamBatchMemOpParams.
struct Operation {
  uint32_t kind, barrier_flags;
  uint64_t address, value;
  uint32_t flags;
  uint32_t unused[5];
};
CUresult Batch(CUstream stream, std::vector<Operation> all, unsigned flags = 0) {
  return cuStreamBatchMemOp(stream, static_cast<unsigned>(all.size()),
                            reinterpret_cast<CUstreamBatchMemOpParams_union*>(all.data()), flags);
}

TEST_F(ShimWire, WordsAreWaitedForAndWritten) {
  const uint64_t at = Alloc(64);
  EXPECT_EQ(CUDA_SUCCESS, cuStreamWaitValue32(nullptr, at, 7, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamWaitValue32_v2(nullptr, at + 4, 0xffffffff, 1));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamWaitValue64(nullptr, at, 1ul << 40, 2));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamWaitValue64_v2(nullptr, at + 8, 9, 3));
  EXPECT_EQ((Rows{{at, 7, 4, VGPU_WAIT_GEQ},
                  {at + 4, 0xffffffff, 4, VGPU_WAIT_EQ},
                  {at, 1ul << 40, 8, VGPU_WAIT_AND},
                  {at + 8, 9, 8, VGPU_WAIT_NOR}}),
            ArgsOf(VGPU_OP_WAIT_VALUE, 4));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamWriteValue32(nullptr, at, 5, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamWriteValue64_v2(nullptr, at + 8, 1ul << 33, 1));
  EXPECT_EQ((Rows{{at, 5, 4}, {at + 8, 1ul << 33, 8}}), ArgsOf(VGPU_OP_WRITE_VALUE, 3));
  unsigned got = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuMemcpyDtoH_v2(&got, at, 4));
  EXPECT_EQ(5u, got);
  EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(at));
}

TEST_F(ShimWire, WrongWordsAreRefused) {
  const uint64_t at = Alloc(64);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32(nullptr, at + 2, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue64(nullptr, at + 4, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32(nullptr, 0, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32(nullptr, at, 0, 4));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, cuStreamWaitValue32(nullptr, at, 0, kFlush));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(nullptr, at + 1, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue64(nullptr, 0, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(nullptr, at, 0, 2));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuStreamWriteValue32(reinterpret_cast<CUstream>(3), at, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Batch(nullptr, {}));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(nullptr, 1, nullptr, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Batch(nullptr, {{2, 0, at, 1, 0, {}}}, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Batch(nullptr, std::vector<Operation>(257, {2, 0, at, 1, 0, {}})));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Batch(nullptr, {{2, 0, at, 1, 0, {}}, {7, 0, at, 1, 0, {}}}));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Batch(nullptr, {{6, 2, 0, 0, 0, {}}}));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, Batch(nullptr, {{3, 0, 0, 0, 0, {}}}));
  EXPECT_EQ(Rows{}, ArgsOf(VGPU_OP_WAIT_VALUE, 4));
  EXPECT_EQ(Rows{}, ArgsOf(VGPU_OP_WRITE_VALUE, 3)) << "all of a batch or nothing";
  EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(at));
}

TEST_F(ShimWire, ABatchIsItsOperationsInOrder) {
  const uint64_t at = Alloc(64);
  EXPECT_EQ(CUDA_SUCCESS, Batch(nullptr, {{2, 0, at, 0xf00000001, 0, {}},
                                          {6, 1, 0, 0, 0, {}},
                                          {1, 0, at, 0xf00000002, 1, {}},
                                          {4, 0, at + 8, 0xf00000003, 0, {}},
                                          {5, 0, at + 8, 0xf00000004, 0, {}}}));
  EXPECT_EQ((Rows{{at, 1, 4}, {at + 8, 0xf00000004, 8}}), ArgsOf(VGPU_OP_WRITE_VALUE, 3)) << "32 bits are 32 bits";
  EXPECT_EQ((Rows{{at, 2, 4, VGPU_WAIT_EQ}, {at + 8, 0xf00000003, 8, VGPU_WAIT_GEQ}}), ArgsOf(VGPU_OP_WAIT_VALUE, 4));
  EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(at));
}

TEST_F(ShimWire, ACapturedOperationIsANodeAndRunsWhenTheGraphDoes) {
  const uint64_t at = Alloc(64);
  CUstream stream;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_EQ(CUDA_SUCCESS, Batch(stream, {{2, 0, at, 1, 0, {}}, {2, 0, at + 4, 2, 0, {}}}));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamWriteValue32(stream, at + 8, 3, 0));
  CUgraph graph;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamEndCapture(stream, &graph));
  EXPECT_EQ(Rows{}, ArgsOf(VGPU_OP_WRITE_VALUE, 3));
  size_t count = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuGraphGetNodes(graph, nullptr, &count));
  EXPECT_EQ(2u, count);
  CUgraphExec executable;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphInstantiateWithFlags(&executable, graph, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphLaunch(executable, stream));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream));
  EXPECT_EQ((Rows{{at, 1, 4}, {at + 4, 2, 4}, {at + 8, 3, 4}}), ArgsOf(VGPU_OP_WRITE_VALUE, 3));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(graph));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
  EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(at));
}

TEST_F(ShimWire, TheDeviceSaysThatItCan) {
  for (const int attribute : {92, 93, 94, 122, 123}) {
    int value = 0;
    EXPECT_EQ(CUDA_SUCCESS, cuDeviceGetAttribute(&value, attribute, 0));
    EXPECT_EQ(1, value) << attribute;
  }
}

}  // namespace
