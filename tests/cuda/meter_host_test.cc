// SPDX-License-Identifier: Apache-2.0
// The meter must notice a GPU that loses work or computes wrongly: checked on a GPU that is played by the CPU.
#include "tests/cuda/meter_host.h"

#include <gtest/gtest.h>

namespace {

// Finishes every kernel at once, unless told to cheat.
struct FakeDevice {
  uint64_t lose_launch = 0;   // the n-th launch does nothing
  uint64_t wrong_launch = 0;  // the n-th launch computes one step too many
  uint64_t launches = 0;
  uint64_t waits = 0;
  uint32_t work = 0;
  std::vector<uint32_t> states[meter::kStreams];

  FakeDevice() {
    for (unsigned s = 0; s < meter::kStreams; ++s)
      for (uint32_t lane = 0; lane < reference::kMeterLanes; ++lane) states[s].push_back(reference::MeterSeed(s, lane));
  }
  void Launch(unsigned stream, uint32_t steps) {
    if (++launches == lose_launch) return;
    for (uint32_t& state : states[stream])
      state = reference::MeterSteps(state, steps + (launches == wrong_launch ? 1 : 0));
    work += reference::kMeterBlocks;
  }
  void Record(unsigned, unsigned) {}
  void Wait(unsigned) { ++waits; }
  uint32_t Work() const { return work; }
  std::vector<uint32_t> States(unsigned stream) const { return states[stream]; }
};

constexpr meter::Options kShort{.seconds = 0.01, .steps = 16};

TEST(Meter, PassesOnAGpuThatDoesItsWork) {
  FakeDevice device;
  EXPECT_EQ(meter::Meter<FakeDevice>(device, kShort).Run(), 0);
  EXPECT_GE(device.waits, device.launches / meter::kUnitsPerBatch);
}

TEST(Meter, FailsWhenAKernelIsLost) {
  FakeDevice device;
  device.lose_launch = 3;
  EXPECT_EQ(meter::Meter<FakeDevice>(device, kShort).Run(), 1);
}

TEST(Meter, FailsWhenAResultIsWrong) {
  FakeDevice device;
  device.wrong_launch = 3;
  EXPECT_EQ(meter::Meter<FakeDevice>(device, kShort).Run(), 1);
  FakeDevice first;
  first.wrong_launch = 1;
  EXPECT_EQ(meter::Meter<FakeDevice>(first, kShort).Run(), 1);
}

TEST(Meter, OptionsAreChecked) {
  const auto parse = [](std::vector<const char*> args, meter::Options* options) {
    args.insert(args.begin(), "meter");
    return meter::ParseOptions(static_cast<int>(args.size()), const_cast<char**>(args.data()), options);
  };
  meter::Options options;
  EXPECT_TRUE(parse({"--seconds", "2.5", "--steps", "64"}, &options));
  EXPECT_EQ(options.seconds, 2.5);
  EXPECT_EQ(options.steps, 64u);
  for (const std::vector<const char*>& bad :
       {std::vector<const char*>{"--seconds"}, {"--seconds", "x"}, {"--seconds", "0"}, {"--steps", "0"}, {"other"}})
    EXPECT_FALSE(parse(bad, &options));
}

}  // namespace
