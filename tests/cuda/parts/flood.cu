// SPDX-License-Identifier: Apache-2.0
// Much more of everything that a program can queue or make than any table holds, from one thread and from eight. All of
// it happens, in order; what there is no room for is refused when it is made, and nothing later.
// usage: flood [--times N] [--streams N] [--graph-nodes N] [NAME...]   (events, functions, callbacks, ...; default: all)
#include <cuda.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/cuda/driver_call.h"

namespace {

constexpr unsigned kThreads = 8;
constexpr unsigned kHangSeconds = 3600;

extern "C" __global__ void count_up(unsigned* count) { atomicAdd(count, 1u); }
extern "C" __global__ void say(unsigned thread, unsigned number) { printf("thread %u says %u\n", thread, number); }

std::atomic<unsigned long> wrongs{0};
void must(const char* what, unsigned long long got, unsigned long long wanted) {
  if (got != wanted && wrongs++ < 10)
    fprintf(stderr, "%s: %llu, expected %llu\n", what, got, wanted);
}

// A counter on the device.
class Counter {
 public:
  Counter() {
    CUDA_CHECK(cudaMalloc(&at_, sizeof *at_));
    CUDA_CHECK(cudaMemset(at_, 0, sizeof *at_));
    CUDA_CHECK(cudaStreamSynchronize(cudaStreamLegacy));
  }
  ~Counter() { cudaFree(at_); }
  unsigned* at() const { return at_; }
  unsigned value() const {
    unsigned value = 0;
    CUDA_CHECK(cudaMemcpy(&value, at_, sizeof value, cudaMemcpyDefault));
    return value;
  }

 private:
  unsigned* at_ = nullptr;
};

cudaStream_t new_stream() {
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

// Functions of one stream, which must be called one after the other, in the order in which they were queued.
struct Line {
  std::atomic<unsigned long> called{0};
  std::atomic<unsigned long> out_of_order{0};
  std::vector<std::pair<Line*, unsigned long>> calls;

  explicit Line(unsigned long times) {
    for (unsigned long i = 0; i < times; ++i) calls.emplace_back(this, i);
  }
  static void CUDART_CB call(void* data) {
    const auto [line, number] = *static_cast<std::pair<Line*, unsigned long>*>(data);
    if (line->called++ != number) ++line->out_of_order;
  }
  static void CUDART_CB call_back(cudaStream_t, cudaError_t, void* data) { call(data); }
  void check(const char* what) const {
    must(what, called, calls.size());
    must("functions out of order", out_of_order, 0);
  }
};

void events(unsigned, unsigned long times) {
  Counter count;
  cudaStream_t first = new_stream(), second = new_stream();
  std::vector<cudaEvent_t> all(times);
  for (cudaEvent_t& event : all) CUDA_CHECK(cudaEventCreate(&event));
  for (unsigned long i = 0; i < times; ++i) {
    count_up<<<1, 1, 0, first>>>(count.at());
    CUDA_CHECK(cudaEventRecord(all[i], first));
    if (i % 16 == 0) CUDA_CHECK(cudaStreamWaitEvent(second, all[i]));
  }
  CUDA_CHECK(cudaEventSynchronize(all.back()));
  must("kernels before the last event", count.value(), times);
  float before = 0;
  for (unsigned long i = 0; i < times; ++i) {
    float after = 0;
    must("an event before the last", cudaEventQuery(all[i]), cudaSuccess);
    CUDA_CHECK(cudaEventElapsedTime(&after, all[0], all[i]));
    must("times of events rise", after >= before, 1);
    before = after;
  }
  CUDA_CHECK(cudaStreamSynchronize(second));
  for (const cudaEvent_t event : all) CUDA_CHECK(cudaEventDestroy(event));
  CUDA_CHECK(cudaStreamDestroy(first));
  CUDA_CHECK(cudaStreamDestroy(second));
}

void functions(unsigned, unsigned long times) {
  Line line(times);
  cudaStream_t stream = new_stream();
  for (auto& call : line.calls) CUDA_CHECK(cudaLaunchHostFunc(stream, Line::call, &call));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  line.check("host functions");
  CUDA_CHECK(cudaStreamDestroy(stream));
}

void callbacks(unsigned, unsigned long times) {
  Line line(times);
  Counter count;
  cudaStream_t stream = new_stream();
  for (auto& call : line.calls) {
    count_up<<<1, 1, 0, stream>>>(count.at());
    CUDA_CHECK(cudaStreamAddCallback(stream, Line::call_back, &call, 0));
  }
  CUDA_CHECK(cudaStreamSynchronize(stream));
  line.check("callbacks");
  must("kernels between callbacks", count.value(), times);
  CUDA_CHECK(cudaStreamDestroy(stream));
}

unsigned long most_streams, most_nodes;  // of --streams, --graph-nodes

// As many at a time as there may be, each with work and a host function.
void streams(unsigned, unsigned long) {
  const unsigned long times = most_streams;
  Line line(0);
  Counter count;
  std::vector<cudaStream_t> all;
  for (unsigned long i = 0; i < times; ++i) {
    cudaStream_t stream;
    const cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error != cudaSuccess) {
      must("one stream too many", error, cudaErrorMemoryAllocation);
      cudaGetLastError();
      break;
    }
    all.push_back(stream);
  }
  std::atomic<unsigned long> called{0};
  const auto call = [](void* data) { ++*static_cast<std::atomic<unsigned long>*>(data); };
  for (const cudaStream_t stream : all) {
    count_up<<<1, 1, 0, stream>>>(count.at());
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaLaunchHostFunc(stream, call, &called));
  }
  for (const cudaStream_t stream : all) CUDA_CHECK(cudaStreamSynchronize(stream));
  must("kernels in streams", count.value(), all.size());
  must("host functions in streams", called, all.size());
  for (const cudaStream_t stream : all) CUDA_CHECK(cudaStreamDestroy(stream));
}

