// Keeps short kernels in flight in two streams and reports how many have finished, every 100 ms.
// usage: meter [--seconds N] [--steps N]     (steps of work per thread and kernel)
#include <vector>

#include "check.h"
#include "meter_host.h"

extern "C" __global__ void meter_unit(unsigned* states, unsigned* work, unsigned steps) {
  const unsigned lane = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned state = states[lane];
#pragma unroll 4
  for (unsigned i = 0; i < steps; ++i) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    state += 0x9e3779b9u;
  }
  states[lane] = state;
  if (threadIdx.x == 0) atomicAdd(work, 1u);
}

namespace {

class RuntimeDevice {
 public:
  RuntimeDevice() {
    for (unsigned s = 0; s < meter::kStreams; ++s) {
      std::vector<uint32_t> seeds(reference::kMeterLanes);
      for (uint32_t lane = 0; lane < reference::kMeterLanes; ++lane) seeds[lane] = reference::MeterSeed(s, lane);
      CUDA_CHECK(cudaStreamCreateWithFlags(&streams_[s], cudaStreamNonBlocking));
      CUDA_CHECK(cudaMalloc(&states_[s], kStateBytes));
      CUDA_CHECK(cudaMemcpy(states_[s], seeds.data(), kStateBytes, cudaMemcpyHostToDevice));
    }
    CUDA_CHECK(cudaStreamCreateWithFlags(&reader_, cudaStreamNonBlocking));
    CUDA_CHECK(cudaMalloc(&work_, sizeof *work_));
    CUDA_CHECK(cudaMemset(work_, 0, sizeof *work_));
    CUDA_CHECK(cudaMallocHost(&work_now_, sizeof *work_now_));
    for (cudaEvent_t& event : events_)
      CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventBlockingSync | cudaEventDisableTiming));
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  ~RuntimeDevice() {
    for (unsigned s = 0; s < meter::kStreams; ++s) {
      CUDA_CHECK(cudaStreamDestroy(streams_[s]));
      CUDA_CHECK(cudaFree(states_[s]));
    }
    for (cudaEvent_t event : events_) CUDA_CHECK(cudaEventDestroy(event));
    CUDA_CHECK(cudaStreamDestroy(reader_));
    CUDA_CHECK(cudaFree(work_));
    CUDA_CHECK(cudaFreeHost(work_now_));
  }

  void Launch(unsigned stream, uint32_t steps) {
    meter_unit<<<reference::kMeterBlocks, reference::kMeterThreads, 0, streams_[stream]>>>(states_[stream], work_,
                                                                                           steps);
    CUDA_CHECK_LAUNCH();
  }
  void Record(unsigned event, unsigned stream) { CUDA_CHECK(cudaEventRecord(events_[event], streams_[stream])); }
  void Wait(unsigned event) { CUDA_CHECK(cudaEventSynchronize(events_[event])); }
  uint32_t Work() {
    CUDA_CHECK(cudaMemcpyAsync(work_now_, work_, sizeof *work_, cudaMemcpyDeviceToHost, reader_));
    CUDA_CHECK(cudaStreamSynchronize(reader_));
    return *work_now_;
  }
  std::vector<uint32_t> States(unsigned stream) {
    std::vector<uint32_t> states(reference::kMeterLanes);
    CUDA_CHECK(cudaMemcpyAsync(states.data(), states_[stream], kStateBytes, cudaMemcpyDeviceToHost, streams_[stream]));
    CUDA_CHECK(cudaStreamSynchronize(streams_[stream]));
    return states;
  }

 private:
  static constexpr size_t kStateBytes = reference::kMeterLanes * sizeof(uint32_t);
  cudaStream_t streams_[meter::kStreams] = {};
  cudaStream_t reader_ = nullptr;
  cudaEvent_t events_[meter::kBatches] = {};
  unsigned* states_[meter::kStreams] = {};
  unsigned* work_ = nullptr;
  uint32_t* work_now_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  meter::Options options;
  if (!meter::ParseOptions(argc, argv, &options)) return 1;
  RuntimeDevice device;
  return meter::Meter<RuntimeDevice>(device, options).Run();
}
