// SPDX-License-Identifier: Apache-2.0
// A stream that waits, and is given more than there is room for: who gives it that waits, and nobody else does.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/shim_fixture.h"

namespace {

constexpr size_t kBytes = 64 << 10;
constexpr unsigned kOfFlood = 6000;
constexpr unsigned kOfOthers = 6000;

// What a stream is flooded with.
class Work {
 public:
  explicit Work(CUstream stream) : stream_(stream), bytes_(kBytes) {
    EXPECT_EQ(CUDA_SUCCESS, cuMemAlloc_v2(&memory_, kBytes));
    EXPECT_EQ(CUDA_SUCCESS, cuEventCreate(&event_, 0));
    EXPECT_EQ(CUDA_SUCCESS, cuEventRecord(event_, stream_));
    EXPECT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module_, kPtx));
    EXPECT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&kernel_, module_, "narrow"));
    CUgraph graph = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT_EQ(CUDA_SUCCESS, Launch());
    EXPECT_EQ(CUDA_SUCCESS, Call());
    EXPECT_EQ(CUDA_SUCCESS, cuStreamEndCapture(stream_, &graph));
    EXPECT_EQ(CUDA_SUCCESS, cuGraphInstantiateWithFlags(&graph_, graph, 0));
    EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(graph));
  }
  ~Work() {
    EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(graph_));
    EXPECT_EQ(CUDA_SUCCESS, cuModuleUnload(module_));
    EXPECT_EQ(CUDA_SUCCESS, cuEventDestroy_v2(event_));
    EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(memory_));
  }
  Work(const Work&) = delete;

  CUresult Launch() { return cuLaunchKernel(kernel_, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr); }
  CUresult Fill() { return cuMemsetD8Async(memory_, 1, 16, stream_); }
  CUresult ShortCopy() { return cuMemcpyHtoDAsync_v2(memory_, bytes_.data(), 1000, stream_); }
  CUresult LongCopy() { return cuMemcpyHtoDAsync_v2(memory_, bytes_.data(), kBytes, stream_); }
  CUresult CopyWithin() { return cuMemcpyDtoDAsync_v2(memory_, memory_ + 64, 16, stream_); }
  CUresult Record() { return cuEventRecord(event_, stream_); }
  CUresult WaitForEvent() { return cuStreamWaitEvent(stream_, event_, 0); }
  CUresult Call() {
    return cuLaunchHostFunc(
        stream_, [](void* count) { ++*static_cast<std::atomic<unsigned>*>(count); }, &called_);
  }
  CUresult Graph() { return cuGraphLaunch(graph_, stream_); }

 private:
  const CUstream stream_;
  std::vector<std::byte> bytes_;
  CUdeviceptr memory_ = 0;
  CUevent event_ = nullptr;
  CUmodule module_ = nullptr;
  CUfunction kernel_ = nullptr;
  CUgraphExec graph_ = nullptr;
  std::atomic<unsigned> called_{0};
};

using Kind = CUresult (Work::*)();
struct Case {
  const char* name;
  Kind kind;
  unsigned threads;
};

class Blocked : public ShimApi, public testing::WithParamInterface<Case> {
 protected:
  // Everything that a program does in a stream that nothing holds, and what it waits for.
  void UseAnotherStream() {
    CUstream stream;
    CUevent event;
    CUdeviceptr memory = Alloc(256);
    ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&event, 0));
    std::atomic<unsigned> called{0};
    const auto call = [](void* count) { ++*static_cast<std::atomic<unsigned>*>(count); };
    for (unsigned i = 0; i < kOfOthers; ++i) {
      ASSERT_EQ(CUDA_SUCCESS, cuMemsetD32Async(memory, i, 1, stream));
      if (i % 500 != 0) continue;
      unsigned seen = ~i;
      ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(event, stream));
      ASSERT_EQ(CUDA_SUCCESS, cuEventSynchronize(event));
      ASSERT_EQ(CUDA_SUCCESS, cuMemcpyDtoHAsync_v2(&seen, memory, sizeof seen, stream));
      EXPECT_EQ(i, seen);
      ASSERT_EQ(CUDA_SUCCESS, cuLaunchHostFunc(stream, call, &called));
      ASSERT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream));
      size_t free = 0, total = 0;
      ASSERT_EQ(CUDA_SUCCESS, cuMemGetInfo_v2(&free, &total));
      kept_.push_back(Alloc(16));
    }
    EXPECT_EQ((kOfOthers + 499) / 500, called);
    EXPECT_EQ(CUDA_SUCCESS, cuEventDestroy_v2(event));
    EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
    kept_.push_back(memory);
  }
  std::vector<CUdeviceptr> kept_;
};

