// SPDX-License-Identifier: Apache-2.0
// The captures of this process, for capture.cc and the calls in capture_calls.cc.
#pragma once

#include <atomic>
#include <map>
#include <thread>

#include "guest-driver-shim/libcuda/graph/capture.h"
#include "guest-driver-shim/libcuda/graph/graph_parts.h"

namespace vgpud::cuda {

// From cuStreamBeginCapture to cuStreamEndCapture. All but what never changes is under Captures::mutex.
class Capture {
 public:
  uint64_t id = 0;
  Device* device = nullptr;
  uint64_t epoch = 0;
  uint32_t origin = 0;
  int mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  std::shared_ptr<Graph> graph;
  bool own_graph = true;  // made by the capture, which destroys it when it fails
  bool invalidated = false;
  bool ended = false;

  struct Stream {
    std::vector<CUgraphNode> after;         // of the next node
    std::vector<CUgraphEdgeData_st> edges;  // what a program was told of those of `after`: nothing special
    bool blocking = true;                   // the legacy stream waits for it
  };
  std::map<uint32_t, Stream> streams;
  std::set<CUgraphNode> excused;  // may stay unjoined: the program has taken them out of a stream's dependencies

  bool alive() const { return !ended && epoch == device->epoch.load(); }
  bool unjoined() const;
};

struct Captures {
  Mutex mutex{lock_rank::kCaptures};
  std::vector<std::shared_ptr<Capture>> open GUARDED_BY(mutex);

  std::shared_ptr<Capture> Of(const Device* device, uint32_t stream) const REQUIRES(mutex);
  // The first that is not yet invalidated and has a blocking stream; nullptr if there is none.
  std::shared_ptr<Capture> Blocking(const Device* device) const REQUIRES(mutex);
  void Close(const std::shared_ptr<Capture>& capture) REQUIRES(mutex);
};
Captures& TheCaptures();

// What cuThreadExchangeStreamCaptureMode sets.
int& ThreadCaptureMode();

// Begins one; `graph` nullptr: a new graph. Errors: CUDA_ERROR_ILLEGAL_STATE (the stream captures already),
// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (the legacy stream).
CUresult BeginCapture(const Current& current, uint32_t stream, int mode, std::shared_ptr<Graph> graph,
                      std::vector<CUgraphNode> after);

}  // namespace vgpud::cuda
