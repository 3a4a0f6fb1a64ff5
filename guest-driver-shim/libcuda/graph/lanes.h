// SPDX-License-Identifier: Apache-2.0
// The streams of a launch: nodes that do not depend on each other are submitted to different ones, so that they may run
// at the same time. Lane 0 is the stream of the launch; the others belong to whoever launches.
#pragma once

#include "guest-driver-shim/libcuda/driver/marker.h"
#include "guest-driver-shim/libcuda/graph/graph_parts.h"

namespace vgpud::cuda {

class Lanes {
 public:
  // `nodes` in an order that respects the dependencies; only those are looked at.
  explicit Lanes(const NodeList& nodes);
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  // Submits the work of `nodes`, behind what `stream` has been given and behind the launches before; what the stream is
  // given later comes after all of it. `nodes`: as many as the constructor was given, with the same dependencies.
  CUresult Submit(const Current& current, uint32_t stream, const NodeList& nodes);
  uint32_t count() const { return count_; }

 private:
  struct Step {
    uint32_t lane = 0;
    std::vector<size_t> waits;  // for steps in other lanes
    bool awaited = false;       // by a step in another lane, or by the end
    std::shared_ptr<Marker> done;
  };
  CUresult SubmitSteps(const Current& current, const NodeList& nodes) REQUIRES(mutex_);
  // Streams and markers for all lanes; false when there are not enough streams.
  bool Prepare(const Current& current) REQUIRES(mutex_);
  void Drop() REQUIRES(mutex_);

  Mutex mutex_{lock_rank::kLanes};
  std::vector<Step> steps_ GUARDED_BY(mutex_);   // one per node
  std::vector<size_t> last_ GUARDED_BY(mutex_);  // step of each lane
  uint32_t count_ = 1;
  Device* device_ GUARDED_BY(mutex_) = nullptr;  // what follows belongs to it
  uint64_t epoch_ GUARDED_BY(mutex_) = 0;
  std::vector<uint32_t> streams_ GUARDED_BY(mutex_);  // by lane; the first is the launch's
  std::shared_ptr<Marker> begin_ GUARDED_BY(mutex_), end_ GUARDED_BY(mutex_);
  uint32_t last_stream_ GUARDED_BY(mutex_) = 0;
};

}  // namespace vgpud::cuda
