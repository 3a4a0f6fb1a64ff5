// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "tests/cuda/launcher/programs.h"
#include "tests/cuda/launcher/session.h"
#include "tests/cuda/meter_host.h"

namespace {

class DriverDevice {
 public:
  DriverDevice() : session_("meter"), kernel_(session_.Kernel("meter_unit")), work_(1) {
    for (unsigned s = 0; s < meter::kStreams; ++s) {
      std::vector<uint32_t> seeds(reference::kMeterLanes);
      for (uint32_t lane = 0; lane < reference::kMeterLanes; ++lane) seeds[lane] = reference::MeterSeed(s, lane);
      DRIVER_CHECK(StreamCreate(&streams_[s], driver::kStreamNonBlocking));
      states_[s] = std::make_unique<DeviceArray<uint32_t>>(seeds);
    }
    DRIVER_CHECK(StreamCreate(&reader_, driver::kStreamNonBlocking));
    DRIVER_CHECK(MemsetD8(work_.address(), 0, work_.bytes()));
    for (driver::Event& event : events_)
      DRIVER_CHECK(EventCreate(&event, driver::kEventBlockingSync | driver::kEventDisableTiming));
    DRIVER_CHECK(CtxSynchronize());
  }
  ~DriverDevice() {
    for (driver::Stream stream : streams_) DRIVER_CHECK(StreamDestroy(stream));
    for (driver::Event event : events_) DRIVER_CHECK(EventDestroy(event));
    DRIVER_CHECK(StreamDestroy(reader_));
  }

  void Launch(unsigned stream, uint32_t steps) {
    ::Launch(kernel_, {.grid_x = reference::kMeterBlocks, .block_x = reference::kMeterThreads}, streams_[stream],
             states_[stream]->address(), work_.address(), steps);
  }
  void Record(unsigned event, unsigned stream) { DRIVER_CHECK(EventRecord(events_[event], streams_[stream])); }
  void Wait(unsigned event) { DRIVER_CHECK(EventSynchronize(events_[event])); }
  uint32_t Work() {
    uint32_t work = 0;
    DRIVER_CHECK(MemcpyDtoHAsync(&work, work_.address(), sizeof work, reader_));
    DRIVER_CHECK(StreamSynchronize(reader_));
    return work;
  }
  std::vector<uint32_t> States(unsigned stream) {
    std::vector<uint32_t> states(reference::kMeterLanes);
    DRIVER_CHECK(
        MemcpyDtoHAsync(states.data(), states_[stream]->address(), states_[stream]->bytes(), streams_[stream]));
    DRIVER_CHECK(StreamSynchronize(streams_[stream]));
    return states;
  }

 private:
  Session session_;
  driver::Function kernel_;
  DeviceArray<uint32_t> work_;
  std::unique_ptr<DeviceArray<uint32_t>> states_[meter::kStreams];
  driver::Stream streams_[meter::kStreams] = {};
  driver::Stream reader_ = nullptr;
  driver::Event events_[meter::kBatches] = {};
};

}  // namespace

int RunMeter(int argc, char** argv) {
  meter::Options options;
  if (!meter::ParseOptions(argc, argv, &options)) return 1;
  DriverDevice device;
  return meter::Meter<DriverDevice>(device, options).Run();
}
