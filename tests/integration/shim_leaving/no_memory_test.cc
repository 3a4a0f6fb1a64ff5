// SPDX-License-Identifier: Apache-2.0
// The program's malloc has nothing: at each allocation of each call, once, and from then on. The call answers
// CUDA_ERROR_OUT_OF_MEMORY or succeeds without, and everything works afterwards.
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "tests/integration/shim_calls/wire.h"

extern "C" void* __libc_malloc(size_t bytes);

namespace {

// Of this thread: allocations that still succeed; negative: all.
thread_local long left = -1;
thread_local bool once = false;
thread_local bool refused = false;

}  // namespace

// In place of the C library's, for libcuda.so.1 as well.
extern "C" void* malloc(size_t bytes) noexcept {
  if (left > 0) {
    --left;
  } else if (left == 0) {
    refused = true;
    if (once) left = -1;
    return nullptr;
  }
  return __libc_malloc(bytes);
}

namespace {

class NoMemory : public ShimWire {
 protected:
  void SetUp() override {
    ShimWire::SetUp();
    ASSERT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module_, kPtx));
    ASSERT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&add_, module_, "vectoradd"));
    memory_ = Alloc(256);
  }
  void TearDown() override {
    EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(memory_));
    EXPECT_EQ(CUDA_SUCCESS, cuModuleUnload(module_));
    ShimWire::TearDown();
  }

  // `call` with each of its allocations refused. `undo` follows a success.
  void Sweep(const char* name, const std::function<CUresult()>& call, const std::function<void()>& undo = {}) {
    for (const bool only_one : {true, false}) {
      bool all_seen = false;
      for (long allowed = 0; allowed < 500 && !all_seen; ++allowed) {
        left = allowed;
        once = only_one;
        refused = false;
        const CUresult result = call();
        left = -1;
        all_seen = !refused;
        if (result == CUDA_SUCCESS) {
          if (undo) undo();
        } else {
          ASSERT_TRUE(refused) << name << ": " << result;
          ASSERT_EQ(CUDA_ERROR_OUT_OF_MEMORY, result) << name << ", allocation " << allowed;
        }
        refusals_ += refused;
      }
      ASSERT_TRUE(all_seen) << name << " never ends";
    }
    Works();
  }
  void Works() {
    CUstream stream;
    CUevent event;
    unsigned n = 1;
    void* parameters[] = {&memory_, &memory_, &memory_, &n};
    ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&event, 0));
    ASSERT_EQ(CUDA_SUCCESS, cuLaunchKernel(add_, 1, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr));
    ASSERT_EQ(CUDA_SUCCESS, cuLaunchHostFunc(
                                stream, [](void*) {}, nullptr));
    ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(event, stream));
    ASSERT_EQ(CUDA_SUCCESS, cuEventSynchronize(event));
    ASSERT_EQ(CUDA_SUCCESS, cuEventDestroy_v2(event));
    ASSERT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
  }

  CUmodule module_ = nullptr;
  CUfunction add_ = nullptr;
  CUdeviceptr memory_ = 0;
  unsigned refusals_ = 0;
};

TEST_F(NoMemory, StreamsAndEvents) {
  CUstream stream = nullptr;
  Sweep(
      "cuStreamCreate", [&] { return cuStreamCreate(&stream, 0); }, [&] { cuStreamDestroy_v2(stream); });
  CUevent event = nullptr;
  Sweep(
      "cuEventCreate", [&] { return cuEventCreate(&event, 0); }, [&] { cuEventDestroy_v2(event); });
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&event, 0));
  Sweep("cuEventRecord", [&] { return cuEventRecord(event, stream); });
  Sweep("cuStreamWaitEvent", [&] { return cuStreamWaitEvent(stream, event, 0); });
  Sweep("cuEventSynchronize", [&] { return cuEventSynchronize(event); });
  Sweep("cuStreamSynchronize", [&] { return cuStreamSynchronize(stream); });
  Sweep("cuStreamSynchronize of the thread's own", [&] { return cuStreamSynchronize(reinterpret_cast<CUstream>(2)); });
  Sweep("cuLaunchHostFunc", [&] {
    return cuLaunchHostFunc(
        stream, [](void*) {}, nullptr);
  });
  Sweep("cuStreamAddCallback", [&] {
    return cuStreamAddCallback(
        stream, [](CUstream, int, void*) {}, nullptr, 0);
  });
  Sweep("cuStreamWriteValue32", [&] { return cuStreamWriteValue32_v2(stream, memory_, 1, 0); });
  EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream));
  EXPECT_EQ(CUDA_SUCCESS, cuEventDestroy_v2(event));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
  EXPECT_GT(refusals_, 20u);
}

