// SPDX-License-Identifier: Apache-2.0
// Streams: numbers that the guest chooses and the executor keeps apart.
#pragma once

#include "guest-driver-shim/libcuda/driver/driver.h"

namespace vgpud::cuda {

struct Stream {
  uint32_t id = 0;
  unsigned flags = 0;
  int priority = 0;
  Device* device = nullptr;
  CUcontext context = nullptr;
  uint64_t epoch = 0;
};

HandleTable<CUstream, Stream>& Streams();

// A new stream of the executor, and its end. `flags`, `priority`: as cuStreamCreateWithPriority has them.
// CUDA_ERROR_OUT_OF_MEMORY: it has no more.
CUresult CreateStreamNumber(Device* device, unsigned flags, int priority, uint32_t* number);
void DestroyStreamNumber(Device* device, uint32_t number);

// The executor's number for `stream`; the handles 0, 1 and 2 are the default streams of CUDA.
CUresult StreamNumber(const Current& current, CUstream stream, DefaultStream mode, uint32_t* number);

// Handles of CUDA that name no stream of its own: the calling thread's context and default stream.
inline bool IsDefaultStream(CUstream stream) { return reinterpret_cast<uint64_t>(stream) <= 2; }
// A stream that the program has made names its context: the calling thread needs none, and may have another.
Current ContextOf(CUstream stream, bool sticky = true);

// The context and stream that a stream-ordered call works in. Check `error` first.
struct Place {
  Current current;
  uint32_t stream = 0;
  CUresult error = CUDA_SUCCESS;
};
Place Where(DefaultStream mode, CUstream stream);

// Streams of `context` that are still there go with it.
void DropStreamsOf(CUcontext context);

}  // namespace vgpud::cuda
