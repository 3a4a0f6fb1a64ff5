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

void Destroy(const Card& card, Lane lane) {
  (void)card.api().EventDestroy(lane.done);
  (void)card.api().StreamDestroy(lane.stream);
}

}  // namespace

Lanes::~Lanes() {
  card_.Bind();
  for (const Lane& lane : free_) Destroy(card_, lane);
  if (copies_ != nullptr) (void)card_.api().StreamDestroy(copies_);
}

GpuResult<Lane> Lanes::Take() {
  Lane lane;
  if (free_.empty()) {
    lane.stream = TRY(MakeStream(card_));
    const Status status = card_.api().EventCreate(&lane.done, kEventBlockingSync | kEventDisableTiming);
    if (status != kOk) {
      (void)card_.api().StreamDestroy(lane.stream);
      return GpuFail(static_cast<CuStatus>(status), "cuEventCreate: " + card_.api().Describe(status));
    }
  } else {
    lane = free_.back();
    free_.pop_back();
  }
  ++taken_;
  return lane;
}

void Lanes::GiveBack(Lane lane) {
  --taken_;
  if (free_.size() < kMostKept) {
    free_.push_back(lane);
  } else {
    Destroy(card_, lane);
  }
}

void Lanes::Abandon(Lane lane) {
  --taken_;
  Destroy(card_, lane);
}

GpuResult<Stream> Lanes::copies() {
  if (copies_ == nullptr) copies_ = TRY(MakeStream(card_));
  return copies_;
}

}  // namespace vgpud::driver
