// SPDX-License-Identifier: Apache-2.0
// Stream capture: work that is given to a capturing stream becomes nodes of a graph. What CUDA forbids meanwhile is
// refused with the error that CUDA documents and, where it says so, ends the capture, so that no work is lost without
// an error.
#pragma once

#include "guest-driver-shim/libcuda/graph/graph.h"

namespace vgpud::cuda {

class Capture;

// Where in a capture an event was recorded: streams that wait for it join the capture there.
struct CapturedPlace {
  std::weak_ptr<Capture> capture;
  std::vector<CUgraphNode> after;
};

// What a call finds that gives work to a stream.
class InCapture {
 public:
  InCapture() = default;
  explicit InCapture(CUresult error) : error_(error) {}
  InCapture(std::shared_ptr<Capture> capture, uint32_t stream) : capture_(std::move(capture)), stream_(stream) {}
  // False when nothing captures the work: it is to be submitted.
  explicit operator bool() const { return error_ != CUDA_SUCCESS || capture_ != nullptr; }
  // Why the work can't be captured: the capture has been invalidated, or the legacy stream would wait for a stream that
  // captures.
  CUresult error() const { return error_; }
  // Adds a node of `type` (CUgraphNodeType) behind what the stream has captured so far.
  CUresult Add(const Current& current, int type, NodeWork work) const;
  // Where the stream is now.
  std::shared_ptr<const CapturedPlace> Here() const;

 private:
  CUresult error_ = CUDA_SUCCESS;
  std::shared_ptr<Capture> capture_;
  uint32_t stream_ = 0;
};

// Cheap when no stream of the process captures, as nearly always.
InCapture Capturing(const Current& current, uint32_t stream);

// For calls that a capturing stream does not permit; they end the capture. CUDA_SUCCESS: nothing captures.
CUresult RefuseInCapture(const Current& current, uint32_t stream);
// The same for calls that wait for all streams of the device.
CUresult RefuseWhileAnyCaptures(const Current& current);
// The same for calls that no capture would notice, such as an allocation, as far as the calling thread's mode and those
// of the captures forbid them (cuThreadExchangeStreamCaptureMode).
CUresult RefuseUnsafeCall();
// The same for a question about an event that was last recorded in a capture.
CUresult RefuseCapturedEvent(const CapturedPlace& place);

// A stream waits for an event. `place`: where it was recorded in a capture, nullptr if elsewhere; `recorded`: it was at
// all. *done: the wait has become part of a capture, or is none.
CUresult WaitInCapture(const Current& current, uint32_t stream, const CapturedPlace* place, bool recorded, bool* done);

// The stream is destroyed.
void DropFromCapture(Device* device, uint32_t stream);

}  // namespace vgpud::cuda
