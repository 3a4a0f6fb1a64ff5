// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/self_test.h"

#include <fmt/core.h>

#include <array>
#include <atomic>
#include <cstring>
#include <vector>

#include "base/clock.h"
#include "gpu/cuda/self_test_ptx.h"

namespace vgpud::driver {
namespace {

using Progress = GpuGrid::Progress;

// More blocks than a GPU runs at once, by far.
constexpr uint32_t kManyBlocks = 8192, kManyThreads = 32;
constexpr uint32_t kFirstRounds = 100, kMostRounds = 100'000'000;
constexpr uint32_t kEndlessBlocks = 4, kEndlessThreads = 64;  // of the kernel in self_test_ptx.h
constexpr int kCuts = 3;

struct Counts {
  uint64_t blocks = 0, indices = 0;
};
struct Left {
  uint64_t rounds;
  uint32_t value, pad;
};

// What the thread's loop makes of `value` in `rounds` rounds.
uint32_t After(uint32_t value, uint64_t rounds) {
  uint32_t factor = 1664525, summand = 1013904223;
  for (; rounds != 0; rounds >>= 1) {
    if ((rounds & 1) != 0) value = value * factor + summand;
    summand *= factor + 1;
    factor *= factor;
  }
  return value;
}

tl::unexpected<Error> Wrong(std::string what) { return Fail(std::errc::io_error, std::move(what)); }

template <class T>
Result<T> Driver(GpuResult<T> result) {
  if (!result) return Wrong(std::move(result.error().text));
  if constexpr (!std::is_void_v<T>) return std::move(*result);
  return {};
}

class Test {
 public:
  explicit Test(CudaGpu& gpu) : gpu_(gpu) {}

  Result<void> Load() {
    module_ = TRY(Driver(gpu_.Load(std::as_bytes(std::span(kSelfTestPtx).first(sizeof kSelfTestPtx - 1)))));
    memory_ = TRY(Driver(gpu_.Alloc(kBytes)));
    return {};
  }

  Result<std::string> Gate() {
    const auto grid = TRY(Endless(Wanted::kAsItIs));
    if (TRY(Run(*grid, go_on_)) == Progress::kDone) return Wrong("a kernel that runs was told to have ended");
    TRY(Release());
    if (TRY(Run(*grid, stopped_)) != Progress::kDone) return Wrong("a kernel was left on the GPU");
    TRY(CheckEndless());
    return "a kernel that ran at the end of a slice was waited for";
  }

  // Its blocks are counted: those that have run must be the first ones.
  Result<std::string> Blocks() {
    for (uint32_t rounds = kFirstRounds; rounds <= kMostRounds; rounds *= 8) {
      const auto grid = TRY(Many(rounds));
      uint64_t took = 0;
      Counts left;
      Progress progress = Progress::kYield;
      for (int steps = 1; left.blocks == 0 && progress != Progress::kDone; ++steps) {
        for (int step = 0; step < steps && progress != Progress::kDone; ++step) progress = TRY(Run(*grid, go_on_));
        const uint64_t asked = MonotonicNs();
        if (progress != Progress::kDone) progress = TRY(Run(*grid, stopped_));
        took = MonotonicNs() - asked;
        left = TRY(ReadCounts());
      }
      // A fast one that has ended before it could be told shows nothing.
      if (progress == Progress::kDone && AreFirst(left) && left.blocks == kManyBlocks) continue;
      while (progress != Progress::kDone) progress = TRY(Run(*grid, go_on_));
      const Counts all = TRY(ReadCounts());
      if (!AreFirst(left) || !AreFirst(all) || all.blocks != kManyBlocks)
        return Wrong(
            fmt::format("of a kernel that was stopped {} blocks have run, and in the end {} of {}, not each once",
                        left.blocks, all.blocks, kManyBlocks));
      if (left.blocks >= kManyBlocks) return Wrong("a kernel left, and all its blocks have run");
      return fmt::format("a kernel left within {} us, with {} of its {} blocks to come, and went on", took / 1000,
                         kManyBlocks - left.blocks, kManyBlocks);
    }
    return Wrong("kernels ended before they could be told to leave");
  }

  Result<std::string> Safepoints() {
    const auto grid = TRY(Endless(Wanted::kSafepoints));
    uint64_t latest = 0;
    for (int cut = 0; cut < kCuts; ++cut) {
      // In a later turn the first step launches it again.
      if (TRY(Run(*grid, go_on_)) == Progress::kDone) return Wrong("a kernel without an end has ended");
      const uint64_t asked = MonotonicNs();
      if (TRY(Run(*grid, stopped_)) != Progress::kStopped) return Wrong("a kernel without an end did not leave");
      latest = std::max(latest, MonotonicNs() - asked);
    }
    TRY(Release());
    while (TRY(Run(*grid, go_on_)) != Progress::kDone) {
    }
    TRY(CheckEndless());
    return fmt::format("a kernel without an end left {} times within {} us, and went on from where it was", kCuts,
                       latest / 1000);
  }