cudaGraphExec_t capture(cudaStream_t stream, const std::function<void()>& work) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  work();
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  CUDA_CHECK(cudaGraphInstantiateWithFlags(&executable, graph, 0));
  CUDA_CHECK(cudaGraphDestroy(graph));
  return executable;
}

// One graph with many nodes.
void graph(unsigned, unsigned long) {
  const unsigned long times = most_nodes;
  Line line(times);
  Counter count;
  cudaStream_t stream = new_stream();
  const cudaGraphExec_t executable = capture(stream, [&] {
    for (auto& call : line.calls) {
      count_up<<<1, 1, 0, stream>>>(count.at());
      CUDA_CHECK(cudaLaunchHostFunc(stream, Line::call, &call));
    }
  });
  CUDA_CHECK(cudaGraphLaunch(executable, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  line.check("host nodes of a graph");
  must("kernel nodes of a graph", count.value(), times);
  CUDA_CHECK(cudaGraphExecDestroy(executable));
  CUDA_CHECK(cudaStreamDestroy(stream));
}

// Many launches of a graph with two branches.
void graphs(unsigned, unsigned long times) {
  Counter count;
  std::atomic<unsigned long> called{0};
  cudaStream_t stream = new_stream(), branch = new_stream();
  cudaEvent_t fork, join;
  CUDA_CHECK(cudaEventCreate(&fork));
  CUDA_CHECK(cudaEventCreate(&join));
  const cudaGraphExec_t executable = capture(stream, [&] {
    CUDA_CHECK(cudaEventRecord(fork, stream));
    CUDA_CHECK(cudaStreamWaitEvent(branch, fork));
    count_up<<<1, 1, 0, branch>>>(count.at());
    CUDA_CHECK(cudaLaunchHostFunc(stream, [](void* data) { ++*static_cast<std::atomic<unsigned long>*>(data); }, &called));
    CUDA_CHECK(cudaEventRecord(join, branch));
    CUDA_CHECK(cudaStreamWaitEvent(stream, join));
    count_up<<<1, 1, 0, stream>>>(count.at());
  });
  for (unsigned long i = 0; i < times; ++i) CUDA_CHECK(cudaGraphLaunch(executable, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  must("host nodes of launches", called, times);
  must("kernel nodes of launches", count.value(), 2 * times);
  CUDA_CHECK(cudaGraphExecDestroy(executable));
  for (const cudaEvent_t event : {fork, join}) CUDA_CHECK(cudaEventDestroy(event));
  for (const cudaStream_t each : {stream, branch}) CUDA_CHECK(cudaStreamDestroy(each));
}

// Many launches of a graph whose work depends on a condition; memory is freed while they are on their way.
void conditions(unsigned, unsigned long times) {
  Counter count;
  cudaStream_t stream = new_stream();
  cudaGraph_t graph;
  cudaGraphConditionalHandle condition;
  cudaGraphNode_t node;
  CUDA_CHECK(cudaGraphCreate(&graph, 0));
  CUDA_CHECK(cudaGraphConditionalHandleCreate(&condition, graph, 1, cudaGraphCondAssignDefault));
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = condition;
  params.conditional.type = cudaGraphCondTypeIf;
  params.conditional.size = 1;
#if CUDART_VERSION >= 13000
  CUDA_CHECK(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
#else
  CUDA_CHECK(cudaGraphAddNode(&node, graph, nullptr, 0, &params));
#endif
  unsigned* at = count.at();
  void* arguments[] = {&at};
  cudaKernelNodeParams kernel = {};
  kernel.func = reinterpret_cast<void*>(count_up);
  kernel.gridDim = kernel.blockDim = dim3(1);
  kernel.kernelParams = arguments;
  CUDA_CHECK(cudaGraphAddKernelNode(&node, params.conditional.phGraph_out[0], nullptr, 0, &kernel));
  cudaGraphExec_t executable;
  CUDA_CHECK(cudaGraphInstantiateWithFlags(&executable, graph, 0));
  for (unsigned long i = 0; i < times; ++i) {
    CUDA_CHECK(cudaGraphLaunch(executable, stream));
    if (i % 100 != 99) continue;
    void* memory;
    CUDA_CHECK(cudaMalloc(&memory, 256));
    CUDA_CHECK(cudaFree(memory));
  }
  CUDA_CHECK(cudaStreamSynchronize(stream));
  must("conditional work", count.value(), times);
  CUDA_CHECK(cudaGraphExecDestroy(executable));
  CUDA_CHECK(cudaGraphDestroy(graph));
  CUDA_CHECK(cudaStreamDestroy(stream));
}

constexpr char kModule[] =
    ".version 7.5\n.target sm_75\n.address_size 64\n"
    ".visible .entry up(.param .u64 at) {\n.reg .u64 %a;\n.reg .u32 %r;\n"
    "ld.param.u64 %a, [at];\natom.global.add.u32 %r, [%a], 1;\nret;\n}\n";

// Loaded, used and given back before it has ended.
void modules(unsigned, unsigned long times) {
  auto* const load = driver<CUresult(CUmodule*, const void*)>("cuModuleLoadData");
  auto* const unload = driver<CUresult(CUmodule)>("cuModuleUnload");
  auto* const find = driver<CUresult(CUfunction*, CUmodule, const char*)>("cuModuleGetFunction");
  auto* const launch = driver<CUresult(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                       CUstream, void**, void**)>("cuLaunchKernel");
  Counter count;
  cudaStream_t stream = new_stream();
  const unsigned long loads = times / 20 + 1;
  for (unsigned long i = 0; i < loads; ++i) {
    CUmodule module;
    CUfunction up;
    unsigned* at = count.at();
    void* arguments[] = {&at};
    must("loading a module", load(&module, kModule), CUDA_SUCCESS);
    must("its kernel", find(&up, module, "up"), CUDA_SUCCESS);
    must("launching it", launch(up, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr), CUDA_SUCCESS);
    must("unloading it", unload(module), CUDA_SUCCESS);
  }
  CUDA_CHECK(cudaStreamSynchronize(stream));
  must("kernels of modules", count.value(), loads);
  CUDA_CHECK(cudaStreamDestroy(stream));
}

void prints(unsigned thread, unsigned long times) {
  cudaStream_t stream = new_stream();
  for (unsigned long i = 0; i < times; ++i) {
    say<<<1, 1, 0, stream>>>(thread, static_cast<unsigned>(i));
    // There is room for some thousand lines that nobody has waited for.
    if (i % 50 != 49) continue;
    const bool mine = i / 50 % 2 == thread % 2;  // stdout, for several lines of the program that belong together
    if (mine) flockfile(stdout);
    CUDA_CHECK(cudaStreamSynchronize(stream));
    if (mine) funlockfile(stdout);
  }
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CUDA_CHECK(cudaStreamDestroy(stream));
}

void allocations(unsigned, unsigned long times) {
  Counter count;
  cudaStream_t stream = new_stream();
  for (unsigned long i = 0; i < times; ++i) {
    unsigned* memory;
    CUDA_CHECK(cudaMallocAsync(&memory, 4096, stream));
    CUDA_CHECK(cudaMemsetAsync(memory, 0, 4096, stream));
    count_up<<<1, 1, 0, stream>>>(memory);
    count_up<<<1, 1, 0, stream>>>(count.at());
    CUDA_CHECK(cudaFreeAsync(memory, stream));
    if (i % 64 != 63) continue;
    void* other;
    CUDA_CHECK(cudaMalloc(&other, 1 << 20));
    CUDA_CHECK(cudaFree(other));
    CUDA_CHECK(cudaMallocHost(&other, 4096));
    CUDA_CHECK(cudaFreeHost(other));
  }
  CUDA_CHECK(cudaStreamSynchronize(stream));
  must("kernels between allocations", count.value(), times);
  CUDA_CHECK(cudaStreamDestroy(stream));
}

struct Flood {
  const char* name;
  void (*run)(unsigned thread, unsigned long times);
};
constexpr Flood kFloods[] = {{"events", events},   {"functions", functions}, {"callbacks", callbacks},
                             {"streams", streams}, {"graph", graph},         {"graphs", graphs},
                             {"conditions", conditions}, {"modules", modules}, {"prints", prints},
                             {"allocations", allocations}};

// What the program writes meanwhile goes to a file; how many lines of it begin with `begin`.
class Lines {
 public:
  Lines() : file_(tmpfile()) {
    fflush(stdout);
    stdout_ = dup(STDOUT_FILENO);
    dup2(fileno(file_), STDOUT_FILENO);
  }
  unsigned long count(const char* begin) {
    fflush(stdout);
    dup2(stdout_, STDOUT_FILENO);
    close(stdout_);
    rewind(file_);
    unsigned long lines = 0;
    for (char line[256]; fgets(line, sizeof line, file_) != nullptr;) lines += strncmp(line, begin, strlen(begin)) == 0;
    fclose(file_);
    return lines;
  }

 private:
  FILE* const file_;
  int stdout_;
};

void run(const Flood& flood, unsigned threads, unsigned long times) {
  const auto begun = std::chrono::steady_clock::now();
  const unsigned long each = times / threads;
  const bool prints_lines = flood.run == prints;
  Lines* const lines = prints_lines ? new Lines : nullptr;
  alarm(kHangSeconds);
  std::vector<std::thread> all;
  for (unsigned thread = 0; thread < threads; ++thread) all.emplace_back(flood.run, thread, each);
  for (std::thread& thread : all) thread.join();
  CUDA_CHECK(cudaDeviceSynchronize());
  alarm(0);
  if (prints_lines) must("lines of kernels", lines->count("thread "), each * threads);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  printf("%-12s %u thread%s of %lu: %.2f s\n", flood.name, threads, threads == 1 ? " " : "s", each, seconds);
  fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  unsigned long times = 6000;
  most_streams = 700;
  most_nodes = 2500;
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    const struct {
      const char* name;
      unsigned long* value;
    } numbers[] = {{"--times", &times}, {"--streams", &most_streams}, {"--graph-nodes", &most_nodes}};
    bool number = false;
    for (const auto& each : numbers) {
      if (strcmp(argv[i], each.name) != 0 || i + 1 == argc) continue;
      *each.value = strtoul(argv[++i], nullptr, 10);
      number = true;
      break;
    }
    if (!number) wanted.emplace_back(argv[i]);
  }
  for (const unsigned threads : {1u, kThreads}) {
    const unsigned long streams_then = most_streams, nodes_then = most_nodes;
    most_streams /= threads;
    most_nodes /= threads;
    for (const Flood& flood : kFloods) {
      bool runs = wanted.empty();
      for (const std::string& name : wanted) runs = runs || name == flood.name;
      if (runs) run(flood, threads, times);
    }
    most_streams = streams_then;
    most_nodes = nodes_then;
  }
  printf("%s\n", wrongs == 0 ? "PASSED" : "FAILED");
  return wrongs == 0 ? 0 : 1;
}
