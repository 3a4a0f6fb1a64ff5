// Eight threads with a stream each copy odd sizes in and out, mixed: waiting and asynchronous, pageable and pinned. The
// pieces share one payload area, so every kind of back-pressure comes up.
// usage: transfers [THREADS [ROUNDS [MIB]]]
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "check.h"

extern "C" __global__ void add(uint8_t* bytes, size_t count, uint8_t value) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) bytes[i] += value;
}

namespace {

constexpr uint8_t kAdded = 3;
constexpr size_t kTouched = 4000;  // bytes that the kernel changes

std::atomic<int> wrong{0};

class Worker {
 public:
  Worker(unsigned number, size_t most) : random_(number * 7919 + 1), most_(most), pageable_(2, Bytes(most)) {
    CUDA_CHECK(cudaStreamCreate(&stream_));
    for (int i = 0; i < 2; ++i) {
      CUDA_CHECK(cudaMalloc(&device_[i], most));
      CUDA_CHECK(cudaMallocHost(&pinned_[i], most));
    }
  }
  ~Worker() {
    for (int i = 0; i < 2; ++i) {
      CUDA_CHECK(cudaFree(device_[i]));
      CUDA_CHECK(cudaFreeHost(pinned_[i]));
    }
    CUDA_CHECK(cudaStreamDestroy(stream_));
  }

  void Round(bool small) {
    const size_t n = small ? 1 + Random() % 5000 : most_ - Random() % 4097;
    uint8_t* const in = Random() % 2 != 0 ? pinned_[0] : pageable_[0].data();
    uint8_t* const out = Random() % 2 != 0 ? pinned_[1] : pageable_[1].data();
    for (size_t i = 0; i < n; i += 97) in[i] = static_cast<uint8_t>(Random());
    in[n - 1] = static_cast<uint8_t>(Random());
    Copy(device_[0], in, n, cudaMemcpyHostToDevice);
    const size_t touched = n < kTouched ? n : kTouched;
    add<<<2, 64, 0, stream_>>>(device_[0], touched, kAdded);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpyAsync(device_[1], device_[0], n, cudaMemcpyDeviceToDevice, stream_));
    Copy(out, device_[1], n, cudaMemcpyDeviceToHost);
    CUDA_CHECK(cudaStreamSynchronize(stream_));
    for (size_t i = 0; i < n; ++i) {
      if (out[i] == static_cast<uint8_t>(in[i] + (i < touched ? kAdded : 0))) continue;
      if (wrong.fetch_add(1) < 5) std::printf("byte %zu of %zu is %u, was sent as %u\n", i, n, out[i], in[i]);
      return;
    }
  }

 private:
  using Bytes = std::vector<uint8_t>;
  unsigned Random() { return (random_ = random_ * 1664525u + 1013904223u) >> 8; }
  void Copy(void* to, const void* from, size_t n, cudaMemcpyKind kind) {
    if (Random() % 2 != 0) {
      CUDA_CHECK(cudaMemcpyAsync(to, from, n, kind, stream_));
      return;
    }
    CUDA_CHECK(cudaStreamSynchronize(stream_));
    CUDA_CHECK(cudaMemcpy(to, from, n, kind));
  }

  unsigned random_;
  const size_t most_;
  std::vector<Bytes> pageable_;
  cudaStream_t stream_ = nullptr;
  uint8_t* device_[2] = {};
  uint8_t* pinned_[2] = {};
};

}  // namespace

int main(int argc, char** argv) {
  const unsigned threads = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 8;
  const unsigned rounds = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 6;
  const size_t bytes = (argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 4) << 20;
  std::vector<std::thread> workers;
  for (unsigned i = 0; i < threads; ++i) {
    workers.emplace_back([=] {
      Worker worker(i, bytes);
      for (unsigned round = 0; round < rounds; ++round) worker.Round(round % 4 == 3);
    });
  }
  for (std::thread& worker : workers) worker.join();
  std::printf("transfers: %s threads=%u rounds=%u\n", wrong == 0 ? "PASSED" : "FAILED", threads, rounds);
  return wrong == 0 ? 0 : 1;
}