TEST_P(Blocked, LeavesOtherStreamsAlone) {
  const auto [name, kind, threads] = GetParam();
  std::vector<CUstream> streams(threads);
  std::vector<std::unique_ptr<Work>> works;
  std::vector<std::thread> posters;
  std::atomic<unsigned> posted{0};
  StreamHold hold;
  for (CUstream& stream : streams) {
    ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    works.push_back(std::make_unique<Work>(stream));
    hold.Put(stream);
  }
  for (const auto& work : works) {
    posters.emplace_back([&, kind = kind, threads = threads] {
      EXPECT_EQ(CUDA_SUCCESS, cuCtxSetCurrent(context_));
      for (unsigned i = 0; i < kOfFlood / threads; ++i, ++posted) EXPECT_EQ(CUDA_SUCCESS, (work.get()->*kind)());
    });
  }
  while (posted < 100) std::this_thread::yield();
  UseAnotherStream();
  hold.LetGo();
  for (std::thread& poster : posters) poster.join();
  EXPECT_EQ(kOfFlood / threads * threads, posted);
  for (const CUstream stream : streams) EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream));
  works.clear();
  for (const CUdeviceptr memory : kept_) EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(memory));
  for (const CUstream stream : streams) EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
}

// Streams that all wait, and have host functions behind it. This thread lets them go, when it has filled them all.
class ManyHeld : public ShimApi, public testing::WithParamInterface<bool> {};

TEST_P(ManyHeld, HaveHostFunctions) {
  const bool by_event = GetParam();
  std::vector<CUstream> streams(900);
  std::atomic<unsigned> called{0};
  const auto call = [](void* count) { ++*static_cast<std::atomic<unsigned>*>(count); };
  CUstream source;
  CUevent event;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&source, CU_STREAM_NON_BLOCKING));
  ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  StreamHold hold;
  hold.Put(source);
  ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(event, source));
  for (CUstream& stream : streams) {
    ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    if (by_event) {
      ASSERT_EQ(CUDA_SUCCESS, cuStreamWaitEvent(stream, event, 0));
    } else {
      hold.Put(stream);
    }
    ASSERT_EQ(CUDA_SUCCESS, cuLaunchHostFunc(stream, call, &called));
  }
  EXPECT_EQ(0u, called);
  hold.LetGo();
  for (const CUstream stream : streams) {
    EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream));
    EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
  }
  EXPECT_EQ(streams.size(), called);
  EXPECT_EQ(CUDA_SUCCESS, cuEventDestroy_v2(event));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(source));
}

INSTANTIATE_TEST_SUITE_P(Floods, ManyHeld, testing::Bool(),
                         [](const auto& test) { return test.param ? "ByAnEvent" : "ByHostFunctions"; });

constexpr Case kCases[] = {{"Launches", &Work::Launch, 1},
                           {"LaunchesOfEight", &Work::Launch, 8},
                           {"Fills", &Work::Fill, 1},
                           {"ShortCopies", &Work::ShortCopy, 1},
                           {"ShortCopiesOfEight", &Work::ShortCopy, 8},
                           {"LongCopies", &Work::LongCopy, 1},
                           {"CopiesWithin", &Work::CopyWithin, 1},
                           {"Records", &Work::Record, 1},
                           {"Waits", &Work::WaitForEvent, 1},
                           {"HostFunctions", &Work::Call, 1},
                           {"HostFunctionsOfEight", &Work::Call, 8},
                           {"Graphs", &Work::Graph, 1}};
INSTANTIATE_TEST_SUITE_P(Floods, Blocked, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
