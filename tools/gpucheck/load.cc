// SPDX-License-Identifier: Apache-2.0
// A program that keeps a GPU busy in one of several ways and says how far it is. docs/gpu-check.md has the kinds.
//   gpu_load KIND --rounds R [--seconds S | --launches N]
// KIND: honest (a few kernels in flight), endless (one that never ends), storm (kernels of one block, as fast as it
// can), huge (64 times the blocks), fat (many registers, much shared memory), graphs (20 kernels each), clusters (of 4
// blocks). R: steps of a kernel; "gpu_load calibrate --us U" says how many take U microseconds when alone. Lines: "LOAD
// ready", then "LOAD ms=T units=N" ten times a second: kernels that have ended; at the end, "DIGEST kind=K launches=N
// digest=H" of all that they computed, where it ends by itself. ERROR lines: driver.h. Status: 0; 3 CUDA error; 4 this
// GPU has no such thing.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string_view>
#include <vector>

#include "tools/gpucheck/driver.h"
#include "tools/gpucheck/kernels.h"

namespace {

using namespace gpucheck;

constexpr unsigned kThreads = 256, kInFlight = 4, kStormBatch = 256, kGraphKernels = 20, kHuge = 64, kCluster = 4;
constexpr int kFatRegisters = 160;

struct Options {
  std::string_view kind;
  unsigned rounds = 1000;
  double seconds = 0;
  unsigned long launches = 0;
  double us = 200;
};

class Load {
 public:
  Load(const Gpu& gpu, const Options& options) : options_(options) {
    // With more than the soft GPU's few, two blocks for each multiprocessor.
    blocks_ = 2 * static_cast<unsigned>(gpu.multiprocessors);
    if (options.kind == "huge") blocks_ *= kHuge;
    if (options.kind == "storm") blocks_ = 1;
    if (options.kind == "clusters") blocks_ = (blocks_ + kCluster - 1) / kCluster * kCluster;
    if (options.kind == "fat") {
      kernel_ = LoadKernel(FatKernel(kFatRegisters).c_str(), "fat");
      shared_ = static_cast<unsigned>(gpu.most_shared > (48 << 10) ? gpu.most_shared * 3 / 4 : 32 << 10);
      if (shared_ > (48u << 10))
        CUDA(FuncSetAttribute(kernel_, driver::FunctionAttribute::kMaxDynamicShared, static_cast<int>(shared_)));
    } else if (options.kind == "clusters") {
      kernel_ = LoadKernel(kClustered, "clustered");
    } else {
      kernel_ = LoadKernel(kWork, options.kind == "endless" ? "endless" : "work");
    }
    CUDA(StreamCreate(&stream_, driver::kStreamNonBlocking));
    for (driver::Event& event : events_)
      CUDA(EventCreate(&event, driver::kEventBlockingSync | driver::kEventDisableTiming));
    std::vector<uint32_t> seeds(size_t{blocks_} * kThreads);
    for (size_t n = 0; n < seeds.size(); ++n) seeds[n] = static_cast<uint32_t>(n * 2654435761u + 1);
    CUDA(MemAlloc(&states_, seeds.size() * 4));
    CUDA(MemAlloc(&word_, 64));
    CUDA(MemcpyHtoD(states_, seeds.data(), seeds.size() * 4));
    CUDA(MemsetD8(word_, 0, 64));
    if (options.kind == "graphs") MakeGraph();
  }

  // Kernels of one Submit.
  unsigned each() const { return graph_ != nullptr ? kGraphKernels : options_.kind == "storm" ? kStormBatch : 1; }

  void Submit() {
    if (graph_ != nullptr) {
      CUDA(GraphLaunch(graph_, stream_));
    } else {
      for (unsigned n = 0; n < each(); ++n) Launch();
    }
    CUDA(EventRecord(events_[submitted_++ % kInFlight], stream_));
  }
  // Waits until no more than `left` are in flight. Kernels that have ended.
  unsigned long Wait(unsigned left) {
    while (submitted_ - ended_ > left) CUDA(EventSynchronize(events_[ended_++ % kInFlight]));
    return ended_ * each();
  }
  unsigned long submitted() const { return submitted_ * each(); }

  uint64_t Digest() {
    std::vector<uint32_t> states(size_t{blocks_} * kThreads);
    CUDA(MemcpyDtoH(states.data(), states_, states.size() * 4));
    uint64_t digest = 14695981039346656037ull;
    for (const uint32_t state : states) digest = (digest ^ state) * 1099511628211ull;
    return digest;
  }