  Result<std::string> Kill(const std::function<void()>& running) {
    const auto grid = TRY(Endless(Wanted::kAsItIs));
    if (TRY(Run(*grid, go_on_)) == Progress::kDone) return Wrong("a kernel without an end has ended");
    running();
    while (TRY(Run(*grid, go_on_)) != Progress::kDone) {
    }
    return Wrong("a kernel without an end has ended");
  }

 private:
  enum class Wanted { kAsItIs, kBlocks, kSafepoints };
  static constexpr uint64_t kResults = 64;  // behind the counts and the word that ends the endless kernel
  static constexpr uint64_t kBytes = kResults + kEndlessBlocks * kEndlessThreads * sizeof(Left);
  static constexpr uint64_t kReleaseWord = 32;

  GpuVa At(uint64_t offset) const { return GpuVa{Raw(memory_) + offset}; }
  Result<Progress> Run(GpuGrid& grid, const StopWord& stop) { return Driver(grid.Run(stop, UINT64_MAX)); }
  Result<void> Release() { return Driver(gpu_.WriteWord(At(kReleaseWord), 4, 1)); }

  Result<std::unique_ptr<GpuGrid>> Launch(const char* name, const LaunchShape& shape, std::span<const std::byte> params,
                                          Wanted wanted) {
    TRY(Driver(gpu_.Fill(memory_, 0, 1, kBytes)));
    const FunctionInfo* const function = module_->Function(name);
    if (function == nullptr) return Wrong(fmt::format("the driver does not find the kernel {}", name));
    if (wanted == Wanted::kAsItIs) return Driver(gpu_.Launch(*function, shape, params, 0));
    if (std::string why_not = gpu_.WhyNotInTurns(*function, shape); !why_not.empty()) return Wrong(std::move(why_not));
    if (wanted == Wanted::kSafepoints) {
      const uint64_t room = gpu_.RoomFor(*function, shape);
      if (room == 0) return Wrong("the driver does not say how many blocks of a kernel run at once");
      TRY(Driver(gpu_.MakeRoom(room)));
    }
    return Driver(gpu_.Launch(*function, shape, params, 0));
  }
  Result<std::unique_ptr<GpuGrid>> Many(uint32_t rounds) {
    std::array<std::byte, 12> params;
    const uint64_t counts = Raw(memory_);
    std::memcpy(params.data(), &counts, 8);
    std::memcpy(params.data() + 8, &rounds, 4);
    return Launch("many", {{kManyBlocks, 1, 1}, {kManyThreads, 1, 1}, 0}, params, Wanted::kBlocks);
  }
  Result<std::unique_ptr<GpuGrid>> Endless(Wanted wanted) {
    const std::array<GpuVa, 2> params{At(kResults), At(kReleaseWord)};
    return Launch("endless", {{kEndlessBlocks, 1, 1}, {kEndlessThreads, 1, 1}, 0}, std::as_bytes(std::span(params)),
                  wanted);
  }

  Result<Counts> ReadCounts() {
    Counts counts;
    TRY(Driver(gpu_.CopyOut(std::as_writable_bytes(std::span(&counts, 1)), memory_)));
    return counts;
  }
  static bool AreFirst(const Counts& counts) {
    return counts.indices == (counts.blocks == 0 ? 0 : counts.blocks * (counts.blocks - 1) / 2);
  }

  Result<void> CheckEndless() {
    std::vector<Left> left(kEndlessBlocks * kEndlessThreads);
    TRY(Driver(gpu_.CopyOut(std::as_writable_bytes(std::span(left)), At(kResults))));
    for (uint32_t i = 0; i < left.size(); ++i) {
      const uint32_t neighbour = i / kEndlessThreads * kEndlessThreads + (i + 1) % kEndlessThreads;
      if (left[i].rounds == 0 || left[i].value != After(i, left[i].rounds) + neighbour)
        return Wrong(fmt::format("thread {} of a kernel computed something wrong in {} rounds", i, left[i].rounds));
    }
    return {};
  }

  CudaGpu& gpu_;
  std::unique_ptr<GpuModule> module_;
  GpuVa memory_{};
  std::atomic<uint32_t> word_{1};
  const StopWord go_on_{&word_, 1};
  const StopWord stopped_{&word_, 0};
};

}  // namespace

Result<std::string> TestRung(CudaGpu& gpu, std::string_view rung, const std::function<void()>& running) {
  Test test(gpu);
  TRY(test.Load());
  if (rung == "gate") return test.Gate();
  if (rung == "blocks") return test.Blocks();
  if (rung == "safepoints") return test.Safepoints();
  if (rung == "kill") return test.Kill(running);
  return Fail(std::errc::invalid_argument, fmt::format("{} is no way to take kernels away", rung));
}

}  // namespace vgpud::driver
