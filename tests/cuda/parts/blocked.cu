// SPDX-License-Identifier: Apache-2.0
// Streams that wait, for a host function, an event or a word in memory, and are given more than any queue holds
// meanwhile, by one thread and by eight. Only who gives it them waits: other streams go on, and so does every call that
// needs none of that work. What the streams wait for comes from another stream, when all of that has been done.
// usage: blocked [--times N] [NAME...]   (launches, functions, copies, ...; default: all)
#include <cuda.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/cuda/driver_call.h"

namespace {

constexpr unsigned kThreads = 8;
constexpr unsigned kHangSeconds = 600;
constexpr size_t kBytes = 64 << 10;

extern "C" __global__ void count_up(unsigned* count) { atomicAdd(count, 1u); }
extern "C" __global__ void put(unsigned* word, unsigned value) { *word = value; }

std::atomic<unsigned long> wrongs{0};
void must(const char* what, unsigned long long got, unsigned long long wanted) {
  if (got != wanted && wrongs++ < 10) fprintf(stderr, "%s: %llu, expected %llu\n", what, got, wanted);
}

struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false;
};
void CUDART_CB wait_at(void* data) {
  auto* const gate = static_cast<Gate*>(data);
  std::unique_lock lock(gate->mutex);
  gate->changed.wait(lock, [&] { return gate->open; });
}
void CUDART_CB count_call(void* data) { ++*static_cast<std::atomic<unsigned long>*>(data); }

cudaStream_t new_stream() {
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

// What keeps streams from going on.
class Block {
 public:
  enum Kind { kFunction, kEvent, kWord };
  explicit Block(Kind kind) : kind_(kind), source_(new_stream()) {
    CUDA_CHECK(cudaMalloc(&word_, sizeof *word_));
    CUDA_CHECK(cudaMemset(word_, 0, sizeof *word_));
    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaEventCreate(&event_));
    if (kind_ != kEvent) return;
    CUDA_CHECK(cudaLaunchHostFunc(source_, wait_at, &gate_));
    CUDA_CHECK(cudaEventRecord(event_, source_));
  }
  ~Block() {
    CUDA_CHECK(cudaStreamDestroy(source_));
    CUDA_CHECK(cudaEventDestroy(event_));
    CUDA_CHECK(cudaFree(word_));
  }
  void put(cudaStream_t stream) {
    auto* const wait = driver<CUresult(CUstream, CUdeviceptr, unsigned, unsigned)>("cuStreamWaitValue32");
    if (kind_ == kFunction) CUDA_CHECK(cudaLaunchHostFunc(stream, wait_at, &gate_));
    if (kind_ == kEvent) CUDA_CHECK(cudaStreamWaitEvent(stream, event_));
    if (kind_ == kWord) must("waiting for a word", wait(stream, reinterpret_cast<CUdeviceptr>(word_), 1, 0), 0);
  }
  // From a stream that goes on.
  void let_go() {
    if (kind_ == kWord) {
      ::put<<<1, 1, 0, source_>>>(word_, 1);
      CUDA_CHECK_LAUNCH();
      return;
    }
    std::lock_guard lock(gate_.mutex);
    gate_.open = true;
    gate_.changed.notify_all();
  }

 private:
  const Kind kind_;
  const cudaStream_t source_;
  cudaEvent_t event_;
  unsigned* word_ = nullptr;
  Gate gate_;
};

// One flooded stream and what it is flooded with.
struct Flooded {
  cudaStream_t stream = new_stream();
  unsigned* count = nullptr;
  std::vector<char> bytes = std::vector<char>(kBytes);
  char* memory = nullptr;
  char* pinned = nullptr;
  cudaEvent_t event;
  std::atomic<unsigned long> called{0};