 private:
  void Launch() {
    unsigned rounds = options_.kind == "storm" ? 1 : options_.rounds;
    void* params[] = {&states_, &word_, &rounds};
    if (options_.kind == "clusters") {
      driver::LaunchAttribute attribute{.id = driver::LaunchAttribute::Id::kCluster, .cluster = {kCluster, 1, 1}};
      const driver::LaunchConfig config{{blocks_, 1, 1}, {kThreads, 1, 1}, 0, stream_, &attribute, 1};
      CUDA(LaunchKernelEx(&config, kernel_, params, nullptr));
      return;
    }
    CUDA(LaunchKernel(kernel_, blocks_, 1, 1, kThreads, 1, 1, shared_, stream_, params, nullptr));
  }
  void MakeGraph() {
    driver::Graph graph = nullptr;
    CUDA(StreamBeginCapture(stream_, 0));
    for (unsigned n = 0; n < kGraphKernels; ++n) Launch();
    CUDA(StreamEndCapture(stream_, &graph));
    CUDA(GraphInstantiateWithFlags(&graph_, graph, 0));
  }

  const Options& options_;
  unsigned blocks_ = 0, shared_ = 0;
  driver::Function kernel_ = nullptr;
  driver::Stream stream_ = nullptr;
  driver::GraphExec graph_ = nullptr;
  driver::Event events_[kInFlight] = {};
  driver::DevicePtr states_ = 0, word_ = 0;
  unsigned long submitted_ = 0, ended_ = 0;
};

int Run(const Gpu& gpu, const Options& options) {
  if (options.kind == "clusters" && gpu.capability < 90) {
    std::printf("NONE kind=clusters why=compute_capability_%d\n", gpu.capability);
    return 4;
  }
  Load load(gpu, options);
  std::printf("LOAD ready\n");
  std::fflush(stdout);
  const double begun = Seconds();
  const unsigned flight = options.kind == "endless"                             ? 1
                          : options.kind == "storm" || options.kind == "graphs" ? 2
                                                                                : kInFlight;
  double said = 0;
  for (;;) {
    load.Submit();
    const unsigned long ended = load.Wait(flight - 1);
    const double now = Seconds() - begun;
    if (now - said >= 0.1) {
      said = now;
      std::printf("LOAD ms=%.1f units=%lu\n", 1000 * now, ended);
      std::fflush(stdout);
    }
    if (options.launches != 0 ? load.submitted() >= options.launches : now >= options.seconds) break;
  }
  const unsigned long units = load.Wait(0);
  const double now = Seconds() - begun;
  std::printf("LOAD ms=%.1f units=%lu\n", 1000 * now, units);
  std::printf("DIGEST kind=%.*s launches=%lu digest=%016llx ms=%.1f\n", static_cast<int>(options.kind.size()),
              options.kind.data(), load.submitted(), static_cast<unsigned long long>(load.Digest()), 1000 * now);
  return 0;
}

int Calibrate(const Gpu& gpu, Options options) {
  options.kind = "honest";
  for (options.rounds = 16;; options.rounds *= 2) {
    Load load(gpu, options);
    load.Submit();
    load.Wait(0);
    const double begun = Seconds();
    // In a row, so that launching and waiting count little.
    for (int n = 0; n < 16; ++n) {
      load.Submit();
      load.Wait(kInFlight - 1);
    }
    load.Wait(0);
    const double us = (Seconds() - begun) / 16 * 1e6;
    if (us < options.us && options.rounds < (1u << 28)) continue;
    const auto rounds = static_cast<unsigned>(options.rounds * options.us / us);
    std::printf("ROUNDS rounds=%u us=%.1f\n", rounds < 1 ? 1 : rounds, us);
    return 0;
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (argc > 1) options.kind = argv[1];
  for (int n = 2; n + 1 < argc; n += 2) {
    const std::string_view name = argv[n];
    if (name == "--rounds") options.rounds = static_cast<unsigned>(std::strtoul(argv[n + 1], nullptr, 10));
    if (name == "--seconds") options.seconds = std::strtod(argv[n + 1], nullptr);
    if (name == "--launches") options.launches = std::strtoul(argv[n + 1], nullptr, 10);
    if (name == "--us") options.us = std::strtod(argv[n + 1], nullptr);
  }
  constexpr std::string_view kKinds[] = {"honest", "endless", "storm",    "huge",
                                         "fat",    "graphs",  "clusters", "calibrate"};
  bool known = false;
  for (const std::string_view kind : kKinds) known = known || kind == options.kind;
  if (!known || options.rounds == 0) {
    std::fprintf(stderr,
                 "usage: gpu_load honest|endless|storm|huge|fat|graphs|clusters|calibrate [--rounds R] [--seconds S] "
                 "[--launches N] [--us U]\n");
    return 2;
  }
  const Gpu gpu = OpenGpu();
  return options.kind == "calibrate" ? Calibrate(gpu, options) : Run(gpu, options);
}
