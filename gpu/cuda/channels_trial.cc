// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/channels_trial.h"

#include <fmt/core.h>

#include <atomic>

#include "base/clock.h"
#include "gpu/channels/channels_text.h"
#include "gpu/channels/observe.h"

namespace vgpud::driver {
namespace {

// Counts in memory of the processor, for ever.
constexpr char kPtx[] = R"(.version 6.4
.target sm_52
.address_size 64
.visible .entry beats(.param .u64 count)
{
  .reg .u64 %rd<3>;
  ld.param.u64 %rd1, [count];
  mov.u64 %rd2, 0;
again:
  add.u64 %rd2, %rd2, 1;
  st.volatile.global.u64 [%rd1], %rd2;
  membar.sys;
  bra again;
}
)";
constexpr size_t kBytes = 4096;
// So long without a beat, and so often looked, it stands still.
constexpr std::chrono::milliseconds kStill{20};
constexpr int kLooks = 200;

Error Failed(const Card& card, const char* call, Status status) {
  return {std::errc::no_such_device, fmt::format("{}: {}", call, card.api().Describe(status))};
}

struct Beating {
  std::atomic_ref<uint64_t> count;
  Event done;
};

Result<Beating> Start(const Card& card) {
  const Api& api = card.api();
  card.Bind();
  Module module = nullptr;
  Function function = nullptr;
  Stream stream = nullptr;
  Event done = nullptr;
  void* memory = nullptr;
  DevicePtr mapped = 0;
  size_t bytes = sizeof mapped;
  if (const Status s = api.ModuleLoadDataEx(&module, kPtx, 0, nullptr, nullptr))
    return tl::unexpected(Failed(card, "cuModuleLoadDataEx", s));
  if (const Status s = api.ModuleGetFunction(&function, module, "beats"))
    return tl::unexpected(Failed(card, "cuModuleGetFunction", s));
  if (const Status s = api.MemHostAlloc(&memory, kBytes, kHostAllocMapped))
    return tl::unexpected(Failed(card, "cuMemHostAlloc", s));
  if (const Status s = api.MemHostGetDevicePointer(&mapped, memory, 0))
    return tl::unexpected(Failed(card, "cuMemHostGetDevicePointer", s));
  if (const Status s = api.StreamCreate(&stream, kStreamNonBlocking))
    return tl::unexpected(Failed(card, "cuStreamCreate", s));
  if (const Status s = api.EventCreate(&done, kEventDisableTiming))
    return tl::unexpected(Failed(card, "cuEventCreate", s));
  LaunchConfig config{};
  for (int d = 0; d < 3; ++d) config.grid[d] = config.block[d] = 1;
  config.stream = stream;
  void* extra[] = {reinterpret_cast<void*>(kParamBuffer), &mapped, reinterpret_cast<void*>(kParamBufferBytes), &bytes,
                   reinterpret_cast<void*>(kParamEnd)};
  if (const Status s = api.LaunchKernelEx(&config, function, nullptr, extra))
    return tl::unexpected(Failed(card, "cuLaunchKernelEx", s));
  if (const Status s = api.EventRecord(done, stream)) return tl::unexpected(Failed(card, "cuEventRecord", s));
  return Beating{std::atomic_ref(*static_cast<uint64_t*>(memory)), done};
}

Result<rm::ClientChannels> Computing() {
  for (const rm::ClientChannels& client : rm::OwnObjects().Channels())
    if (client.compute_group != 0) return client;
  return Fail(
      std::errc::not_supported,
      "the driver was not seen making channels: it is not NVIDIA's own, or this vgpud was built without rm_controls");
}

}  // namespace

Result<std::string> BeatForTrial(const Card& card, const std::function<void(const std::string&)>& say) {
  // A context has its channels when it has been made; there may be more of them with the first launch.
  TRY(Computing());
  const Beating beating = TRY(Start(card));
  say(rm::ChannelsText(TRY(Computing())));
  uint64_t last = 0, turns = 0;
  bool beats = false;
  int looks = 0;
  TimePoint since = Now();
  for (;;) {
    // Asking is what moves a driver that does not move by itself.
    if (const Status status = card.api().EventQuery(beating.done); status != kNotReady)
      return tl::unexpected(Failed(card, "a kernel without an end has ended", status));
    if (const uint64_t count = beating.count.load(std::memory_order_relaxed); count != last) {
      last = count;
      since = Now();
      looks = 0;
      if (!beats) say(fmt::format("beats {}", ++turns));
      beats = true;
    } else if (beats && ++looks > kLooks && Now() - since > kStill) {
      beats = false;
      say(fmt::format("still {}", turns));
    }
  }
}

}  // namespace vgpud::driver
