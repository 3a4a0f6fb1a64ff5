// SPDX-License-Identifier: Apache-2.0
// The host side of the meter: keeps the GPU busy, counts finished kernels, reports every 100 ms. `Device` does the CUDA
// calls (runtime API in meter.cu, driver API in the launcher):
//   void Launch(unsigned stream, uint32_t steps)   one unit, asynchronously
//   void Record(unsigned event, unsigned stream)   event 0 .. kBatches-1
//   void Wait(unsigned event)                      blocks without spinning
//   uint32_t Work()                                the work counter now, not waiting for the two streams
//   std::vector<uint32_t> States(unsigned stream)  after everything has finished
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "reference.h"

namespace meter {

inline constexpr unsigned kStreams = 2;
inline constexpr unsigned kBatches = 8;        // in flight
inline constexpr unsigned kUnitsPerBatch = 4;  // kernels per event
inline constexpr uint32_t kStepsPerUnit = 768;

struct Options {
  double seconds = 5.0;
  uint32_t steps = kStepsPerUnit;
};

// Reads [--seconds N] [--steps N]; false after printing what is wrong.
inline bool ParseOptions(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    char* end = nullptr;
    if (std::strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
      options->seconds = std::strtod(argv[++i], &end);
    } else if (std::strcmp(argv[i], "--steps") == 0 && i + 1 < argc) {
      options->steps = static_cast<uint32_t>(std::strtoul(argv[++i], &end, 10));
    }
    if (end == nullptr || *end != '\0' || options->seconds <= 0 || options->steps == 0) {
      std::printf("meter: FAILED usage: meter [--seconds N] [--steps N]\n");
      return false;
    }
  }
  return true;
}

template <class Device>
class Meter {
 public:
  Meter(Device& device, Options options) : device_(device), options_(options) {}

  // Returns the exit status.
  int Run() {
    device_.Launch(0, options_.steps);
    device_.Launch(1, options_.steps);
    units_[0] = units_[1] = 1;
    device_.Record(0, 0);
    device_.Record(1, 1);
    device_.Wait(0);
    device_.Wait(1);
    finished_ = 2;
    bool good = WorkIsExact() && StatesAre(1);

    const auto start = Clock::now();
    const auto end =
        start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.seconds));
    auto next_report = start + kReport;
    for (uint64_t batch = 0;; ++batch) {
      if (batch >= kBatches) {
        device_.Wait(static_cast<unsigned>(batch % kBatches));
        finished_ += kUnitsPerBatch;
      }
      auto now = Clock::now();
      if (now >= next_report) {
        const bool in_bounds = WorkIsPlausible();
        good = good && in_bounds;
        now = Clock::now();
        Print(now - start, in_bounds);
        while (next_report <= now) next_report += kReport;
      }
      if (batch != 0 && now >= end) {
        Drain(batch);
        break;
      }
      Submit(batch);
    }
    const bool exact = WorkIsExact() && StatesAre(kSpotCheckStride);
    good = good && exact;
    std::printf("meter: %s units=%llu\n", good ? "PASSED" : "FAILED", static_cast<unsigned long long>(finished_));
    std::fflush(stdout);
    return good ? 0 : 1;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kReport = std::chrono::milliseconds(100);
  static constexpr uint32_t kSpotCheckStride = 331;

  void Submit(uint64_t batch) {
    const unsigned stream = static_cast<unsigned>(batch % kStreams);
    for (unsigned i = 0; i < kUnitsPerBatch; ++i) device_.Launch(stream, options_.steps);
    units_[stream] += kUnitsPerBatch;
    device_.Record(static_cast<unsigned>(batch % kBatches), stream);
  }

  // Waits for the batches before `batch` that are still in flight; the one at `batch - kBatches` is already counted.
  void Drain(uint64_t batch) {
    for (uint64_t b = batch >= kBatches ? batch - kBatches + 1 : 0; b < batch; ++b) {
      device_.Wait(static_cast<unsigned>(b % kBatches));
      finished_ += kUnitsPerBatch;
    }
  }

  void Print(Clock::duration elapsed, bool ok) const {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(elapsed).count();
    std::printf("METER t_ms=%lld units=%llu %s\n", static_cast<long long>(ms),
                static_cast<unsigned long long>(finished_), ok ? "ok" : "BAD");
    std::fflush(stdout);
  }

  uint64_t Submitted() const { return units_[0] + units_[1]; }
  // The counter wraps at 2^32: compare distances.
  bool WorkIsPlausible() {
    const uint32_t beyond_finished =
        device_.Work() - static_cast<uint32_t>(finished_ * static_cast<uint64_t>(reference::kMeterBlocks));
    return beyond_finished <= (Submitted() - finished_) * reference::kMeterBlocks;
  }
  bool WorkIsExact() {
    return finished_ == Submitted() &&
           device_.Work() == static_cast<uint32_t>(finished_ * static_cast<uint64_t>(reference::kMeterBlocks));
  }
  // Compares every `stride`-th lane of both streams with the CPU.
  bool StatesAre(uint32_t stride) {
    for (unsigned stream = 0; stream < kStreams; ++stream) {
      const auto states = device_.States(stream);
      for (uint32_t lane = 0; lane < reference::kMeterLanes; lane += stride) {
        const uint64_t steps = units_[stream] * options_.steps;
        if (states[lane] != reference::MeterSteps(reference::MeterSeed(stream, lane), steps)) return false;
      }
    }
    return true;
  }

  Device& device_;
  const Options options_;
  uint64_t units_[kStreams] = {};  // submitted
  uint64_t finished_ = 0;
};

}  // namespace meter