TEST_F(NoMemory, Modules) {
  CUmodule module = nullptr;
  Sweep(
      "cuModuleLoadData", [&] { return cuModuleLoadData(&module, kPtx); }, [&] { cuModuleUnload(module); });
  CUlibrary library = nullptr;
  Sweep(
      "cuLibraryLoadData", [&] { return cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0); },
      [&] { cuLibraryUnload(library); });
  ASSERT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module, kPtx));
  CUfunction function = nullptr;
  Sweep("cuModuleGetFunction", [&] { return cuModuleGetFunction(&function, module, "vectoradd"); });
  void* parameters[4];
  unsigned n = 1;
  parameters[0] = parameters[1] = parameters[2] = &memory_;
  parameters[3] = &n;
  Sweep("cuLaunchKernel", [&] { return cuLaunchKernel(add_, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr); });
  int value = 0, grid = 0;
  Sweep("cuFuncGetAttribute", [&] { return cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, add_); });
  Sweep("cuFuncSetBlockShape", [&] { return cuFuncSetBlockShape(add_, 1, 1, 1); });
  Sweep("cuParamSeti", [&] { return cuParamSeti(add_, 4096, 1); });
  Sweep("cuOccupancyMaxPotentialBlockSize",
        [&] { return cuOccupancyMaxPotentialBlockSize(&grid, &value, add_, nullptr, 0, 0); });
  EXPECT_EQ(CUDA_SUCCESS, cuModuleUnload(module));
  CUlinkState linker = nullptr;
  Sweep(
      "cuLinkCreate", [&] { return cuLinkCreate_v2(0, nullptr, nullptr, &linker); }, [&] { cuLinkDestroy(linker); });
  ASSERT_EQ(CUDA_SUCCESS, cuLinkCreate_v2(0, nullptr, nullptr, &linker));
  Sweep("cuLinkAddData", [&] {
    return cuLinkAddData_v2(linker, CU_JIT_INPUT_PTX, const_cast<char*>(kPtx), sizeof kPtx, "a", 0, nullptr, nullptr);
  });
  void* image = nullptr;
  size_t bytes = 0;
  Sweep("cuLinkComplete", [&] { return cuLinkComplete(linker, &image, &bytes); });
  EXPECT_EQ(CUDA_SUCCESS, cuLinkDestroy(linker));
  EXPECT_GT(refusals_, 20u);
}

TEST_F(NoMemory, Memory) {
  CUdeviceptr at = 0;
  const auto free_it = [&] { cuMemFree_v2(at); };
  Sweep(
      "cuMemAlloc", [&] { return cuMemAlloc_v2(&at, 4096); }, free_it);
  Sweep(
      "cuMemAllocManaged", [&] { return cuMemAllocManaged(&at, 4096, CU_MEM_ATTACH_GLOBAL); }, free_it);
  Sweep(
      "cuMemAllocAsync", [&] { return cuMemAllocAsync(&at, 4096, nullptr); }, [&] { cuMemFreeAsync(at, nullptr); });
  void* host = nullptr;
  Sweep(
      "cuMemHostAlloc", [&] { return cuMemHostAlloc(&host, 4096, 0); }, [&] { cuMemFreeHost(host); });
  std::vector<char> own(1 << 16), other(1 << 16);
  Sweep(
      "cuMemHostRegister", [&] { return cuMemHostRegister_v2(own.data(), own.size(), 0); },
      [&] { cuMemHostUnregister(own.data()); });
  ASSERT_EQ(CUDA_SUCCESS, cuMemAlloc_v2(&at, own.size()));
  Sweep("cuMemcpyHtoD", [&] { return cuMemcpyHtoD_v2(at, own.data(), own.size()); });
  Sweep("cuMemcpyDtoH", [&] { return cuMemcpyDtoH_v2(other.data(), at, other.size()); });
  Sweep("cuMemcpyHtoDAsync", [&] { return cuMemcpyHtoDAsync_v2(at, own.data(), own.size(), nullptr); });
  Sweep("cuMemsetD8", [&] { return cuMemsetD8_v2(at, 1, own.size()); });
  EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(at));
  CUmemPoolProps_st properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr;
  Sweep(
      "cuMemPoolCreate", [&] { return cuMemPoolCreate(&pool, &properties); }, [&] { cuMemPoolDestroy(pool); });
  CUDA_ARRAY_DESCRIPTOR_st shape{16, 16, CU_AD_FORMAT_FLOAT, 1};
  CUarray array = nullptr;
  Sweep(
      "cuArrayCreate", [&] { return cuArrayCreate_v2(&array, &shape); }, [&] { cuArrayDestroy(array); });
  EXPECT_GT(refusals_, 20u);
}

