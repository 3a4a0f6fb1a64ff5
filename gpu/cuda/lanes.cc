// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/lanes.h"

#include <utility>

namespace vgpud::driver {
namespace {

// A driver has more; kernels beyond that wait for one that has ended.
constexpr size_t kMostKept = 64;

GpuResult<Stream> MakeStream(const Card& card) {
  Stream stream = nullptr;
  if (const Status status = card.api().StreamCreate(&stream, kStreamNonBlocking); status != kOk)
    return GpuFail(static_cast<CuStatus>(status), "cuStreamCreate: " + card.api().Describe(status));
  return stream;
}

}  // namespace

Lanes::~Lanes() {
  card_.Bind();
  for (const Stream stream : free_streams_) (void)card_.api().StreamDestroy(stream);
  for (const Event event : free_events_) (void)card_.api().EventDestroy(event);
  if (copies_ != nullptr) (void)card_.api().StreamDestroy(copies_);
}

GpuResult<Event> Lanes::TakeEvent() {
  Event event = nullptr;
  if (!free_events_.empty()) {
    event = free_events_.back();
    free_events_.pop_back();
    return event;
  }
  const Status status = card_.api().EventCreate(&event, kEventBlockingSync | kEventDisableTiming);
  if (status != kOk) return GpuFail(static_cast<CuStatus>(status), "cuEventCreate: " + card_.api().Describe(status));
  return event;
}

GpuResult<Lane> Lanes::Take() {
  const Event done = TRY(TakeEvent());
  Lane lane{std::make_shared<LaneStream>(), done};
  if (free_streams_.empty()) {
    auto stream = MakeStream(card_);
    if (!stream) {
      free_events_.push_back(lane.done);
      return tl::unexpected(std::move(stream.error()));
    }
    lane.on->stream = *stream;
  } else {
    lane.on->stream = free_streams_.back();
    free_streams_.pop_back();
  }
  ++taken_;
  return lane;
}

GpuResult<Lane> Lanes::TakeBehind(const Lane& lane) {
  const Event done = TRY(TakeEvent());
  Lane behind{lane.on, done};
  ++taken_;
  return behind;
}

void Lanes::GiveBack(Lane lane) {
  --taken_;
  if (free_events_.size() < kMostKept) {
    free_events_.push_back(lane.done);
  } else {
    (void)card_.api().EventDestroy(lane.done);
  }
  if (lane.on.use_count() > 1) return;
  if (free_streams_.size() < kMostKept) {
    free_streams_.push_back(lane.on->stream);
  } else {
    (void)card_.api().StreamDestroy(lane.on->stream);
  }
}

void Lanes::Abandon(Lane lane) {
  --taken_;
  (void)card_.api().EventDestroy(lane.done);
  if (lane.on.use_count() == 1) (void)card_.api().StreamDestroy(lane.on->stream);
}

GpuResult<Stream> Lanes::copies() {
  if (copies_ == nullptr) copies_ = TRY(MakeStream(card_));
  return copies_;
}

}  // namespace vgpud::driver
