// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/stops.h"

#include <fmt/core.h>

namespace vgpud::driver {
namespace {

constexpr size_t kWordBytes = 4096;
constexpr uint64_t kBlockBytes = 64 << 10;

tl::unexpected<GpuError> Failed(const Card& card, Status status, const char* what) {
  return GpuFail(static_cast<CuStatus>(status), fmt::format("{}: {}", what, card.api().Describe(status)));
}

}  // namespace

Stops::~Stops() {
  card_.Bind();
  if (stream_ != nullptr) (void)card_.api().StreamDestroy(stream_);
  if (host_ != nullptr) {
    (void)card_.api().MemFreeHost(host_);
  } else if (word_ != 0) {
    (void)card_.api().MemFree(word_);
  }
  for (const DevicePtr block : blocks_) (void)card_.api().MemFree(block);
}

GpuResult<void> Stops::Prepare() {
  if (!tried_) {
    tried_ = true;
    card_.Bind();
    const auto made = card_.maps_host_memory() ? MapWord() : MakeDeviceWord();
    if (!made) why_not_ = made.error().text;
  }
  if (why_not_.empty()) return {};
  return GpuFail(CuStatus::kNotSupported, why_not_);
}

GpuResult<void> Stops::MapWord() {
  const Status made = card_.api().MemHostAlloc(&host_, kWordBytes, kHostAllocMapped);
  if (made != kOk) {
    host_ = nullptr;
    return Failed(card_, made, "cuMemHostAlloc");
  }
  *static_cast<uint32_t*>(host_) = value_;
  const Status found = card_.api().MemHostGetDevicePointer(&word_, host_, 0);
  if (found != kOk) return Failed(card_, found, "cuMemHostGetDevicePointer");
  return {};
}

GpuResult<void> Stops::MakeDeviceWord() {
  const Api& api = card_.api();
  if (const Status status = api.StreamCreate(&stream_, kStreamNonBlocking); status != kOk) {
    stream_ = nullptr;
    return Failed(card_, status, "cuStreamCreate");
  }
  if (const Status status = api.MemAlloc(&word_, kWordBytes); status != kOk) {
    word_ = 0;
    return Failed(card_, status, "cuMemAlloc");
  }
  Status status = api.MemcpyHtoDAsync(word_, &value_, sizeof value_, stream_);
  if (status == kOk) status = api.StreamSynchronize(stream_);
  if (status != kOk) return Failed(card_, status, "cuMemcpyHtoDAsync");
  return {};
}

uint32_t Stops::Begin() {
  heard_ = false;
  return value_;
}

void Stops::Raise() {
  if (heard_) return;
  heard_ = true;
  ++value_;
  if (host_ != nullptr) {
    std::atomic_ref(*static_cast<uint32_t*>(host_)).store(value_, std::memory_order_release);
    return;
  }
  card_.Bind();
  // In vain after a fault, when nothing runs any more.
  if (card_.api().MemcpyHtoDAsync(word_, &value_, sizeof value_, stream_) == kOk)
    (void)card_.api().StreamSynchronize(stream_);
}

GpuResult<DevicePtr> Stops::TakeControl() {
  if (controls_.empty()) {
    card_.Bind();
    DevicePtr block = 0;
    if (const Status status = card_.api().MemAlloc(&block, kBlockBytes); status != kOk)
      return Failed(card_, status, "memory for the progress of kernels");
    blocks_.push_back(block);
    for (uint64_t at = 0; at < kBlockBytes; at += kControlBytes) controls_.push_back(block + at);
  }
  const DevicePtr control = controls_.back();
  controls_.pop_back();
  return control;
}

}  // namespace vgpud::driver