TEST_F(NoMemory, Graphs) {
  CUgraph graph = nullptr, clone = nullptr;
  Sweep(
      "cuGraphCreate", [&] { return cuGraphCreate(&graph, 0); }, [&] { cuGraphDestroy(graph); });
  ASSERT_EQ(CUDA_SUCCESS, cuGraphCreate(&graph, 0));
  CUgraphNode node = nullptr;
  const auto drop = [&] { cuGraphDestroyNode(node); };
  const CUDA_MEMSET_NODE_PARAMS_st fill{memory_, 0, 1, 1, 4, 1};
  Sweep(
      "cuGraphAddMemsetNode", [&] { return cuGraphAddMemsetNode(&node, graph, nullptr, 0, &fill, context_); }, drop);
  const CUDA_HOST_NODE_PARAMS_st host{[](void*) {}, nullptr};
  Sweep(
      "cuGraphAddHostNode", [&] { return cuGraphAddHostNode(&node, graph, nullptr, 0, &host); }, drop);
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemsetNode(&node, graph, nullptr, 0, &fill, context_));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddHostNode(&node, graph, nullptr, 0, &host));
  Sweep(
      "cuGraphAddChildGraphNode",
      [&] {
        CUgraph inside = nullptr;
        if (const CUresult error = cuGraphCreate(&inside, 0)) return error;
        const CUresult result = cuGraphAddChildGraphNode(&node, graph, nullptr, 0, inside);
        cuGraphDestroy(inside);
        return result;
      },
      drop);
  Sweep(
      "cuGraphClone", [&] { return cuGraphClone(&clone, graph); }, [&] { cuGraphDestroy(clone); });
  CUgraphExec executable = nullptr;
  Sweep(
      "cuGraphInstantiate", [&] { return cuGraphInstantiateWithFlags(&executable, graph, 0); },
      [&] { cuGraphExecDestroy(executable); });
  ASSERT_EQ(CUDA_SUCCESS, cuGraphInstantiateWithFlags(&executable, graph, 0));
  Sweep("cuGraphLaunch", [&] { return cuGraphLaunch(executable, nullptr); });
  CUuserObject object = nullptr;
  Sweep(
      "cuUserObjectCreate",
      [&] {
        return cuUserObjectCreate(
            &object, nullptr, [](void*) {}, 1, 1);
      },
      [&] { cuUserObjectRelease(object, 1); });
  CUstream stream = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, 0));
  Sweep(
      "cuStreamBeginCapture", [&] { return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED); },
      [&] {
        EXPECT_EQ(CUDA_SUCCESS, cuStreamEndCapture(stream, &clone));
        cuGraphDestroy(clone);
      });
  ASSERT_EQ(CUDA_SUCCESS, cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  Sweep("a captured fill", [&] { return cuMemsetD32Async(memory_, 1, 1, stream); });
  EXPECT_EQ(CUDA_SUCCESS, cuStreamEndCapture(stream, &clone));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(clone));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(graph));
  EXPECT_GT(refusals_, 40u);
}

TEST_F(NoMemory, ContextsAndWhatIsNotSupported) {
  CUcontext context = nullptr;
  Sweep(
      "cuCtxCreate", [&] { return cuCtxCreate_v2(&context, 0, 0); }, [&] { cuCtxDestroy_v2(context); });
  Sweep("cuCtxSetCurrent", [&] { return cuCtxSetCurrent(context_); });
  Sweep("cuCtxSynchronize", [&] { return cuCtxSynchronize(); });
  Sweep("cuCtxSetLimit", [&] { return cuCtxSetLimit(0, 4096); });
  // The first call says so, once: for that it needs memory.
  left = 0;
  once = false;
  const CUresult result = cuCheckpointProcessLock(0, nullptr);
  left = -1;
  EXPECT_TRUE(result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_OUT_OF_MEMORY) << result;
  Works();
}

}  // namespace