  Flooded() {
    CUDA_CHECK(cudaMalloc(&count, sizeof *count));
    CUDA_CHECK(cudaMemset(count, 0, sizeof *count));
    CUDA_CHECK(cudaMalloc(&memory, 2 * kBytes));
    CUDA_CHECK(cudaMallocHost(&pinned, kBytes));
    CUDA_CHECK(cudaEventCreate(&event));
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  ~Flooded() {
    CUDA_CHECK(cudaStreamDestroy(stream));
    CUDA_CHECK(cudaEventDestroy(event));
    CUDA_CHECK(cudaFree(count));
    CUDA_CHECK(cudaFree(memory));
    CUDA_CHECK(cudaFreeHost(pinned));
  }
};

void launches(Flooded& f) {
  count_up<<<1, 1, 0, f.stream>>>(f.count);
  CUDA_CHECK_LAUNCH();
}
void functions(Flooded& f) { CUDA_CHECK(cudaLaunchHostFunc(f.stream, count_call, &f.called)); }
void fills(Flooded& f) { CUDA_CHECK(cudaMemsetAsync(f.memory, 1, 64, f.stream)); }
void copies_in(Flooded& f) { CUDA_CHECK(cudaMemcpyAsync(f.memory, f.bytes.data(), 1000, cudaMemcpyHostToDevice, f.stream)); }
void long_copies(Flooded& f) { CUDA_CHECK(cudaMemcpyAsync(f.memory, f.bytes.data(), kBytes, cudaMemcpyHostToDevice, f.stream)); }
void pinned_copies(Flooded& f) { CUDA_CHECK(cudaMemcpyAsync(f.memory, f.pinned, kBytes, cudaMemcpyHostToDevice, f.stream)); }
void copies_within(Flooded& f) { CUDA_CHECK(cudaMemcpyAsync(f.memory + kBytes, f.memory, 64, cudaMemcpyDeviceToDevice, f.stream)); }
void events(Flooded& f) { CUDA_CHECK(cudaEventRecord(f.event, f.stream)); }
void waits(Flooded& f) {
  CUDA_CHECK(cudaEventRecord(f.event, f.stream));
  CUDA_CHECK(cudaStreamWaitEvent(f.stream, f.event));
}
void allocations(Flooded& f) {
  void* memory;
  CUDA_CHECK(cudaMallocAsync(&memory, 256, f.stream));
  CUDA_CHECK(cudaFreeAsync(memory, f.stream));
}

struct Kind {
  const char* name;
  void (*work)(Flooded&);
};
constexpr Kind kKinds[] = {{"launches", launches},           {"functions", functions},         {"fills", fills},
                           {"copies-in", copies_in},         {"long-copies", long_copies},     {"pinned-copies", pinned_copies},
                           {"copies-within", copies_within}, {"events", events},               {"waits", waits},
                           {"allocations", allocations}};

// Its end waits for nothing on a card.
void make_texture(void* memory) {
  cudaTextureObject_t texture;
  cudaResourceDesc what = {};
  cudaTextureDesc how = {};
  what.resType = cudaResourceTypeLinear;
  what.res.linear.devPtr = memory;
  what.res.linear.desc = cudaCreateChannelDesc<float>();
  what.res.linear.sizeInBytes = 1024;
  how.readMode = cudaReadModeElementType;
  CUDA_CHECK(cudaCreateTextureObject(&texture, &what, &how, nullptr));
  CUDA_CHECK(cudaDestroyTextureObject(texture));
}

// All that a program does beside: it needs nothing of the flooded streams.
void go_on_elsewhere(unsigned long times) {
  const cudaStream_t stream = new_stream();
  unsigned* count;
  cudaEvent_t event;
  CUDA_CHECK(cudaMallocAsync(&count, sizeof *count, stream));
  CUDA_CHECK(cudaMemsetAsync(count, 0, sizeof *count, stream));
  CUDA_CHECK(cudaEventCreate(&event));
  std::atomic<unsigned long> called{0};
  unsigned long asked = 0;
  std::vector<char> bytes(1 << 20);
  for (unsigned long i = 0; i < times; ++i) {
    count_up<<<1, 1, 0, stream>>>(count);
    CUDA_CHECK_LAUNCH();
    if (i % 200 != 199) continue;
    unsigned seen = 0;
    size_t free, total;
    void* memory;
    CUDA_CHECK(cudaMemcpyAsync(&seen, count, sizeof seen, cudaMemcpyDeviceToHost, stream));
    must("kernels of another stream", seen, i + 1);
    CUDA_CHECK(cudaLaunchHostFunc(stream, count_call, &called));
    CUDA_CHECK(cudaEventRecord(event, stream));
    CUDA_CHECK(cudaEventSynchronize(event));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    must("host functions of another stream", called, ++asked);
    CUDA_CHECK(cudaMemGetInfo(&free, &total));
    CUDA_CHECK(cudaMallocAsync(&memory, bytes.size(), stream));
    CUDA_CHECK(cudaMemcpyAsync(memory, bytes.data(), bytes.size(), cudaMemcpyHostToDevice, stream));
    make_texture(memory);
    CUDA_CHECK(cudaFreeAsync(memory, stream));
    CUDA_CHECK(cudaStreamDestroy(new_stream()));
  }
  CUDA_CHECK(cudaFreeAsync(count, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CUDA_CHECK(cudaEventDestroy(event));
  CUDA_CHECK(cudaStreamDestroy(stream));
}

void run(const Kind& kind, Block::Kind block_kind, unsigned threads, unsigned long times) {
  alarm(kHangSeconds);
  {
    std::vector<std::unique_ptr<Flooded>> all;
    for (unsigned i = 0; i < threads; ++i) all.push_back(std::make_unique<Flooded>());
    Block block(block_kind);
    for (const auto& each : all) block.put(each->stream);
    std::atomic<unsigned long> done{0};
    std::vector<std::thread> posters;
    for (const auto& each : all)
      posters.emplace_back([&, flooded = each.get()] {
        for (unsigned long i = 0; i < times / threads; ++i, ++done) kind.work(*flooded);
      });
    // One more waits for one of the streams, and one frees memory, which waits for all.
    posters.emplace_back([&] { CUDA_CHECK(cudaStreamSynchronize(all[0]->stream)); });
    posters.emplace_back([&] {
      void* memory;
      CUDA_CHECK(cudaMalloc(&memory, 256));
      CUDA_CHECK(cudaFree(memory));
    });
    while (done < 20) std::this_thread::yield();
    go_on_elsewhere(times);
    block.let_go();
    for (std::thread& poster : posters) poster.join();
    for (const auto& each : all) {
      CUDA_CHECK(cudaStreamSynchronize(each->stream));
      unsigned seen = 0;
      CUDA_CHECK(cudaMemcpy(&seen, each->count, sizeof seen, cudaMemcpyDeviceToHost));
      if (kind.work == launches) must("kernels of a flooded stream", seen, times / threads);
      if (kind.work == functions) must("host functions of a flooded stream", each->called, times / threads);
    }
  }
  alarm(0);
}

}  // namespace

int main(int argc, char** argv) {
  unsigned long times = 12000;
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--times") == 0 && i + 1 < argc) {
      times = strtoul(argv[++i], nullptr, 10);
    } else {
      wanted.emplace_back(argv[i]);
    }
  }
  constexpr const char* kBlocks[] = {"a host function", "an event", "a word"};
  for (const Kind& kind : kKinds) {
    bool runs = wanted.empty();
    for (const std::string& name : wanted) runs = runs || name == kind.name;
    for (unsigned block = 0; runs && block < 3; ++block) {
      for (const unsigned threads : {1u, kThreads}) {
        run(kind, static_cast<Block::Kind>(block), threads, times);
        printf("%-14s behind %-15s %u thread%s\n", kind.name, kBlocks[block], threads, threads == 1 ? "" : "s");
        fflush(stdout);
      }
    }
  }
  printf("%s\n", wrongs == 0 ? "PASSED" : "FAILED");
  return wrongs == 0 ? 0 : 1;
}
